//! Stub for systems other than Linux, on which fsure makes no mounts of its own.

use std::convert::Infallible as Never;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;

use crate::private_mounts::MountKind;
use crate::scratch_dir::Scratch;

/// A mount namespace: there is none.
#[derive(Clone, Debug)]
pub struct Namespace(pub(super) Never);

/// Something mounted: nothing is.
#[derive(Debug)]
pub struct Mount(Never);

impl Namespace {
    /// Fails: only Linux has such a thing.
    pub fn new() -> io::Result<Self> {
        let why = "mounts that only one process sees need Linux";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    /// Fails: only Linux has such a thing.
    pub fn of_user() -> io::Result<Self> {
        Self::new()
    }

    /// Never called.
    pub fn mount(&self, _: &MountKind, _: &Path) -> io::Result<Mount> {
        match self.0 {}
    }

    /// Never called.
    pub fn spawn(&self, _: Command) -> io::Result<Child> {
        match self.0 {}
    }
}

impl Mount {
    /// Never called.
    pub fn path(&self) -> PathBuf {
        match self.0 {}
    }

    /// Never called.
    pub fn unmount(self) -> io::Result<()> {
        match self.0 {}
    }
}

/// A control group: there is none.
#[derive(Debug)]
pub struct Group(Never);

impl Group {
    /// Fails: only Linux has such a thing.
    pub fn create(_: &Arc<Scratch>, _: u64) -> io::Result<Self> {
        let why = "limiting the memory of a group of processes needs Linux";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    /// Never called.
    pub fn take(&self, _: u32) -> io::Result<()> {
        match self.0 {}
    }
}

/// Fails: only Linux has process namespaces.
pub fn outer(_: u32, _: &Path, _: &[OsString]) -> io::Result<u8> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "process namespaces need Linux"))
}

/// Fails: only Linux has process namespaces.
pub fn first(_: &Path, _: &[OsString]) -> io::Result<u8> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "process namespaces need Linux"))
}
