//! Where mounts of our own are not to be had, which is where no Linux is.

use std::convert::Infallible as Never;
use std::io;
use std::path::{Path, PathBuf};

use crate::mounts::What;

/// A mount namespace: there is none.
#[derive(Clone, Debug)]
pub struct Namespace(Never);

/// Something mounted: nothing is.
#[derive(Debug)]
pub struct Mount(Never);

impl Namespace {
    /// Fails: only Linux has such a thing.
    pub fn new() -> io::Result<Self> {
        let why = "only Linux mounts something that nobody else sees";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    /// Never called.
    pub fn mount(&self, _: &What, _: &Path) -> io::Result<Mount> {
        match self.0 {}
    }
}

impl Mount {
    /// Never called.
    pub fn path(&self) -> PathBuf {
        match self.0 {}
    }

    /// Never called.
    pub fn unmount(self) -> io::Result<()> {
        match self.0 {}
    }
}
