//! Opening files: which rung of the ladder each starts on, learnt from as few
//! questions as the system allows. A tree of small files pays for every one of
//! them a hundred thousand times.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use rustix::fs::{AtFlags, OFlags, Statx, StatxFlags};
use rustix::io::Errno;

use crate::folder::Root;
use crate::read::{
    GRAIN_MIN, Source, Way, knows_dontcache, next_rung, resident_pages, set_direct, tells_residency,
};
use crate::{Kind, Stat};

/// How files below a root are opened: what was learnt from one file and holds
/// for all, so that it is not asked again for each.
pub struct Opener {
    root: Arc<Root>,
    first: Way,
    media: RwLock<HashMap<u64, Medium>>,
    /// Cleared once access times may not be kept back (files of others).
    keeps_access_times: AtomicBool,
}

/// What holds for all files of one device.
#[derive(Clone, Copy)]
struct Medium {
    /// Whether there is anything behind the page cache.
    is_real: bool,
    /// Whether reads can be told to leave nothing in it.
    knows_dontcache: bool,
    tells_residency: bool,
}

/// From this share of its pages on, in percent, a file that is partly in the
/// page cache is read through it: read directly, what is there would be read
/// from the medium for nothing, which is 4 to 7 times slower.
const RESIDENT_MIN_PERCENT: u64 = 25;

impl Opener {
    /// Files will start on the first rung at or below `first` that their file
    /// system answers for.
    pub fn new(root: Arc<Root>, first: Way) -> Self {
        Self { root, first, media: RwLock::default(), keeps_access_times: AtomicBool::new(true) }
    }

    /// The root.
    pub fn root(&self) -> &Arc<Root> {
        &self.root
    }

    /// Opens a regular file below the root, not following a link, and says
    /// what it is. With `uses_cache`, a file that is in the page cache is read
    /// from there and stays there, and what is missing of it is not left there.
    ///
    /// Fails with `InvalidInput` where the name is no regular file (any more),
    /// or another one than a moment ago; devices and FIFOs are not waited for.
    pub fn open(&self, path: &[u8], uses_cache: bool) -> io::Result<(Source, Stat)> {
        let wants_direct = self.first == Way::Direct && !uses_cache;
        let (file, is_direct) = self.open_file(path, wants_direct).map_err(if_stale)?;
        let mask = Stat::MASK | StatxFlags::DIOALIGN;
        let answer = rustix::fs::statx(&file, c"", AtFlags::EMPTY_PATH, mask)
            .map_err(|error| if_stale(error.into()))?;
        let stat = Stat::from_statx(&answer);
        if stat.kind != Kind::File {
            return Err(not_that_file());
        }
        let medium = self.medium(&file, stat.device, uses_cache);
        let asks = uses_cache && medium.tells_residency;
        let resident = resident_percent(&file, stat.size, asks);
        let (way, grain) = if resident == 100 || !medium.is_real {
            set_direct(&file, is_direct, false)?;
            (Way::Cached, GRAIN_MIN)
        } else if resident >= RESIDENT_MIN_PERCENT && medium.knows_dontcache {
            (Way::DontCache, GRAIN_MIN)
        } else {
            self.first_rung(&file, direct_grain(&answer), is_direct)?
        };
        let absent = OnceLock::new();
        let is_vouched = vouches_for_direct(&answer);
        Ok((Source { file, way: RwLock::new(way), grain, is_vouched, absent }, stat))
    }

    fn first_rung(
        &self,
        file: &OwnedFd,
        grain: Option<u64>,
        is_direct: bool,
    ) -> io::Result<(Way, u64)> {
        match (self.first, grain) {
            (Way::Direct, Some(grain)) if set_direct(file, is_direct, true).is_ok() => {
                Ok((Way::Direct, grain))
            }
            (Way::Direct, _) => {
                set_direct(file, is_direct, false)?;
                Ok((Way::DontCache, GRAIN_MIN))
            }
            (Way::Dropped, _) => Ok((next_rung(file, Way::DontCache), GRAIN_MIN)),
            (way, _) => Ok((way, GRAIN_MIN)),
        }
    }

    /// Opens a name, with `O_DIRECT` at once where it is wanted and taken.
    fn open_file(&self, path: &[u8], wants_direct: bool) -> io::Result<(OwnedFd, bool)> {
        let mut flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        if self.keeps_access_times.load(Ordering::Relaxed) {
            flags |= OFlags::NOATIME;
        }
        if wants_direct {
            flags |= OFlags::DIRECT;
        }
        loop {
            match self.root.open_at(path, flags) {
                Ok(file) => return Ok((file, flags.contains(OFlags::DIRECT))),
                Err(error) if is_refused(&error) && flags.contains(OFlags::NOATIME) => {
                    self.keeps_access_times.store(false, Ordering::Relaxed);
                    flags -= OFlags::NOATIME;
                }
                Err(error) if is_invalid(&error) && flags.contains(OFlags::DIRECT) => {
                    flags -= OFlags::DIRECT;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// What is known of a device, or is learnt from the first file on it.
    fn medium(&self, file: &OwnedFd, device: u64, uses_cache: bool) -> Medium {
        let known = self.media.read().unwrap_or_else(PoisonError::into_inner).get(&device).copied();
        known.unwrap_or_else(|| {
            let is_real = has_medium(file);
            // Asked only where it matters.
            let knows_dontcache = uses_cache && is_real && knows_dontcache(file);
            let tells_residency = uses_cache && tells_residency(file);
            let medium = Medium { is_real, knows_dontcache, tells_residency };
            let mut media = self.media.write().unwrap_or_else(PoisonError::into_inner);
            media.insert(device, medium);
            medium
        })
    }
}

/// How much of a file is in the page cache, in percent; 0 where it is not told.
fn resident_percent(file: &OwnedFd, size: u64, is_told: bool) -> u64 {
    let pages = size.div_ceil(rustix::param::page_size() as u64);
    let resident = resident_pages(file, is_told, 0..u64::MAX).unwrap_or(0).min(pages);
    (resident * 100).checked_div(pages).unwrap_or(0)
}

fn not_that_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "no longer that regular file")
}

/// What network file systems and FUSE say of a file that was replaced between
/// being found and being opened: it is another one, and not unreadable.
fn if_stale(error: io::Error) -> io::Error {
    if Errno::from_io_error(&error) == Some(Errno::STALE) { not_that_file() } else { error }
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

/// Whether the file system says how this file can be read directly, if at all.
fn vouches_for_direct(answer: &Statx) -> bool {
    answer.stx_mask & StatxFlags::DIOALIGN.bits() != 0
}

/// Whether there is anything behind the page cache.
fn has_medium(file: &OwnedFd) -> bool {
    const TMPFS_MAGIC: i64 = 0x0102_1994;
    const RAMFS_MAGIC: i64 = 0x8584_58f6;
    const HUGETLBFS_MAGIC: i64 = 0x9584_58f6;
    let Ok(answer) = rustix::fs::fstatfs(file) else {
        return true;
    };
    !matches!(answer.f_type, TMPFS_MAGIC | RAMFS_MAGIC | HUGETLBFS_MAGIC)
}
