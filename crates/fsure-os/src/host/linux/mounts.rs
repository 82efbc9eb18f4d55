//! A name space of mounts of one thread's own. All that is mounted in it goes
//! with the last process that is in it, and nobody else ever sees it.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, unmount,
};
use rustix::thread::UnshareFlags;

/// Takes the calling thread out of everybody's name space.
pub(crate) fn enter() -> io::Result<()> {
    // SAFETY: a name space of mounts is no descriptor table: nothing that another
    // thread holds is taken from it.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }.map_err(no_right)?;
    let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    Ok(mount_change("/", flags)?)
}

fn no_right(error: rustix::io::Errno) -> io::Error {
    let error = io::Error::from(error);
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            io::Error::new(io::ErrorKind::PermissionDenied, "to mount needs root")
        }
        _ => error,
    }
}

/// A mount, gone when this is dropped.
#[derive(Debug)]
pub(crate) struct Mount {
    path: PathBuf,
}

impl Mount {
    pub(crate) fn tmpfs(path: &Path, size: u64, huge: bool) -> io::Result<Self> {
        let huge = if huge { ",huge=within_size" } else { "" };
        Self::new("tmpfs", path, "tmpfs", &format!("size={size},mode=0700{huge}"))
    }

    pub(crate) fn bind(from: &Path, path: &Path) -> io::Result<Self> {
        mount_bind(from, path)?;
        Ok(Self { path: path.to_owned() })
    }

    pub(crate) fn overlay(
        lower: &Path,
        upper: &Path,
        work: &Path,
        path: &Path,
    ) -> io::Result<Self> {
        let parts = [lower, upper, work].map(|path| path.as_os_str().as_bytes().escape());
        let [lower, upper, work] = parts;
        let data = format!("lowerdir={lower},upperdir={upper},workdir={work}");
        Self::new("overlay", path, "overlay", &data)
    }

    pub(crate) fn device(device: &Path, kind: &str, path: &Path) -> io::Result<Self> {
        Self::new(device, path, kind, "")
    }

    fn new(
        source: impl rustix::path::Arg,
        path: &Path,
        kind: &str,
        data: &str,
    ) -> io::Result<Self> {
        let flags = MountFlags::NODEV | MountFlags::NOSUID | MountFlags::NOATIME;
        let data = CString::new(data)?;
        mount(source, path, kind, flags, Some(data.as_c_str()))?;
        Ok(Self { path: path.to_owned() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Mount {
    /// Never lazily: what is still open would be written to nowhere.
    fn drop(&mut self) {
        const ATTEMPTS: u32 = 50;
        const PAUSE: Duration = Duration::from_millis(20);
        for _ in 0..ATTEMPTS {
            match unmount(&self.path, UnmountFlags::NOFOLLOW) {
                // A file that was just closed may be in use a moment longer.
                Err(rustix::io::Errno::BUSY) => sleep(PAUSE),
                // Where it fails, the end of the process takes it.
                _ => return,
            }
        }
    }
}

/// Paths among the options of an overlay.
trait Escape {
    fn escape(&self) -> String;
}

impl Escape for [u8] {
    fn escape(&self) -> String {
        let mut escaped = String::new();
        for part in String::from_utf8_lossy(self).chars() {
            if matches!(part, ',' | ':' | '\\') {
                escaped.push('\\');
            }
            escaped.push(part);
        }
        escaped
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::did_not_run;
    use super::*;

    #[test]
    fn nobody_else_sees_our_mounts_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(&path).unwrap();
            path
        };
        let (memory, bound, both) = (at("memory, 1:a"), at("bound"), at("both"));
        std::fs::write(at("lower").join("below"), "x").unwrap();
        let seen = std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                enter()?;
                let tmpfs = Mount::tmpfs(&memory, 1 << 20, true)?;
                let bind = Mount::bind(&memory, &bound)?;
                std::fs::write(memory.join("file"), "in memory")?;
                assert_eq!(std::fs::read(bind.path().join("file"))?, b"in memory");
                let [upper, work] = ["upper", "work"].map(|name| memory.join(name));
                std::fs::create_dir(&upper)?;
                std::fs::create_dir(&work)?;
                let overlay = Mount::overlay(&folder.path().join("lower"), &upper, &work, &both)?;
                std::fs::write(overlay.path().join("above"), "y")?;
                assert!(both.join("below").exists() && upper.join("above").exists());
                let elsewhere = scope_of_others(&memory);
                drop((overlay, bind, tmpfs));
                assert!(!memory.join("file").exists(), "unmounted");
                io::Result::Ok(elsewhere)
            });
            inside.join().unwrap()
        });
        match seen {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let why = error.to_string();
                did_not_run("nobody_else_sees_our_mounts", &why);
            }
            seen => assert!(!seen.unwrap(), "seen from outside"),
        }
    }

    /// Whether the file is there for the process's first name space.
    fn scope_of_others(memory: &Path) -> bool {
        let path = format!("/proc/{}/root{}/file", std::process::id(), memory.display());
        Path::new(&path).exists()
    }
}
