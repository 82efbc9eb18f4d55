//! Stub for systems other than Linux, which have no zram.

use std::convert::Infallible as Never;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::private_mounts::Namespace;
use crate::scratch_dir::Scratch;

/// A zram device: there is none.
#[derive(Debug)]
pub struct Zram(Never);

impl Zram {
    /// Never called: there is no namespace.
    pub fn create(
        _: &Arc<Scratch>,
        space: &Namespace,
        _: (u64, u64),
        _: &Path,
    ) -> io::Result<Self> {
        match space.0 {}
    }

    /// Never called.
    pub fn path(&self) -> PathBuf {
        match self.0 {}
    }

    /// Never called.
    pub fn algorithm(&self) -> Option<String> {
        match self.0 {}
    }

    /// Never called.
    pub fn memory_bytes(&self) -> Option<u64> {
        match self.0 {}
    }
}
