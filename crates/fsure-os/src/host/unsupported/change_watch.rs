//! Stub for systems other than Linux, which do not report by folders what has changed in a
//! whole file system. macOS has FSEvents, which merges and drops; Windows watches one folder
//! and its buffer overflows. A copy can rely on neither.

use std::convert::Infallible as Never;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::change_watch::Changed;

/// Hears of changes: there is none.
#[derive(Debug)]
pub(crate) struct Watch(Never);

impl Watch {
    pub(crate) fn open(_: &Path) -> io::Result<Self> {
        let why = "only Linux reports what has changed in a file system";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    pub(crate) fn take(&mut self) -> io::Result<Changed> {
        match self.0 {}
    }

    pub(crate) fn knows_links(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn wait(&self, _: Duration) -> io::Result<bool> {
        match self.0 {}
    }
}
