//! Stub for systems other than Linux, on which nothing reports the operations of all
//! programs.

use std::convert::Infallible as Never;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::flush_trace::{FlushCall, FlushTraceReport};
use crate::foreground::StartError;
use crate::io_trace::{LoggedCall, TraceInterval, TraceOptions, TraceReport, TraceSource};
use crate::process_tree::CommandEnd;

/// Watches: nothing does.
pub(crate) struct Tracer(Never);

impl Tracer {
    pub(crate) fn begin(_: &TraceOptions<'_>) -> io::Result<Self> {
        Err(refused())
    }

    pub(crate) fn begin_command(_: &TraceOptions<'_>, _: &[OsString]) -> Result<Self, StartError> {
        Err(refused().into())
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

    pub(crate) fn watch_command(&mut self, _: Duration) -> io::Result<Option<CommandEnd>> {
        match self.0 {}
    }

    pub(crate) fn take_calls(&mut self, _: &mut dyn FnMut(LoggedCall)) -> bool {
        match self.0 {}
    }

    pub(crate) fn interval(&mut self) -> io::Result<TraceInterval> {
        match self.0 {}
    }

    pub(crate) fn stop(&mut self) {
        match self.0 {}
    }

    pub(crate) fn end(self, _: Option<&mut Self>) -> io::Result<TraceReport> {
        match self.0 {}
    }
}

fn refused() -> io::Error {
    let why = "only Linux reports which folders are in use";
    io::Error::new(io::ErrorKind::Unsupported, why)
}

/// Traces flushes: nothing does.
pub(crate) struct FlushTracer(Never);

impl FlushTracer {
    pub(crate) fn begin(_: &[OsString]) -> Result<Self, StartError> {
        let why = "only Linux reports the flushes of a program";
        Err(io::Error::new(io::ErrorKind::Unsupported, why).into())
    }

    pub(crate) fn watch(
        &mut self,
        _: Duration,
        _: &mut dyn FnMut(FlushCall),
    ) -> io::Result<Option<CommandEnd>> {
        match self.0 {}
    }

    pub(crate) fn end(self) -> io::Result<FlushTraceReport> {
        match self.0 {}
    }
}

/// Not known: nothing is watched here.
pub(crate) fn is_in_memory(_: &Path) -> io::Result<bool> {
    Ok(false)
}
