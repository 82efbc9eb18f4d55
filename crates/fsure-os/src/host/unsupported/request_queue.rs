//! Stands for direct requests in a queue, which only Linux has.

use std::io;
use std::path::Path;

use crate::buffer::Buffer;
use crate::request_queue::{Engine, QueueShape, Requests};

/// A file that cannot be opened.
#[derive(Debug)]
pub(crate) enum DirectFile {}

impl DirectFile {
    pub(crate) fn create(_path: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn open_own(_path: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn open_device(_path: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn bytes(&self) -> io::Result<u64> {
        match *self {}
    }

    pub(crate) fn reserve(&self, _from: u64, _to: u64) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn run(
        &self,
        _shape: &QueueShape,
        _memory: &mut Buffer,
        _requests: &dyn Requests,
    ) -> io::Result<()> {
        match *self {}
    }
}

/// The one that needs nothing of the system.
pub(crate) fn best_engine() -> Engine {
    Engine::Threads
}
