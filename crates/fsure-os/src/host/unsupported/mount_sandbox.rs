//! Stub for systems other than Linux, on which no command can be shown folders that other
//! processes do not see.

use std::convert::Infallible as Never;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use crate::mount_sandbox::Overlay;
use crate::process_tree::CommandEnd;

fn unsupported<T>() -> io::Result<T> {
    let why = "a folder that only one command sees needs Linux";
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}

/// Name spaces: there are none.
#[derive(Debug)]
pub(crate) struct MountSandbox(Never);

impl MountSandbox {
    pub(crate) fn enter(_: &[Overlay], _: &[OsString]) -> io::Result<Self> {
        unsupported()
    }

    pub(crate) fn keep(&self, _: Command) -> io::Result<Child> {
        match self.0 {}
    }

    pub(crate) fn run(&self) -> io::Result<CommandEnd> {
        match self.0 {}
    }

    pub(crate) fn kill(&self) -> io::Result<()> {
        match self.0 {}
    }
}

/// The descriptor that reports the end of all processes in them: there is none.
#[derive(Debug)]
pub(crate) struct Alive(Never);

impl Alive {
    pub(crate) fn open(_: i32) -> io::Result<Self> {
        unsupported()
    }

    pub(crate) fn has_ended(&self, _: Duration) -> io::Result<bool> {
        match self.0 {}
    }
}

/// Returns `None`: no keeper is given anything.
pub(crate) fn named(_: i32) -> Option<PathBuf> {
    None
}

/// Returns none: no caller asks if nothing is covered.
pub(crate) fn outputs() -> Vec<PathBuf> {
    Vec::new()
}

pub(crate) fn enter_mounts(_: i32) -> io::Result<()> {
    unsupported()
}

/// Returns false: no caller asks if nothing is covered.
pub(crate) fn knows_one_user() -> bool {
    false
}
