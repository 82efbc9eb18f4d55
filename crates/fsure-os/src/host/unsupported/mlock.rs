//! Stub for systems other than Linux, on which files are not held in memory: those systems
//! have no report such as inotify's on what became of the files.

use std::convert::Infallible as Never;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::mlock::{Held, Refused};

/// Files held in memory: there are none.
#[derive(Debug)]
pub struct Pin(Never);

impl Pin {
    /// Fails: only Linux does that.
    pub fn new(_: &Path) -> Result<Self, Refused> {
        let why = "pinning the files of a folder in memory needs Linux";
        Err(io::Error::new(io::ErrorKind::Unsupported, why).into())
    }

    /// Never called.
    pub fn lock_files(&mut self, _: u64, _: &dyn Fn() -> bool) -> Result<Held, Refused> {
        match self.0 {}
    }

    /// Never called.
    pub fn wait(&mut self, _: Duration) -> io::Result<bool> {
        match self.0 {}
    }

    /// Never called.
    pub fn is_gone(&self) -> bool {
        match self.0 {}
    }

    /// Never called.
    pub fn is_at(&self, _: &Path) -> bool {
        match self.0 {}
    }

    /// Never called.
    pub fn has_trouble(&self) -> bool {
        match self.0 {}
    }
}
