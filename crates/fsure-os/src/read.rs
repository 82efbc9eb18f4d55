//! Reads the content of files so that the page cache is left as it was, and
//! reports the way by which that was managed.
//!
//! The ladder, from the medium itself down to "whatever the system gives":
//! direct, don't-cache, cached and dropped, cached. A file starts on the first
//! rung that its file system supports and falls one rung when a way fails in the
//! middle; it never climbs again. The rung that served a read is part of the
//! result, never assumed. The rungs are the same for all systems; each system
//! implements those that it has (`host::Handle`).

use std::io;
use std::ops::Range;
use std::sync::{OnceLock, PoisonError, RwLock};

use crate::Stat;
use crate::buffer::Buffer;
use crate::host::{File, Handle};
pub use crate::read_mode::{ReadMode, WAYS};
use crate::uncached_pages::NonResident;

/// A regular file open for reading, shared by several threads.
pub struct OpenFile<H: Handle = File> {
    pub(crate) file: H,
    /// Readers hold this for reading while they read, so that a fall to
    /// another rung never changes the descriptor under a read in flight.
    pub(crate) way: RwLock<ReadMode>,
    pub(crate) grain: u64,
    /// True if the file system vouches for direct reads of this file. One that
    /// does not (btrfs, FUSE, network, Linux before 6.1) may accept them and yet
    /// go through the page cache.
    pub(crate) is_vouched: bool,
    /// The parts that were not in the page cache before the first read through it
    /// that is to leave nothing. Unless that is the whole file, such reads prove
    /// nothing.
    pub(crate) absent: OnceLock<NonResident>,
}

/// The answer to one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadResult {
    /// Bytes read; fewer than asked for only where the file ends.
    pub bytes: usize,
    /// The way they were read, the worst where there were several. Reads
    /// through the page cache are `Cached` if something of the file was in it
    /// before, whatever they leave behind.
    pub way: ReadMode,
}

impl<H: Handle> OpenFile<H> {
    pub(crate) fn new(file: H, way: ReadMode, grain: u64, is_vouched: bool) -> Self {
        Self { file, way: RwLock::new(way), grain, is_vouched, absent: OnceLock::new() }
    }

    /// The stat of the open file.
    pub fn stat(&self) -> io::Result<Stat> {
        self.file.stat()
    }

    /// Returns true if reads take what is in the page cache.
    pub fn is_in_memory(&self) -> bool {
        *self.way.read().unwrap_or_else(PoisonError::into_inner) == ReadMode::Cached
    }

    /// Returns true if reads go past the page cache.
    pub(crate) fn is_direct(&self) -> bool {
        *self.way.read().unwrap_or_else(PoisonError::into_inner) == ReadMode::Direct
    }

    /// Positions and lengths that direct reads can have, a power of two of at
    /// least 4096 bytes.
    pub fn grain(&self) -> u64 {
        self.grain
    }

    /// Reads `wanted` bytes at `offset`, a multiple of [`OpenFile::grain`], into
    /// the start of the buffer. Fewer bytes than wanted means that the file
    /// ends there.
    pub fn read_at(
        &self,
        buffer: &mut Buffer,
        offset: u64,
        wanted: usize,
    ) -> io::Result<ReadResult> {
        assert!(offset.is_multiple_of(self.grain), "reads begin at the grain");
        assert!(wanted <= buffer.len(), "{wanted} bytes do not fit {}", buffer.len());
        self.leave_false_rung(offset..offset + wanted as u64);
        let mut filled = 0;
        let mut worst = ReadMode::Direct;
        loop {
            let way = self.way.read().unwrap_or_else(PoisonError::into_inner);
            let result = self.read_once(*way, buffer, offset, filled, wanted);
            let way_used = *way;
            drop(way);
            worst = worst.max(self.reported_as(way_used));
            match result {
                // No further than before: the file ends there.
                Ok(end) if end <= filled => return Ok(ReadResult { bytes: filled, way: worst }),
                Ok(end) => filled = end.min(wanted),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if way_used != ReadMode::Cached && H::refuses_way(&error) => {
                    self.fall_back(way_used);
                }
                Err(error) => return Err(error),
            }
            if filled == wanted {
                return Ok(ReadResult { bytes: filled, way: worst });
            }
        }
    }

    /// Returns the way that a read by this way is reported as.
    fn reported_as(&self, way: ReadMode) -> ReadMode {
        let was_absent = matches!(self.absent.get(), Some(NonResident::All));
        match way {
            ReadMode::DontCache | ReadMode::Dropped if !was_absent => ReadMode::Cached,
            way => way,
        }
    }

    /// Goes on reading after the `filled` bytes, and returns the number of bytes filled then.
    fn read_once(
        &self,
        way: ReadMode,
        buffer: &mut Buffer,
        offset: u64,
        filled: usize,
        wanted: usize,
    ) -> io::Result<usize> {
        let grain = self.grain as usize;
        let (start, end) = match way {
            // Direct reads begin at the grain, also behind one that came short,
            // and end at it; what they read beyond the wanted bytes is space in
            // the buffer, or the end of the file.
            ReadMode::Direct => (filled - filled % grain, wanted.next_multiple_of(grain)),
            _ => (filled, wanted),
        };
        if matches!(way, ReadMode::DontCache | ReadMode::Dropped) {
            self.absent.get_or_init(|| NonResident::of(&self.file));
        }
        if way == ReadMode::Direct && !self.is_vouched {
            touch(&mut buffer[filled..end]);
        }
        let target = &mut buffer[start..end];
        let position = offset + start as u64;
        if way == ReadMode::Direct {
            check_aligned(target.as_ptr(), target.len(), position, self.grain);
        }
        Ok(start + self.file.read(way, target, position)?)
    }

    /// Leaves the direct rung if its reads are not direct: btrfs accepts direct
    /// reads of packed and inline extents, and serves them through the page
    /// cache.
    pub(crate) fn leave_false_rung(&self, range: Range<u64>) {
        if self.is_vouched {
            return;
        }
        // If that cannot be determined, the reads count as direct.
        if self.is_direct() && !self.file.is_plain(range).unwrap_or(true) {
            self.fall_back(ReadMode::Direct);
        }
    }

    fn fall_back(&self, failed: ReadMode) {
        let mut way = self.way.write().unwrap_or_else(PoisonError::into_inner);
        if *way == failed {
            // If it cannot be turned off, reads go on failing and are reported.
            let _ = self.file.turn(failed, false);
            *way = next_rung(&self.file, failed);
        }
    }

    /// The next range of the file at or after `offset` that holds data rather
    /// than a hole, or `None` where there is none. `size` is the file's size;
    /// a file system that knows no holes answers with all that is left.
    pub fn next_data(&self, offset: u64, size: u64) -> io::Result<Option<(u64, u64)>> {
        if offset >= size { Ok(None) } else { self.file.next_data(offset, size) }
    }
}

/// Gives memory to read into to the process, a page at a time: a direct read of
/// btrfs does not wait for a page that was never used, but goes through the
/// page cache (measured: all 4 MiB of a first read stayed in it).
pub(crate) fn touch(target: &mut [u8]) {
    target.chunks_mut(4096).for_each(|page| page[0] = 0);
}

/// Every direct read passes here, on every system and in every build: one that
/// is not aligned is refused by some devices, read twice by others, and served
/// by Wine as if nothing were wrong, so that no test there would see it.
///
/// # Panics
///
/// If a place in memory, a length or a position is not a multiple of the grain.
pub(crate) fn check_aligned(memory: *const u8, length: usize, position: u64, grain: u64) {
    assert!(
        (memory.addr() as u64 | length as u64 | position).is_multiple_of(grain),
        "a direct read of {length} bytes at {position} to {memory:?} is not aligned to {grain}"
    );
}

impl<H: Handle> Drop for OpenFile<H> {
    fn drop(&mut self) {
        // Even don't-cache reads leave what was read ahead for one reader after
        // another had passed there: 68 of 600 MiB (measured).
        if let Some(absent) = self.absent.get() {
            absent.restore(&self.file);
        }
    }
}

/// The rung below `failed`, which is off, that this file can stand on.
pub(crate) fn next_rung<H: Handle>(file: &H, failed: ReadMode) -> ReadMode {
    // A file system that does not know it may show that only at the first read.
    if failed == ReadMode::Direct && file.turn(ReadMode::DontCache, true).is_ok() {
        return ReadMode::DontCache;
    }
    if failed < ReadMode::Dropped && is_absent(file) {
        return ReadMode::Dropped;
    }
    ReadMode::Cached
}

/// Returns true if it is known that nothing of the file is in the page cache.
fn is_absent<H: Handle>(file: &H) -> bool {
    file.resident_bytes(file.reports_residency(), 0..u64::MAX) == Some(0)
}

#[cfg(test)]
mod tests;
