//! What a file holds, read so that the page cache is left as it was, and told
//! by which way that was managed.
//!
//! The ladder, from the medium itself down to "whatever the system gives":
//! direct, don't-cache, cached and dropped, cached. A file starts on the first
//! rung its file system answers for and falls one rung when a way fails in the
//! middle; it never climbs again. Which rung served a read is part of the
//! answer, never assumed.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd as _, AsRawFd, OwnedFd};
use std::sync::{OnceLock, PoisonError, RwLock};

use rustix::fs::{OFlags, SeekFrom};
use rustix::io::{Errno, ReadWriteFlags};

use crate::absent::Absent;
use crate::buffer::Buffer;
use crate::folder::stat_descriptor;
use crate::ring::{Ring, RingRead};
use crate::{Stat, extent};

/// A way to read, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// `O_DIRECT`: past the page cache.
    Direct,
    /// `RWF_DONTCACHE` (Linux 6.14): through pages that are dropped at once.
    DontCache,
    /// Through the page cache, and dropped from it when the file is closed.
    /// Only for files of which nothing was cached before: dropping is by
    /// file, and would take other people's pages too.
    Dropped,
    /// Through the page cache. What is already there is not read from the
    /// medium.
    Cached,
}

/// All ways, best first.
pub const WAYS: [Way; 4] = [Way::Direct, Way::DontCache, Way::Dropped, Way::Cached];

/// Direct reads start and end at multiples of this. The largest logical block
/// of a common device; a file system that wants more says so in `statx`.
pub(crate) const GRAIN_MIN: u64 = 4096;

/// Linux's flag for uncached buffered reads, which rustix does not name yet.
const RWF_DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

/// A regular file open for reading, shared by several threads.
pub struct Source {
    pub(crate) file: OwnedFd,
    /// Readers hold this for reading while they read, so that a fall to
    /// another rung never changes the descriptor under a read in flight.
    pub(crate) way: RwLock<Way>,
    pub(crate) grain: u64,
    /// Whether the file system vouches for direct reads of this file. One that
    /// does not (btrfs, FUSE, network, Linux before 6.1) may take them and yet
    /// go through the page cache.
    pub(crate) is_vouched: bool,
    /// What was not in the page cache before the first read through it that is
    /// to leave nothing. Unless that is all, such reads prove nothing.
    pub(crate) absent: OnceLock<Absent>,
}

/// The answer to one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filled {
    /// Bytes read; fewer than asked for only where the file ends.
    pub bytes: usize,
    /// The way they were read, the worst where there were several. Reads
    /// through the page cache are `Cached` if something of the file was in it
    /// before, whatever they leave behind.
    pub way: Way,
}

impl Source {
    /// The stat of the open file.
    pub fn stat(&self) -> io::Result<Stat> {
        stat_descriptor(&self.file)
    }

    /// Whether reads take what is in the page cache.
    pub fn is_in_memory(&self) -> bool {
        *self.way.read().unwrap_or_else(PoisonError::into_inner) == Way::Cached
    }

    /// Whether reads go past the page cache.
    pub(crate) fn is_direct(&self) -> bool {
        *self.way.read().unwrap_or_else(PoisonError::into_inner) == Way::Direct
    }

    /// Positions and lengths that direct reads can have, a power of two of at
    /// least 4096 bytes.
    pub fn grain(&self) -> u64 {
        self.grain
    }

    /// Reads `wanted` bytes at `offset`, a multiple of [`Source::grain`], into
    /// the start of the buffer. Fewer bytes than wanted means that the file
    /// ends there.
    pub fn read_at(&self, buffer: &mut Buffer, offset: u64, wanted: usize) -> io::Result<Filled> {
        assert!(offset.is_multiple_of(self.grain), "reads begin at the grain");
        assert!(wanted <= buffer.len(), "{wanted} bytes do not fit {}", buffer.len());
        self.leave_false_rung(offset..offset + wanted as u64);
        let mut filled = 0;
        let mut worst = Way::Direct;
        loop {
            let way = self.way.read().unwrap_or_else(PoisonError::into_inner);
            let result = self.read_once(*way, buffer, offset, filled, wanted);
            let way_used = *way;
            drop(way);
            worst = worst.max(self.told(way_used));
            match result {
                Ok(0) => return Ok(Filled { bytes: filled, way: worst }),
                Ok(bytes) => filled = (filled + bytes).min(wanted),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::INVAL | Errno::OPNOTSUPP) if way_used != Way::Cached => {
                    self.fall_from(way_used);
                }
                Err(error) => return Err(error.into()),
            }
            if filled == wanted {
                return Ok(Filled { bytes: filled, way: worst });
            }
        }
    }

    /// What a read by this way may be called.
    fn told(&self, way: Way) -> Way {
        let was_absent = matches!(self.absent.get(), Some(Absent::All));
        match way {
            Way::DontCache | Way::Dropped if !was_absent => Way::Cached,
            way => way,
        }
    }

    fn read_once(
        &self,
        way: Way,
        buffer: &mut Buffer,
        offset: u64,
        filled: usize,
        wanted: usize,
    ) -> Result<usize, Errno> {
        // A direct read ends at the grain as well; what it reads beyond the
        // wanted bytes is room in the buffer, or the end of the file.
        let end = match way {
            Way::Direct => wanted.next_multiple_of(self.grain as usize).min(buffer.len()),
            _ => wanted,
        };
        if matches!(way, Way::DontCache | Way::Dropped) {
            self.absent.get_or_init(|| Absent::of(&self.file));
        }
        let target = &mut buffer[filled..end];
        if way == Way::Direct && !self.is_vouched {
            touch(target);
        }
        let position = offset + filled as u64;
        match way {
            Way::DontCache => {
                let target = &mut [io::IoSliceMut::new(target)];
                rustix::io::preadv2(&self.file, target, position, RWF_DONTCACHE)
            }
            _ => rustix::io::pread(&self.file, target, position),
        }
    }

    /// Reads whole files, each from its start to its own place in the buffer,
    /// in one go. Only for sources on the direct rung; the answer is `None`
    /// for the others and for what came short or by a way that failed, which
    /// is then to be read by itself. An error is what the medium said.
    ///
    /// `wanted` has the source, its place and its length; places lie at
    /// multiples of the grain and leave room up to the next one.
    pub fn read_whole(
        ring: &mut Ring,
        buffer: &mut Buffer,
        wanted: &[(&Self, usize, usize)],
    ) -> Vec<Option<io::Result<Filled>>> {
        for (source, at, length) in wanted.iter().filter(|(source, ..)| !source.is_vouched) {
            source.leave_false_rung(0..*length as u64);
            touch(&mut buffer[*at..at + length]);
        }
        let locked: Vec<_> = wanted
            .iter()
            .map(|(source, ..)| source.way.read().unwrap_or_else(PoisonError::into_inner))
            .collect();
        let directs =
            wanted.iter().zip(&locked).map(|(wanted, way)| (wanted, **way == Way::Direct));
        let reads: Vec<_> = directs
            .clone()
            .filter(|(_, is_direct)| *is_direct)
            .map(|((source, at, length), _)| RingRead {
                file: source.file.as_raw_fd(),
                at: *at,
                length: length.next_multiple_of(source.grain as usize),
            })
            .collect();
        let mut answers = ring.read_all(buffer, &reads).into_iter();
        directs
            .map(|((_, _, length), is_direct)| match is_direct.then(|| answers.next())?? {
                Ok(bytes) if bytes < *length => None,
                Ok(_) => Some(Ok(Filled { bytes: *length, way: Way::Direct })),
                Err(error) => (!is_of_the_way(&error)).then_some(Err(error)),
            })
            .collect()
    }

    /// Leaves the direct rung where it is none: btrfs takes direct reads of
    /// packed and inline extents, and answers them through the page cache.
    fn leave_false_rung(&self, range: Range<u64>) {
        if self.is_vouched {
            return;
        }
        // Who cannot say is believed.
        if self.is_direct() && !extent::is_plain(self.file.as_fd(), range).unwrap_or(true) {
            self.fall_from(Way::Direct);
        }
    }

    fn fall_from(&self, failed: Way) {
        let mut way = self.way.write().unwrap_or_else(PoisonError::into_inner);
        if *way == failed {
            *way = next_rung(&self.file, failed);
        }
    }

    /// The next range of the file at or after `offset` that holds data rather
    /// than a hole, or `None` where there is none. `size` is the file's size;
    /// a file system that knows no holes answers with all that is left.
    pub fn next_data(&self, offset: u64, size: u64) -> io::Result<Option<(u64, u64)>> {
        if offset >= size {
            return Ok(None);
        }
        // `seek` moves the descriptor's own position, which nobody uses.
        let start = match rustix::fs::seek(&self.file, SeekFrom::Data(offset)) {
            Ok(start) => start,
            Err(Errno::NXIO) => return Ok(None),
            Err(_) => return Ok(Some((offset, size))),
        };
        let end = rustix::fs::seek(&self.file, SeekFrom::Hole(start)).unwrap_or(size);
        Ok((start < size).then_some((start, end.min(size))))
    }
}

/// Gives memory to read into to the process, a page at a time: a direct read of
/// btrfs does not wait for a page that was never used, but goes through the
/// page cache (measured: all 4 MiB of a first read stayed in it).
fn touch(target: &mut [u8]) {
    target.chunks_mut(4096).for_each(|page| page[0] = 0);
}

/// Whether an error says that this way of reading is not to be had, rather
/// than something of the medium.
fn is_of_the_way(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::AGAIN | Errno::INVAL | Errno::OPNOTSUPP | Errno::INTR)
    )
}

impl Drop for Source {
    fn drop(&mut self) {
        // Even don't-cache reads leave what was read ahead for one reader after
        // another had passed there: 68 of 600 MiB (measured).
        if let Some(absent) = self.absent.get() {
            absent.restore(&self.file);
        }
    }
}

/// Turns `O_DIRECT` on or off, unless it is as wanted.
pub(crate) fn set_direct(file: &OwnedFd, is_direct: bool, wanted: bool) -> io::Result<()> {
    if is_direct != wanted {
        let mut flags = rustix::fs::fcntl_getfl(file)?;
        flags.set(OFlags::DIRECT, wanted);
        rustix::fs::fcntl_setfl(file, flags)?;
    }
    Ok(())
}

/// The rung below `failed` that this file can stand on.
pub(crate) fn next_rung(file: &OwnedFd, failed: Way) -> Way {
    if failed == Way::Direct {
        // Where it cannot be turned off, reads go on failing and are told.
        let _ = set_direct(file, true, false);
        // Whether the file system knows it shows at the first read.
        return Way::DontCache;
    }
    if failed == Way::DontCache && is_absent(file) {
        return Way::Dropped;
    }
    Way::Cached
}

/// Whether the file system takes the flag, asked by reading where no file has
/// anything: asked where there is something, it would read ahead.
pub(crate) fn knows_dontcache(file: &OwnedFd) -> bool {
    let mut byte = [0];
    let target = &mut [io::IoSliceMut::new(&mut byte)];
    rustix::io::preadv2(file, target, 1 << 62, RWF_DONTCACHE).is_ok()
}

/// Whether nothing of the file is known to be in the page cache.
fn is_absent(file: &OwnedFd) -> bool {
    resident_pages(file, tells_residency(file), 0..u64::MAX) == Some(0)
}

/// Whether the file system can be asked for pages in the cache. An overlay's
/// belong to the file below and are counted as 0.
pub(crate) fn tells_residency(file: &OwnedFd) -> bool {
    const OVERLAYFS_SUPER_MAGIC: i64 = 0x794c_7630;
    rustix::fs::fstatfs(file).is_ok_and(|answer| answer.f_type != OVERLAYFS_SUPER_MAGIC)
}

/// How many of a range's pages are in the page cache, `cachestat(2)`, Linux
/// 6.5. `None` where the kernel does not say, which includes files of others
/// that we may not write. `is_told` is the answer of [`tells_residency`].
pub(crate) fn resident_pages(file: &OwnedFd, is_told: bool, range: Range<u64>) -> Option<u64> {
    const SYS_CACHESTAT: libc::c_long = 451;
    if !is_told {
        return None;
    }
    let range = [range.start, range.end - range.start];
    let mut answer = [0_u64; 5];
    // SAFETY: `range` is a `cachestat_range` (offset, length) and
    // `answer` a `cachestat` of five counters, both alive during the call.
    let done = unsafe {
        libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), range.as_ptr(), answer.as_mut_ptr(), 0)
    };
    (done == 0).then_some(answer[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::Root;
    use crate::opener::Opener;
    use rustix::fs::Advice;
    use std::path::Path;
    use std::sync::Arc;

    const ALL: Range<u64> = 0..u64::MAX;

    fn folder_on_disk() -> tempfile::TempDir {
        tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
    }

    /// Says so where the test harness does not swallow it.
    fn did_not_run(test: &str, why: &str) {
        use std::io::Write as _;
        let line = format!("DID NOT RUN: {test}: {why}\n");
        std::io::stderr().write_all(line.as_bytes()).unwrap();
        if let Some(file) = std::env::var_os("FSURE_SKIPPED") {
            let log = std::fs::OpenOptions::new().append(true).create(true).open(file);
            log.and_then(|mut log| log.write_all(line.as_bytes())).unwrap();
        }
    }

    fn open(root: &Arc<Root>, path: &[u8], first: Way) -> io::Result<Source> {
        Ok(Opener::new(Arc::clone(root), first).open(path, false)?.0)
    }

    fn pattern(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at / 7 + at % 251) as u8).collect()
    }

    #[test]
    fn every_rung_gives_the_same_bytes_at_every_boundary() {
        const MIB: usize = 1 << 20;
        let folder = folder_on_disk();
        let root = Arc::new(Root::open(folder.path()).unwrap());
        let mut buffer = Buffer::new(8 * MIB).unwrap();
        for length in [0, 1, 511, 4095, 4096, 4097, MIB - 1, MIB, MIB + 1, 4 * MIB + 4097] {
            let content = pattern(length);
            std::fs::write(folder.path().join("f"), &content).unwrap();
            for first in WAYS {
                let source = open(&root, b"f", first).unwrap();
                let filled = source.read_at(&mut buffer, 0, length).unwrap();
                assert_eq!(filled.bytes, length);
                assert!(buffer[..length] == content, "{length} bytes, {first:?}");
                assert!(filled.way >= first);
            }
        }
    }

    #[test]
    fn direct_reads_leave_the_page_cache_alone() {
        let folder = folder_on_disk();
        let path = folder.path().join("f");
        std::fs::write(&path, pattern(5 << 20)).unwrap();
        let root = Arc::new(Root::open(folder.path()).unwrap());
        let file = std::fs::File::open(&path).unwrap();
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        let file = OwnedFd::from(file);
        let Some(0) = resident_pages(&file, true, ALL) else {
            return did_not_run("direct_reads_leave_the_page_cache_alone", "residency is not told");
        };
        let mut buffer = Buffer::new(8 << 20).unwrap();
        for first in [Way::Direct, Way::DontCache, Way::Dropped] {
            let source = open(&root, b"f", first).unwrap();
            let filled = source.read_at(&mut buffer, 0, 5 << 20).unwrap();
            drop(source);
            assert_eq!(filled.bytes, 5 << 20);
            assert_ne!(filled.way, Way::Cached);
            assert_eq!(resident_pages(&file, true, ALL), Some(0), "{first:?} was {:?}", filled.way);
        }
    }

    /// Reads that leave nothing behind still take what is there.
    #[test]
    fn what_was_in_memory_is_never_called_uncached() {
        let folder = folder_on_disk();
        std::fs::write(folder.path().join("f"), pattern(5 << 20)).unwrap();
        let root = Arc::new(Root::open(folder.path()).unwrap());
        let mut buffer = Buffer::new(8 << 20).unwrap();
        for first in [Way::DontCache, Way::Dropped, Way::Cached] {
            let source = open(&root, b"f", first).unwrap();
            let filled = source.read_at(&mut buffer, 0, 5 << 20).unwrap();
            assert_eq!(filled, Filled { bytes: 5 << 20, way: Way::Cached }, "{first:?}");
        }
    }

    #[test]
    fn what_others_have_cached_stays() {
        let folder = folder_on_disk();
        let path = folder.path().join("f");
        std::fs::write(&path, pattern(5 << 20)).unwrap();
        let file = OwnedFd::from(std::fs::File::open(&path).unwrap());
        let before = resident_pages(&file, true, ALL);
        let root = Arc::new(Root::open(folder.path()).unwrap());
        let mut buffer = Buffer::new(8 << 20).unwrap();
        for first in WAYS {
            let source = open(&root, b"f", first).unwrap();
            source.read_at(&mut buffer, 0, 5 << 20).unwrap();
            drop(source);
            assert_eq!(resident_pages(&file, true, ALL), before);
        }
    }

    #[test]
    fn what_is_in_memory_is_used_only_on_request_and_stays() {
        let folder = folder_on_disk();
        let path = folder.path().join("f");
        std::fs::write(&path, pattern(8 << 20)).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        file.sync_all().unwrap();
        let file = OwnedFd::from(file);
        let root = Arc::new(Root::open(folder.path()).unwrap());
        let mut buffer = Buffer::new(8 << 20).unwrap();
        let mut read = |uses_cache| {
            let (source, _) =
                Opener::new(Arc::clone(&root), Way::Direct).open(b"f", uses_cache).unwrap();
            source.read_at(&mut buffer, 0, 8 << 20).unwrap().way
        };
        let all = resident_pages(&file, true, ALL);
        let Some(2048) = all else {
            return did_not_run("what_is_in_memory_is_used", "residency is not told");
        };
        assert_eq!((read(false), resident_pages(&file, true, ALL)), (Way::Direct, all));
        assert_eq!((read(true), resident_pages(&file, true, ALL)), (Way::Cached, all));
        rustix::fs::fadvise(&file, 4 << 20, None, Advice::DontNeed).unwrap();
        let half = resident_pages(&file, true, ALL);
        assert!(half < all, "{half:?} of {all:?} pages");
        // Half of it is from memory, so all of it is called that.
        assert_eq!((read(true), resident_pages(&file, true, ALL)), (Way::Cached, half));
    }

    #[test]
    fn memory_is_never_called_a_medium() {
        let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
            return did_not_run("memory_is_never_called_a_medium", "there is no /dev/shm");
        };
        std::fs::write(folder.path().join("f"), "12345").unwrap();
        let root = Arc::new(Root::open(folder.path()).unwrap());
        let source = open(&root, b"f", Way::Direct).unwrap();
        let mut buffer = Buffer::new(4096).unwrap();
        assert_eq!(
            source.read_at(&mut buffer, 0, 5).unwrap(),
            Filled { bytes: 5, way: Way::Cached }
        );
    }

    #[test]
    fn holes_are_seen() {
        let folder = folder_on_disk();
        let file = std::fs::File::create(folder.path().join("f")).unwrap();
        file.set_len(10 << 20).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[1; 4096], 4 << 20).unwrap();
        let root = Arc::new(Root::open(folder.path()).unwrap());
        let source = open(&root, b"f", Way::Direct).unwrap();
        let (start, end) = source.next_data(0, 10 << 20).unwrap().unwrap();
        assert!(start <= 4 << 20 && end >= (4 << 20) + 4096 && end - start < 2 << 20);
        assert_eq!(source.next_data(end, 10 << 20).unwrap(), None);
        assert_eq!(source.next_data(10 << 20, 10 << 20).unwrap(), None);
    }

    #[test]
    fn only_regular_files_are_opened() {
        let root = Arc::new(Root::open(Path::new("/dev")).unwrap());
        let refused = open(&root, b"null", Way::Direct).err().unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    }
}
