//! Reads files past the page cache on Linux, and reports what is in it.

use std::io::{self, IoSliceMut};
use std::num::NonZero;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Advice, AtFlags, OFlags, Statx, StatxFlags};
use rustix::io::{Errno, ReadWriteFlags};

use super::extent;
use super::root_dir::{MASK, stat_descriptor, stat_from};
use crate::Stat;
use crate::host::root_dir::Root;
use crate::host::unix::{self, if_stale};
use crate::host::{Handle, OpenedFile};
use crate::read_mode::{GRAIN_MIN, ReadMode};

/// The flag for uncached buffered reads, which rustix does not name yet.
pub(super) const RWF_DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

/// An open file.
pub struct File(OwnedFd);

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for File {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl Handle for File {
    const REPORTS_RESIDENCY: bool = true;

    fn stat(&self) -> io::Result<Stat> {
        stat_descriptor(self)
    }

    fn turn(&self, way: ReadMode, on: bool) -> io::Result<()> {
        if way == ReadMode::Direct {
            let mut flags = rustix::fs::fcntl_getfl(self)?;
            flags.set(OFlags::DIRECT, on);
            rustix::fs::fcntl_setfl(self, flags)?;
        }
        Ok(())
    }

    fn read(&self, way: ReadMode, target: &mut [u8], position: u64) -> io::Result<usize> {
        let result = match way {
            ReadMode::DontCache => {
                let target = &mut [IoSliceMut::new(target)];
                rustix::io::preadv2(self, target, position, RWF_DONTCACHE)
            }
            _ => rustix::io::pread(self, target, position),
        };
        Ok(result?)
    }

    fn refuses_way(error: &io::Error) -> bool {
        let errno = Errno::from_io_error(error);
        // The last two are those of a kernel (Linux before 4.6) or a container without
        // `preadv2`. An error of the medium is none of these.
        let refused = [Errno::AGAIN, Errno::INVAL, Errno::OPNOTSUPP, Errno::NOSYS, Errno::PERM];
        errno.is_some_and(|errno| refused.contains(&errno))
    }

    fn has_medium(&self) -> bool {
        const TMPFS_MAGIC: i64 = 0x0102_1994;
        const RAMFS_MAGIC: i64 = 0x8584_58f6;
        const HUGETLBFS_MAGIC: i64 = 0x9584_58f6;
        let Ok(answer) = rustix::fs::fstatfs(self) else {
            return true;
        };
        !matches!(answer.f_type, TMPFS_MAGIC | RAMFS_MAGIC | HUGETLBFS_MAGIC)
    }

    /// Asked by reading where no file has anything: asked where there is
    /// something, it would read ahead.
    fn knows_dontcache(&self) -> bool {
        self.read(ReadMode::DontCache, &mut [0], 1 << 62).is_ok()
    }

    fn reports_residency(&self) -> bool {
        reports_residency(self)
    }

    fn resident_bytes(&self, is_reported: bool, range: Range<u64>) -> Option<u64> {
        Some(resident_pages(self, is_reported, range)? * rustix::param::page_size() as u64)
    }

    fn drop_cached(&self, range: Range<u64>) {
        // No length is all that follows.
        let length = NonZero::new(range.end - range.start).filter(|_| range.end != u64::MAX);
        let _ = rustix::fs::fadvise(self, range.start, length, Advice::DontNeed);
    }

    fn is_plain(&self, range: Range<u64>) -> io::Result<bool> {
        extent::is_plain(self.as_fd(), range)
    }

    fn next_data(&self, offset: u64, size: u64) -> io::Result<Option<(u64, u64)>> {
        unix::next_data(&self.0, offset, size)
    }
}

/// Returns true if the file system can report the pages in the cache. The pages of an
/// overlay belong to the file below and are counted as 0.
pub(crate) fn reports_residency(file: impl AsFd) -> bool {
    const OVERLAYFS_SUPER_MAGIC: i64 = 0x794c_7630;
    rustix::fs::fstatfs(file).is_ok_and(|answer| answer.f_type != OVERLAYFS_SUPER_MAGIC)
}

/// Returns the number of a range's pages that are in the page cache (`cachestat(2)`, Linux
/// 6.5); `None` if the kernel does not report it, which includes files of other users that
/// this process cannot write. `is_reported` is the result of [`reports_residency`].
pub(crate) fn resident_pages(file: impl AsFd, is_reported: bool, range: Range<u64>) -> Option<u64> {
    const SYS_CACHESTAT: libc::c_long = 451;
    if !is_reported {
        return None;
    }
    let range = [range.start, range.end - range.start];
    let mut answer = [0_u64; 5];
    let file = file.as_fd().as_raw_fd();
    // SAFETY: `range` is a `cachestat_range` (offset, length) and
    // `answer` a `cachestat` of five counters, both alive during the call.
    let done =
        unsafe { libc::syscall(SYS_CACHESTAT, file, range.as_ptr(), answer.as_mut_ptr(), 0) };
    (done == 0).then_some(answer[0])
}

impl Root {
    /// Opens a file of `size` bytes without asking for its stat; `None` if not all of these
    /// bytes are in the page cache.
    pub(crate) fn open_if_resident(
        &self,
        path: &[u8],
        size: u64,
        keeps_access_times: &AtomicBool,
    ) -> io::Result<Option<File>> {
        let (file, _) = self.open_to_read(path, false, keeps_access_times)?;
        let resident = file.resident_bytes(true, 0..u64::MAX);
        Ok(resident.is_some_and(|resident| resident >= size).then_some(file))
    }

    /// Opens a file to read it, with `O_DIRECT` at once if it is wanted and
    /// taken. `keeps_access_times` is cleared once access times cannot be kept
    /// back (files of others).
    pub(crate) fn open_file(
        &self,
        path: &[u8],
        wants_direct: bool,
        keeps_access_times: &AtomicBool,
    ) -> io::Result<OpenedFile<File>> {
        let (file, is_direct) = self.open_to_read(path, wants_direct, keeps_access_times)?;
        let mask = MASK | StatxFlags::DIOALIGN;
        let answer = rustix::fs::statx(&file, c"", AtFlags::EMPTY_PATH, mask)
            .map_err(|error| if_stale(error.into()))?;
        Ok(OpenedFile {
            file,
            stat: stat_from(&answer),
            grain: direct_grain(&answer),
            is_vouched: vouches_for_direct(&answer),
            is_direct,
        })
    }

    /// Opens a file, and returns true beside it if its reads are direct.
    fn open_to_read(
        &self,
        path: &[u8],
        wants_direct: bool,
        keeps_access_times: &AtomicBool,
    ) -> io::Result<(File, bool)> {
        let mut flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        if keeps_access_times.load(Ordering::Relaxed) {
            flags |= OFlags::NOATIME;
        }
        if wants_direct {
            flags |= OFlags::DIRECT;
        }
        loop {
            match self.open_at(path, flags) {
                Ok(file) => return Ok((File(file), flags.contains(OFlags::DIRECT))),
                Err(error) if is_refused(&error) && flags.contains(OFlags::NOATIME) => {
                    keeps_access_times.store(false, Ordering::Relaxed);
                    flags -= OFlags::NOATIME;
                }
                Err(error) if is_invalid(&error) && flags.contains(OFlags::DIRECT) => {
                    flags -= OFlags::DIRECT;
                }
                Err(error) => return Err(if_stale(error)),
            }
        }
    }
}

fn is_refused(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::PERM)
}

fn is_invalid(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::INVAL)
}

/// The grain of direct reads, unless the file system says outright that this
/// file cannot be read directly (encrypted, verity, inline data), whatever
/// flags it lets through.
fn direct_grain(answer: &Statx) -> Option<u64> {
    if vouches_for_direct(answer) && answer.stx_dio_offset_align == 0 {
        return None;
    }
    Some(u64::from(answer.stx_dio_offset_align).next_power_of_two().max(GRAIN_MIN))
}

/// Returns true if the file system reports how this file can be read directly, if at all.
fn vouches_for_direct(answer: &Statx) -> bool {
    answer.stx_mask & StatxFlags::DIOALIGN.bits() != 0
}

#[cfg(test)]
pub(crate) use tests::did_not_run;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Buffer;
    use crate::opener::Opener;
    use crate::read::{OpenFile, ReadResult, WAYS};
    use std::path::Path;
    use std::sync::Arc;

    const ALL: Range<u64> = 0..u64::MAX;

    fn folder_on_disk() -> tempfile::TempDir {
        tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
    }

    /// Says so where the test harness does not swallow it.
    pub(crate) fn did_not_run(test: &str, why: &str) {
        use std::io::Write as _;
        let line = format!("DID NOT RUN: {test}: {why}\n");
        std::io::stderr().write_all(line.as_bytes()).unwrap();
        if let Some(file) = std::env::var_os("FSURE_SKIPPED") {
            let log = std::fs::OpenOptions::new().append(true).create(true).open(file);
            log.and_then(|mut log| log.write_all(line.as_bytes())).unwrap();
        }
    }

    fn open(root: &Arc<Root>, path: &[u8], first: ReadMode) -> io::Result<OpenFile> {
        Ok(Opener::new(Arc::clone(root), first).open(path, false)?.0)
    }

    fn pattern(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at / 7 + at % 251) as u8).collect()
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
        for first in [ReadMode::Direct, ReadMode::DontCache, ReadMode::Dropped] {
            let source = open(&root, b"f", first).unwrap();
            let filled = source.read_at(&mut buffer, 0, 5 << 20).unwrap();
            drop(source);
            assert_eq!(filled.bytes, 5 << 20);
            assert_ne!(filled.way, ReadMode::Cached);
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
        for first in [ReadMode::DontCache, ReadMode::Dropped, ReadMode::Cached] {
            let source = open(&root, b"f", first).unwrap();
            let filled = source.read_at(&mut buffer, 0, 5 << 20).unwrap();
            assert_eq!(filled, ReadResult { bytes: 5 << 20, way: ReadMode::Cached }, "{first:?}");
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
                Opener::new(Arc::clone(&root), ReadMode::Direct).open(b"f", uses_cache).unwrap();
            source.read_at(&mut buffer, 0, 8 << 20).unwrap().way
        };
        let all = resident_pages(&file, true, ALL);
        let Some(2048) = all else {
            return did_not_run("what_is_in_memory_is_used", "residency is not told");
        };
        assert_eq!((read(false), resident_pages(&file, true, ALL)), (ReadMode::Direct, all));
        assert_eq!((read(true), resident_pages(&file, true, ALL)), (ReadMode::Cached, all));
        rustix::fs::fadvise(&file, 4 << 20, None, Advice::DontNeed).unwrap();
        let half = resident_pages(&file, true, ALL);
        assert!(half < all, "{half:?} of {all:?} pages");
        // Half of it is from memory, so all of it is called that.
        assert_eq!((read(true), resident_pages(&file, true, ALL)), (ReadMode::Cached, half));
    }

    #[test]
    fn memory_is_never_called_a_medium() {
        let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
            return did_not_run("memory_is_never_called_a_medium", "there is no /dev/shm");
        };
        std::fs::write(folder.path().join("f"), "12345").unwrap();
        let root = Arc::new(Root::open(folder.path()).unwrap());
        let source = open(&root, b"f", ReadMode::Direct).unwrap();
        let mut buffer = Buffer::new(4096).unwrap();
        assert_eq!(
            source.read_at(&mut buffer, 0, 5).unwrap(),
            ReadResult { bytes: 5, way: ReadMode::Cached }
        );
    }

    #[test]
    fn only_regular_files_are_opened() {
        let root = Arc::new(Root::open(Path::new("/dev")).unwrap());
        let refused = open(&root, b"null", ReadMode::Direct).err().unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    }
}
