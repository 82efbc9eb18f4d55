//! Names that are durable, on Unix.

use std::fs::File;
use std::io;
use std::path::Path;

/// An open folder.
#[derive(Debug)]
pub(crate) struct Names(File);

impl Names {
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        Ok(Self(File::open(folder)?))
    }

    /// `fsync`, on macOS `F_FULLFSYNC`: of a folder there is nothing else.
    pub(crate) fn flush(&self) -> io::Result<()> {
        self.0.sync_all()
    }
}

/// See [`crate::durable_write::rename`].
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)
}
