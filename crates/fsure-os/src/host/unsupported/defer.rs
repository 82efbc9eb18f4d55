//! Stub for systems other than Linux, on which the flushes of a command are not deferred.

use std::io;
use std::path::{Path, PathBuf};

use crate::defer::{Deferred, MountedFs, Options};

pub(crate) fn mount_of(_: &Path) -> io::Result<MountedFs> {
    Err(unsupported())
}

pub(crate) fn run(_: &Options, _: &dyn Fn(&str)) -> io::Result<Deferred> {
    Err(unsupported())
}

pub(crate) fn outlive(_: &[PathBuf], _: impl io::Read) -> io::Result<()> {
    Err(unsupported())
}

fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "deferring the flushes of a command needs Linux")
}
