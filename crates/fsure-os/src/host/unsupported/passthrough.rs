//! Stub for systems other than Linux, on which fsure serves no file system through FUSE.

use std::convert::Infallible as Never;
use std::io;
use std::path::{Path, PathBuf};

use super::private_mounts::Namespace;
use crate::passthrough::{Served, Server};

/// A folder seen through FUSE: there is none.
#[derive(Debug)]
pub struct Passthrough(Never);

impl Passthrough {
    /// Fails: only Linux has such a thing.
    pub fn mount(_: &Namespace, _: Server, _: &Path, _: (&Path, &Path)) -> io::Result<Self> {
        Err(unsupported())
    }

    /// Never called.
    pub fn path(&self) -> PathBuf {
        match self.0 {}
    }

    /// Never called.
    pub fn served(&mut self) -> Option<Served> {
        match self.0 {}
    }
}

/// Fails: only Linux has such a thing.
pub fn serve(_: &Path, _: &Path, _: bool, _: Option<i32>, _: impl io::Write) -> io::Result<()> {
    Err(unsupported())
}

fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "serving a folder through FUSE needs Linux")
}
