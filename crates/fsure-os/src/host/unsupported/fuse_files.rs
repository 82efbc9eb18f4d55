//! A file system of fsure, on systems where that is not built yet.

use std::io;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;

use crate::fuse_files::{Clocked, VirtualFs};

/// There is none.
#[derive(Debug)]
pub(crate) enum ServedFs {}

impl ServedFs {
    pub(crate) fn private(_: Arc<Clocked<impl VirtualFs>>, _: &Path) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "a simulated folder needs Linux"))
    }

    pub(crate) fn public(
        files: Arc<Clocked<impl VirtualFs>>,
        _: &str,
        at: &Path,
    ) -> io::Result<Self> {
        Self::private(files, at)
    }

    pub(crate) fn place(&self) -> &Path {
        match *self {}
    }

    pub(crate) fn start(&self, _: Command) -> io::Result<Child> {
        match *self {}
    }
}

pub(crate) fn copy_out(_: &impl VirtualFs, _: &Path) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "a simulated folder needs Linux"))
}
