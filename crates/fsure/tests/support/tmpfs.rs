//! A file system in memory, of a size to be filled up: a disk that can be full
//! or gone.

use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// A mounted tmpfs, unmounted at the end.
#[derive(Debug)]
pub struct Tmpfs(PathBuf);

impl Tmpfs {
    /// Mounts one of so many KiB on a folder.
    ///
    /// # Errors
    /// Why this machine cannot do that: meant for `or_skip`.
    pub fn mount(at: &Path, kibibytes: u32) -> Result<Self, String> {
        let at = at.canonicalize().expect("resolve the mount point");
        let size = std::ffi::CString::new(format!("size={kibibytes}k")).expect("no zero byte");
        mount("fsure-test", &at, "tmpfs", MountFlags::empty(), Some(&*size))
            .map_err(|error| format!("mount a tmpfs: {error}"))?;
        Ok(Self(at))
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // Detached: a child of another test may hold it for a moment.
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}
