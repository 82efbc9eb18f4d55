//! Stub for systems other than Linux: no command takes the place of this process.

use std::ffi::OsString;
use std::io;

use crate::process_tree::CommandEnd;

pub(crate) fn run(_: &[OsString]) -> io::Result<CommandEnd> {
    Err(io::ErrorKind::Unsupported.into())
}
