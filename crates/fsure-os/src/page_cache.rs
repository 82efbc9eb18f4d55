//! Helpers for measurements of streams, beside reading and writing: the part of a
//! file that is in memory, how to remove it from there, and the way from
//! `/dev/zero` to `/dev/null`.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};

use crate::host::Handle;
use crate::read::OpenFile;

impl<H: Handle> OpenFile<H> {
    /// Bytes of the file that are in the page cache, in whole pages; `None`
    /// where that is not reported.
    pub fn in_memory(&self) -> Option<u64> {
        self.file.resident_bytes(self.file.reports_residency(), 0..u64::MAX)
    }

    /// Requests the system to drop what is in the page cache. It keeps what is
    /// not written yet, and may keep more: [`OpenFile::in_memory`] returns what is
    /// left.
    pub fn evict(&self) {
        self.file.drop_cached(0..u64::MAX);
    }
}

/// Empties the page cache of the whole machine, of the files of all programs. Needs root; only
/// Linux has it, and elsewhere it fails with `Unsupported`.
pub fn purge() -> io::Result<()> {
    crate::host::memory_info::purge_page_cache()
}

/// Zeros from the system, to nowhere.
#[derive(Debug)]
pub struct NullSink {
    zeros: File,
    nowhere: File,
}

impl NullSink {
    /// Opens both ends; fails where the system has no such files.
    pub fn open() -> io::Result<Self> {
        let zeros = File::open("/dev/zero")?;
        Ok(Self { zeros, nowhere: OpenOptions::new().write(true).open("/dev/null")? })
    }

    /// Moves as many bytes as fit the block.
    pub fn pass(&mut self, block: &mut [u8]) -> io::Result<()> {
        self.zeros.read_exact(block)?;
        self.nowhere.write_all(block)
    }
}
