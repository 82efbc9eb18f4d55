//! Selects the backend that suits a program. Only a loader can load a library first, and
//! loaders do not do that for programs that run as another user.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::defer::Backend;

/// Scripts that name scripts as their interpreters, as deep as the kernel goes.
const DEPTH_MAX: u32 = 4;
const SET_ID: u32 = 0o6000;
/// `PT_INTERP` of elf(5): the program names a loader.
const INTERPRETER: u64 = 3;
/// `PT_NOTE`. Programs in Go have one of theirs; they call the kernel themselves
/// even where they have a loader.
const NOTE: u64 = 4;
const OF_GO: &[u8] = b"Go\0\0";

/// The backend for a command, as it stands on the command line.
pub(super) fn backend_for(command: &OsStr) -> io::Result<Backend> {
    let path = find(command).ok_or_else(|| {
        let why = format!("no program '{}'", command.to_string_lossy());
        io::Error::new(io::ErrorKind::NotFound, why)
    })?;
    let loads = has_loader(&path, DEPTH_MAX)?;
    Ok(if loads { Backend::Preload } else { Backend::Seccomp })
}

/// As `execvp` looks for it.
fn find(command: &OsStr) -> Option<PathBuf> {
    if command.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(command)).filter(|path| path.exists());
    }
    let folders = std::env::var_os("PATH")?;
    let is_program = |path: &PathBuf| {
        let meta = std::fs::metadata(path);
        meta.is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&folders).map(|folder| folder.join(command)).find(is_program)
}

fn has_loader(path: &Path, depth: u32) -> io::Result<bool> {
    let mut file = File::open(path)?;
    if file.metadata()?.permissions().mode() & SET_ID != 0 {
        return Ok(false);
    }
    let mut start = Vec::new();
    file.by_ref().take(4096).read_to_end(&mut start)?;
    if let Some(line) = start.strip_prefix(b"#!") {
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
        let name = line.split(|byte| matches!(byte, b' ' | b'\t')).next().unwrap_or_default();
        let interpreter = Path::new(OsStr::from_bytes(name));
        return if depth == 0 { Ok(false) } else { has_loader(interpreter, depth - 1) };
    }
    Ok(names_loader(&file, &start).unwrap_or(false))
}

/// Returns true if a program of this machine's kind has a loader that its calls go
/// through; `None` if the file is not such a program.
fn names_loader(file: &File, start: &[u8]) -> Option<bool> {
    const CLASS_64: u8 = 2;
    if !start.starts_with(b"\x7fELF") || *start.get(4)? != CLASS_64 {
        return None;
    }
    let (table, size) = (number(start, 32, 8)?, number(start, 54, 2)?);
    let mut has_loader = false;
    for place in 0..number(start, 56, 2)? {
        let mut header = [0; 56];
        file.read_exact_at(&mut header, table.checked_add(place * size)?).ok()?;
        match number(&header, 0, 4)? {
            INTERPRETER => has_loader = true,
            NOTE => {
                let mut note = vec![0; usize::try_from(number(&header, 32, 8)?).ok()?.min(4096)];
                file.read_exact_at(&mut note, number(&header, 8, 8)?).ok()?;
                if note.windows(OF_GO.len()).any(|part| part == OF_GO) {
                    return Some(false);
                }
            }
            _ => {}
        }
    }
    Some(has_loader)
}

/// A number, in the order of the systems that the shim is built for.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + size)?;
    Some(bytes.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_with_a_loader_are_distinguished_from_static_ones() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &[u8], mode: u32| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&path, mode).unwrap();
            path
        };
        let own = std::env::current_exe().unwrap();
        let is = |path: &Path| backend_for(path.as_os_str()).unwrap();
        assert_eq!(is(&own), Backend::Preload, "a test is a program with a loader");
        let line = format!("#! {} --version\n", own.display());
        let script = write("script", line.as_bytes(), 0o755);
        assert_eq!(is(&script), Backend::Preload);
        let set_id = write("set-id", &std::fs::read(&own).unwrap(), 0o4755);
        assert_eq!(is(&set_id), Backend::Seccomp);
        // 64 bits, little-endian, no program headers.
        let mut header = b"\x7fELF\x02\x01\x01".to_vec();
        header.resize(64, 0);
        assert_eq!(is(&write("static", &header, 0o755)), Backend::Seccomp);
        assert_eq!(is(&write("short", &header[..20], 0o755)), Backend::Seccomp);
        assert_eq!(is(&write("text", b"echo", 0o755)), Backend::Seccomp);
        let itself = folder.path().join("itself");
        write("itself", format!("#!{}\n", itself.display()).as_bytes(), 0o755);
        assert_eq!(is(&itself), Backend::Seccomp);
        assert_eq!(backend_for(OsStr::new("sh")).unwrap(), Backend::Preload);
        let error = backend_for(OsStr::new("no-such-program")).unwrap_err();
        assert!(error.to_string().contains("no-such-program"), "{error}");
    }
}
