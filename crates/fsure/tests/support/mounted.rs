//! File systems that need no device: one in memory, of a size to be filled up
//! (a disk that can be full or gone), and others that the kernel makes up.

use std::ffi::CString;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// Something mounted, unmounted at the end.
#[derive(Debug)]
pub struct Mounted(PathBuf);

impl Mounted {
    /// Mounts a tmpfs of so many KiB on a folder.
    ///
    /// # Errors
    /// Why this machine cannot do that: meant for `or_skip`.
    pub fn tmpfs(at: &Path, kibibytes: u32) -> Result<Self, String> {
        Self::new("tmpfs", at, &format!("size={kibibytes}k"))
    }

    /// Shows a folder a second time, on another one.
    ///
    /// # Errors
    /// Why this machine cannot do that: meant for `or_skip`.
    pub fn bind(folder: &Path, at: &Path) -> Result<Self, String> {
        let at = at.canonicalize().expect("resolve the mount point");
        rustix::mount::mount_bind(folder, &at).map_err(|error| format!("bind mount: {error}"))?;
        Ok(Self(at))
    }

    /// Mounts a file system of this kind on a folder, with these options.
    ///
    /// # Errors
    /// Why this machine cannot do that: meant for `or_skip`.
    pub fn new(kind: &str, at: &Path, options: &str) -> Result<Self, String> {
        let at = at.canonicalize().expect("resolve the mount point");
        let options = CString::new(options).expect("no zero byte");
        mount("fsure-test", &at, kind, MountFlags::empty(), Some(&*options))
            .map_err(|error| format!("mount {kind}: {error}"))?;
        Ok(Self(at))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Detached: a child of another test may hold it for a moment.
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}
