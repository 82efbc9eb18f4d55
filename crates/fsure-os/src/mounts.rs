//! Mounts that nobody else sees and that are gone with us: a thread takes itself
//! out of everybody's name space, and what it mounts then is there for itself,
//! for threads and processes that it starts afterwards, and for nobody else.
//! However the last of them ends, the kernel takes the mounts away.

use std::io;
use std::path::Path;

use crate::host::mounts as host;

/// Gives the calling thread a name space of its own, for good. Needs root.
pub fn enter() -> io::Result<()> {
    host::enter()
}

/// A mount in such a name space, taken away when this is dropped.
#[derive(Debug)]
pub struct Mount(host::Mount);

impl Mount {
    /// A tmpfs of so many bytes; with `huge`, of huge pages where a file is
    /// large enough for one (`huge=within_size`).
    pub fn tmpfs(at: &Path, size: u64, huge: bool) -> io::Result<Self> {
        host::Mount::tmpfs(at, size, huge).map(Self)
    }

    /// A folder over another one.
    pub fn bind(from: &Path, at: &Path) -> io::Result<Self> {
        host::Mount::bind(from, at).map(Self)
    }

    /// An overlay: what is written goes to `upper`, which is on one file system
    /// with `work`.
    pub fn overlay(lower: &Path, upper: &Path, work: &Path, at: &Path) -> io::Result<Self> {
        host::Mount::overlay(lower, upper, work, at).map(Self)
    }

    /// The file system on a device.
    pub fn device(device: &Path, kind: &str, at: &Path) -> io::Result<Self> {
        host::Mount::device(device, kind, at).map(Self)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}
