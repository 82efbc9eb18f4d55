//! Stub for systems other than Linux, on which fsure needs no daemon.

use std::convert::Infallible as Never;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

fn no<T>() -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "a daemon needs Linux"))
}

/// A process that was started: there is none.
#[derive(Debug)]
pub struct DetachedProcess(Never);

impl DetachedProcess {
    /// Fails: there is a daemon only on Linux.
    pub fn spawn(_: &Path, _: &[OsString], _: bool) -> io::Result<Self> {
        no()
    }

    /// Never called.
    pub fn process(&self) -> u32 {
        match self.0 {}
    }

    /// Never called.
    pub fn line(&mut self) -> io::Result<Option<String>> {
        match self.0 {}
    }

    /// Never called.
    pub fn wait(&mut self) -> io::Result<()> {
        match self.0 {}
    }

    /// Never called.
    pub fn reap(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}

/// Not known.
pub fn begun(_: u32) -> Option<u64> {
    None
}

/// Not known.
pub fn is_running(_: u32, _: u64) -> bool {
    false
}

/// Fails: there is a daemon only on Linux.
pub fn terminate(_: u32, _: u64) -> io::Result<()> {
    no()
}

/// Fails: there is a daemon only on Linux.
pub fn log(_: &str) -> io::Result<()> {
    no()
}

/// Fails: there is systemd only on Linux.
pub fn notify(_: &OsStr, _: &str) -> io::Result<()> {
    no()
}
