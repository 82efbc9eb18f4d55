//! Stub for systems other than Linux, on which nothing reports the operations of all
//! programs.

use std::convert::Infallible as Never;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::io_trace::{TraceReport, TraceSource};

/// Watches: nothing does.
pub(crate) struct Tracer(Never);

impl Tracer {
    pub(crate) fn begin(_: &[PathBuf], _: Option<TraceSource>) -> io::Result<Self> {
        let why = "only Linux reports which folders are in use";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    pub(crate) fn source(&self) -> TraceSource {
        match self.0 {}
    }

    pub(crate) fn fell_back(&self) -> Option<&str> {
        match self.0 {}
    }

    pub(crate) fn watch(&mut self, _: Duration) -> io::Result<()> {
        match self.0 {}
    }

    pub(crate) fn end(self) -> io::Result<TraceReport> {
        match self.0 {}
    }
}

/// Not known: nothing is watched here.
pub(crate) fn is_in_memory(_: &Path) -> io::Result<bool> {
    Ok(false)
}
