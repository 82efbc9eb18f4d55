//! Paths are 16-bit units with `\` between components; in a record they are
//! bytes with `/`.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io;
use std::os::windows::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use windows_sys::Win32::Storage::FileSystem::{
    MOVEFILE_REPLACE_EXISTING, MOVEFILE_WRITE_THROUGH, MoveFileExW,
};

use super::call::last_error;
use crate::path::FileKind;
use crate::wtf8;

/// A path's bytes.
pub(crate) fn bytes(path: &Path) -> Cow<'_, [u8]> {
    let units: Vec<u16> = path.as_os_str().encode_wide().collect();
    let mut bytes = wtf8::to_bytes(&units);
    for byte in &mut bytes {
        if *byte == b'\\' {
            *byte = b'/';
        }
    }
    Cow::Owned(bytes)
}

/// The path of those bytes.
pub(crate) fn from_bytes(bytes: &[u8]) -> Cow<'_, Path> {
    Cow::Owned(match wtf8::path(bytes).or_else(|| wtf8::from_bytes(bytes)) {
        Some(units) => OsString::from_wide(&units).into(),
        None => PathBuf::from(String::from_utf8_lossy(bytes).into_owned()),
    })
}

/// See [`crate::user_file::is_own_folder`]; whose it is, is not asked here.
pub(crate) fn is_own_folder(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

/// See [`crate::user_file::remove_files`].
pub(crate) fn remove_files(folder: &Path, is_own: &dyn Fn(&[u8]) -> bool) -> io::Result<()> {
    if !is_own_folder(folder) {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    for name in crate::user_file::names(folder)?.iter().filter(|name| is_own(name)) {
        std::fs::remove_file(folder.join(from_bytes(name)))?;
    }
    Ok(())
}

/// See [`crate::path::require_writable`]; of a folder the attribute says nothing.
pub(crate) fn require_writable(path: &Path) -> io::Result<()> {
    let meta = std::fs::metadata(path)?;
    match meta.is_dir() || !meta.permissions().readonly() {
        true => Ok(()),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

/// The path without any link in it, from its drive or its server. The form
/// that the system gives for it is of no use to people.
pub(crate) fn canonical(path: &Path) -> io::Result<PathBuf> {
    use std::path::{Component, Prefix};
    let path = std::fs::canonicalize(path)?;
    let mut components = path.components();
    let start = match components.next() {
        Some(Component::Prefix(prefix)) => match prefix.kind() {
            Prefix::VerbatimDisk(drive) => format!("{}:\\", char::from(drive)).into(),
            Prefix::VerbatimUNC(server, share) => {
                let mut start = OsString::from("\\\\");
                start.push(server);
                start.push("\\");
                start.push(share);
                start.push("\\");
                start
            }
            _ => return Ok(path),
        },
        _ => return Ok(path),
    };
    let rest = components.as_path();
    Ok(PathBuf::from(start).join(rest.strip_prefix("\\").unwrap_or(rest)))
}

/// The kind of what is not a file, folder or link.
pub(crate) fn special_kind(_: std::fs::FileType) -> FileKind {
    FileKind::Other
}

/// Makes a folder, with the rights of the one that it is in.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    std::fs::create_dir(path)
}

/// Gives a file another name in the same folder, and waits until it has it.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let [from, to] = [system_name(from)?, system_name(to)?];
    let flags = MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH;
    // SAFETY: both end with a zero, and are only read.
    let done = unsafe { MoveFileExW(from.as_ptr(), to.as_ptr(), flags) };
    if done == 0 { Err(last_error()) } else { Ok(()) }
}

/// There is no call for it: NTFS logs names in their order.
pub(crate) fn flush_name(_: &Path) -> io::Result<()> {
    Ok(())
}

/// A path in the form that has no limit of length, with a zero behind it.
fn system_name(path: &Path) -> io::Result<Vec<u16>> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = std::fs::canonicalize(folder.unwrap_or(Path::new(".")))?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    Ok(folder.join(name).as_os_str().encode_wide().chain([0]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_one_separator() {
        assert_eq!(&*bytes(Path::new(r"ü\b\c")), "ü/b/c".as_bytes());
        assert_eq!(&*from_bytes("ü/b/c".as_bytes()), Path::new(r"ü\b\c"));
        assert_eq!(&*from_bytes(b"C:/x"), Path::new("C:/x"));
    }

    #[test]
    fn a_canonical_path_is_one_that_people_know() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("Sub")).unwrap();
        let path = canonical(&folder.path().join("Sub")).unwrap();
        assert!(!path.as_os_str().to_string_lossy().contains('?'), "{}", path.display());
        assert!(path.is_absolute() && path.is_dir() && path.ends_with("Sub"));
        assert_eq!(canonical(Path::new("C:\\")).unwrap(), Path::new("C:\\"));
    }

    #[test]
    fn a_rename_replaces() {
        let folder = tempfile::tempdir().unwrap();
        let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
        std::fs::write(&from, "new").unwrap();
        std::fs::write(&to, "old").unwrap();
        rename(&from, &to).unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), b"new");
        assert!(!from.exists());
    }
}
