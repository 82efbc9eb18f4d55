//! Stub for systems other than Linux, on which no folder in memory is put over another.

use std::convert::Infallible as Never;
use std::io;
use std::path::{Path, PathBuf};

use crate::overmount::{AlternatePaths, Elsewhere, FsSpace, Holder, MountEntry, Ram, Survey};

fn no<T>() -> io::Result<T> {
    let why = "mounting a folder in memory over another one needs Linux";
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}

/// A mount that has no place yet: there is none.
#[derive(Debug)]
pub struct Detached(Never);

impl Detached {
    /// Fails: only Linux has such a thing.
    pub fn ram(_: &Ram, _: &Path) -> io::Result<Self> {
        no()
    }

    /// Fails: only Linux has such a thing.
    pub fn xfs(_: u32, _: &Path) -> io::Result<Self> {
        no()
    }

    /// Fails: only Linux has such a thing.
    pub fn clone_of(_: &Path) -> io::Result<Self> {
        no()
    }

    /// Never called.
    pub fn path(&self) -> PathBuf {
        match self.0 {}
    }

    /// Never called.
    pub fn publish(self, _: &Path) -> io::Result<()> {
        match self.0 {}
    }

    /// Never called.
    pub fn publish_privately(self, _: &Path) -> io::Result<()> {
        match self.0 {}
    }
}

/// A file system without what is mounted in it: there is none.
#[derive(Debug)]
pub struct DetachedView(Never);

impl DetachedView {
    /// Fails: only Linux has such a thing.
    pub fn of(_: &Path, _: u64) -> io::Result<Self> {
        no()
    }

    /// Never called.
    pub fn path(&self) -> PathBuf {
        match self.0 {}
    }
}

/// Fails: only Linux has such a thing.
pub fn set_read_only(_: &Path, _: bool) -> io::Result<()> {
    no()
}

/// Fails: only Linux has such a thing.
pub fn unmount(_: &Path) -> io::Result<()> {
    no()
}

/// Never asked: there are no mount namespaces.
pub fn is_of_our_users(_: u32) -> bool {
    false
}

/// Never made.
#[derive(Debug)]
pub struct Top(Never);

#[expect(missing_docs, reason = "never made; the Linux version has the documentation")]
impl Top {
    pub fn open(_: &Path) -> io::Result<Self> {
        no()
    }

    pub fn device(&self) -> io::Result<u64> {
        match self.0 {}
    }

    pub fn space(&self) -> io::Result<FsSpace> {
        match self.0 {}
    }

    pub fn resize(&self, _: u64, _: u64) -> io::Result<()> {
        match self.0 {}
    }
}

/// Fails: only Linux is asked.
pub fn space(_: &Path) -> io::Result<FsSpace> {
    no()
}

/// Fails: only Linux is asked.
pub fn mounts(_: Option<u32>) -> io::Result<Vec<MountEntry>> {
    no()
}

/// Fails: only Linux is asked.
pub fn mount_at(_: &Path) -> io::Result<MountEntry> {
    no()
}

/// Fails: only Linux is asked.
pub fn survey(_: &Path, _: &str) -> io::Result<Survey> {
    no()
}

/// Fails: only Linux is asked.
pub fn ways(_: &Path, _: &Path) -> io::Result<AlternatePaths> {
    no()
}

/// Fails: only Linux is asked.
pub fn holders(_: &[u32], _: &dyn Fn(u64, u64) -> bool) -> io::Result<Vec<Holder>> {
    no()
}

/// Fails: only Linux is asked.
pub fn holders_of_mounts(_: &[u32], _: u64) -> io::Result<Vec<Holder>> {
    no()
}

/// Fails: only Linux is asked.
pub fn mounted_elsewhere(_: u64) -> io::Result<Vec<Elsewhere>> {
    no()
}

/// Fails: only Linux is asked.
pub fn writable_elsewhere(_: &str) -> io::Result<Vec<Elsewhere>> {
    no()
}

/// Fails: only Linux is asked.
pub fn block_devices_on(_: &dyn Fn(u64, u64) -> bool) -> io::Result<Vec<PathBuf>> {
    no()
}

/// Fails: only Linux has such a thing.
pub fn can_make_xfs() -> io::Result<()> {
    no()
}

/// Fails: only Linux has such a thing.
pub fn add_zram() -> io::Result<u32> {
    no()
}

/// Fails: only Linux has such a thing.
pub fn make_xfs(_: u32, _: u64, _: &str) -> io::Result<()> {
    no()
}

/// Fails: only Linux has such a thing.
pub fn is_xfs_of(_: u32, _: &str) -> io::Result<bool> {
    no()
}

/// Fails: only Linux has such a thing.
pub fn remove_zram(_: u32, _: &str) -> io::Result<()> {
    no()
}
