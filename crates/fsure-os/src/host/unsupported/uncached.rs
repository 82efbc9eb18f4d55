//! Stub for systems other than Linux, which do not charge the page cache to programs.

use std::io;
use std::path::Path;

use crate::uncached::{Failure, Options, Uncached};

pub(crate) fn run(_: &Options) -> Result<Uncached, Failure> {
    Err(Failure::Refused(unsupported()))
}

pub(crate) fn keep(_: &Path, _: u64, _: &io::Stdin) -> io::Result<()> {
    Err(unsupported())
}

fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "bounding the page cache of a command needs Linux")
}
