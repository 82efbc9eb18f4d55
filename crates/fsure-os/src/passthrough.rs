//! A view of a folder through FUSE that changes nothing: what it costs to have
//! a program of one's own in the way, with every byte carried through it or,
//! where the kernel takes that, with reads and writes handed to the file below
//! (`FUSE_PASSTHROUGH`, Linux 6.9).

use std::io;
use std::path::Path;

use crate::host::passthrough as host;

/// A view, gone when this is dropped or the process ends: names below it then
/// answer with an error until it is unmounted, unless it was mounted in a name
/// space of our own ([`crate::mounts`]).
#[derive(Debug)]
pub struct Passthrough(host::Passthrough);

impl Passthrough {
    /// Shows the folder `from` at the folder `at`. With `in_kernel`, reads and
    /// writes are handed over where the kernel takes that, which only root may
    /// ask for.
    pub fn mount(from: &Path, at: &Path, in_kernel: bool) -> io::Result<Self> {
        host::Passthrough::mount(from, at, in_kernel).map(Self)
    }

    /// Files that the kernel has read and written by itself since; none where it
    /// refused.
    pub fn handed_over(&self) -> u64 {
        self.0.handed_over()
    }
}
