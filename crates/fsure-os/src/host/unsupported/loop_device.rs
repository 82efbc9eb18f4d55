//! Loop devices, on systems that have none.

use std::convert::Infallible as Never;
use std::io;
use std::path::Path;

use crate::loop_device::{LoopError, Reliance};

/// There is none.
pub(crate) struct Attached(Never);

impl Attached {
    pub(crate) fn new(_: &Path, _: &Path) -> Result<Self, LoopError> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "a loop device needs Linux").into())
    }

    pub(crate) fn node(&self) -> &Path {
        match self.0 {}
    }

    pub(crate) fn send_flush(&mut self) -> Result<(), LoopError> {
        match self.0 {}
    }

    pub(crate) fn note_mount(&mut self) -> Result<(), LoopError> {
        match self.0 {}
    }

    pub(crate) fn sync_file(&mut self) -> Result<(), LoopError> {
        match self.0 {}
    }

    pub(crate) fn check(&mut self, _: Reliance) -> Result<u64, LoopError> {
        match self.0 {}
    }
}
