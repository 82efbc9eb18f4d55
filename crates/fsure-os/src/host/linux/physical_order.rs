//! The functions that find the location of a folder's files on the disk.

use std::os::fd::OwnedFd;

use rustix::fs::OFlags;

pub(crate) use super::extent::first_byte;
use super::file::{reports_residency, resident_pages};

/// Looking at a file's place does not count as reading it.
pub(crate) const KEEPS_ACCESS_TIME: OFlags = OFlags::NOATIME;

/// Returns true if any part of a file is in the page cache.
pub(crate) fn is_in_memory(file: &OwnedFd) -> bool {
    resident_pages(file, reports_residency(file), 0..u64::MAX).is_some_and(|pages| pages > 0)
}
