//! Mounts of our own, on systems where that is not built yet.

use std::io;
use std::path::Path;

pub(crate) fn enter() -> io::Result<()> {
    Err(unsupported())
}

/// There is none.
#[derive(Debug)]
pub(crate) enum Mount {}

impl Mount {
    pub(crate) fn tmpfs(_: &Path, _: u64, _: bool) -> io::Result<Self> {
        Err(unsupported())
    }

    pub(crate) fn bind(_: &Path, _: &Path) -> io::Result<Self> {
        Err(unsupported())
    }

    pub(crate) fn overlay(_: &Path, _: &Path, _: &Path, _: &Path) -> io::Result<Self> {
        Err(unsupported())
    }

    pub(crate) fn device(_: &Path, _: &str, _: &Path) -> io::Result<Self> {
        Err(unsupported())
    }

    pub(crate) fn path(&self) -> &Path {
        match *self {}
    }
}

fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "mounts of our own need Linux")
}
