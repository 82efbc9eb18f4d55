//! The product under measurement, as `speed --tree` calls it: the readers of `verify`, told
//! which way to read.

use std::path::Path;
use std::sync::atomic::AtomicU64;

use fsure_core::{Monitor, Result};
use fsure_os::read::ReadMode;

/// Opens volumes.
pub trait TreeReader: Send + Sync {
    /// Opens a volume. Its files are those of its record, or of a walk if it has none.
    fn open(&self, volume: &Path, monitor: &dyn Monitor) -> Result<Box<dyn ReadableTree>>;
}

/// The files of a volume, in an order that is the same in every run.
pub trait ReadableTree: Send + Sync {
    /// Returns true if the files are those of a record.
    fn is_recorded(&self) -> bool;

    /// Takes the first `bytes` of the files out of the page cache, and returns what is left.
    fn evict(&self, bytes: u64, monitor: &dyn Monitor) -> Result<TreePart>;

    /// Finds out how much of the first `bytes` is in the page cache.
    fn look(&self, bytes: u64, monitor: &dyn Monitor) -> Result<TreePart>;

    /// Reads and hashes the first `bytes`. `hashed` counts while it runs.
    fn read(
        &self,
        request: &TreeRequest,
        hashed: &AtomicU64,
        monitor: &dyn Monitor,
    ) -> Result<TreeRead>;
}

/// A part of a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreePart {
    /// Files of it.
    pub files: u64,
    /// Bytes of it.
    pub bytes: u64,
    /// Bytes of it in the page cache; `None` if the system does not report it.
    pub in_memory: Option<u64>,
}

/// The manner in which a volume is to be read.
#[derive(Clone, Copy, Debug)]
pub struct TreeRequest {
    /// The best way of reading to try.
    pub first_way: ReadMode,
    /// Bytes to read.
    pub bytes: u64,
    /// Readers; `None` for the number that suits the device.
    pub readers: Option<usize>,
}

/// The result of reading a volume once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TreeRead {
    /// Files read.
    pub files: u64,
    /// Files that could not be read.
    pub failed: u64,
    /// The first error.
    pub error: Option<String>,
    /// Bytes hashed.
    pub bytes: u64,
    /// Bytes of them that were read through the page cache.
    pub cached_bytes: u64,
    /// Seconds that it took.
    pub seconds: f64,
    /// Readers that it had.
    pub readers: usize,
}
