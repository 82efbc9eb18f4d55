//! The size of a RAM folder of `--size auto`: far enough ahead of what it takes that
//! a writer at full speed is not refused, and never more than a stated share of the memory.
//! `docs/ram.md` states it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fsure_os::memory_info::memory;
use fsure_os::overmount::{FsSpace, MountEntry, Top};

use super::other_ram_folders::LastCount;
use super::registry::RegistryEntry;
use super::run_memory::RamFolders;
use fsure_core::units::GIB;
use fsure_core::units::MIB;

/// All RAM folders together are to take no more than one part of so many of the memory that
/// would be available without them.
const RAM_SHARE_DIVISOR: u64 = 2;
/// Beside other RAM folders the limit is this far ahead of use, as long as the share has it.
/// Programs write some 5 GB/s into memory, and a look that comes every 50 ms may be late by
/// 150. A folder that is alone has all of the share from the start: then no look can be late.
const HEADROOM_MIN_BYTES: u64 = GIB;
/// One name for so many bytes: the kernel takes 1 KiB of memory for it, beside its content.
const BYTES_PER_NAME: u64 = 4096;
/// A folder that is nearly empty is going to be filled.
pub(super) const NAMES_MIN: u64 = 100_000;
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// A folder that has not changed is looked at this often: the memory beside it may have.
const SLOW_INTERVAL: Duration = Duration::from_secs(1);
const PAGE: u64 = 4096;

/// The memory that RAM folders take, and that beside it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Use {
    /// Bytes and names that this one takes.
    pub(super) bytes: u64,
    pub(super) names: u64,
    /// Other RAM folders, and the bytes that they take.
    pub(super) others: RamFolders,
    /// Bytes of memory that can be had beside that.
    pub(super) available: u64,
    /// Bytes of it that are left alone.
    pub(super) reserve: u64,
}

/// The limits of a RAM folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) bytes: u64,
    pub(super) names: u64,
}

impl Use {
    /// Bytes that are left of the share.
    fn free(&self) -> u64 {
        let taken = self.bytes.saturating_add(self.others.bytes);
        let share = self.available.saturating_add(taken) / RAM_SHARE_DIVISOR;
        share.saturating_sub(taken).min(self.available.saturating_sub(self.reserve))
    }

    /// Bytes by which the limit is to be ahead of use: an equal part of what is left of the
    /// share for each folder. In steps of a sixteenth at most: so they do not change with
    /// every page that another process takes.
    fn head(&self) -> u64 {
        let free = self.free();
        let head = free.min(HEADROOM_MIN_BYTES.max(free / (self.others.folders + 1)));
        let step = (1 << (u64::BITS - head.leading_zeros()).saturating_sub(5)).max(PAGE);
        head / step * step
    }

    /// The limits beyond which it cannot grow as things are; `least` bytes in any case.
    pub(super) fn most(&self, least: u64) -> Size {
        let free = self.free();
        Size {
            bytes: least.max(self.bytes.saturating_add(free)),
            names: NAMES_MIN.max(self.names + free / BYTES_PER_NAME),
        }
    }

    /// The limits that it is to have; `least` bytes in any case.
    pub(super) fn limits(&self, least: u64) -> Size {
        let head = self.head();
        Size {
            bytes: least.max(self.bytes.saturating_add(head)).next_multiple_of(PAGE),
            names: NAMES_MIN.max(self.names + head / BYTES_PER_NAME),
        }
    }

    /// The limits that are to be set in the place of others; `None` if those will do: half of
    /// what is to be ahead is left, and not twice as much, nor more than the share has.
    fn change(&self, now: Size, least: u64) -> Option<Size> {
        let (wanted, most) = (self.limits(least), self.most(least));
        let is_off = |used: u64, now: u64, wanted: u64, most: u64| {
            let (left, ahead) = (now.saturating_sub(used), wanted.saturating_sub(used));
            left < ahead / 2 || left / 2 > ahead || now > most.max(wanted)
        };
        let is_changed = is_off(self.bytes, now.bytes, wanted.bytes, most.bytes)
            || is_off(self.names, now.names, wanted.names, most.names);
        (is_changed && wanted != now).then_some(wanted)
    }
}

/// A RAM folder whose size follows its use.
pub(super) struct Following {
    least: u64,
    last: FsSpace,
    at: Option<Instant>,
}

impl Following {
    /// One that has so many bytes at least.
    pub(super) fn new(least: u64) -> Self {
        Self { least, last: FsSpace::default(), at: None }
    }

    /// Gives it the limits that it is to have by now. If a limit cannot be changed, the next
    /// look tries again.
    pub(super) fn follow(&mut self, top: &Top, others: RamFolders) {
        let Ok(space) = top.space() else { return };
        let is_due = self.at.is_none_or(|at| at.elapsed() >= SLOW_INTERVAL);
        if space == self.last && !is_due {
            return;
        }
        (self.last, self.at) = (space, Some(Instant::now()));
        let memory = memory();
        let (Some(available), Some(total)) = (memory.available, memory.total) else { return };
        let used = Use {
            bytes: space.used,
            names: space.inodes_used,
            others,
            available,
            reserve: reserve(total),
        };
        let now = Size { bytes: space.bytes, names: space.inodes };
        if let Some(size) = used.change(now, self.least) {
            let _ = top.resize(size.bytes, size.names);
        }
    }
}

/// Calls `look` again and again, until it is over or `look` ends it. It takes all priority
/// that this thread can have: a writer fills the head start of a gigabyte in 200 ms, and
/// beside programs that use every processor a thread like theirs may come later than that.
pub(super) fn each_interval(is_over: &AtomicBool, mut look: impl FnMut() -> bool) {
    fsure_os::priority::highest();
    while !is_over.load(Ordering::Relaxed) && look() {
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// The mount point of the RAM side, and its device; nothing while it is covered or gone.
#[derive(Default)]
pub(super) struct RamMountPoint(Mutex<Option<(PathBuf, u64)>>);

impl RamMountPoint {
    pub(super) fn set(&self, mount: Option<&MountEntry>) {
        let place = mount.map(|mount| (mount.point.clone(), mount.device));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }

    /// Its top directory.
    fn top(&self) -> Option<Top> {
        let place = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (path, device) = place?;
        let top = Top::open(&path).ok()?;
        (top.device().ok()? == device).then_some(top)
    }
}

/// Has the size follow the use. On a thread of its own: a generation may take long, and a
/// program that fills the memory does not wait for it. `first` hears that the first look is
/// done, and is dropped if the size does not follow.
pub(super) fn follow(
    entry: &RegistryEntry,
    place: &RamMountPoint,
    others: &LastCount,
    first: SyncSender<()>,
    is_over: &AtomicBool,
) {
    let Some(least) = entry.least else { return };
    let mut following = Following::new(least);
    let mut first = Some(first);
    each_interval(is_over, || {
        if let Some(top) = place.top() {
            following.follow(&top, others.get());
        }
        // The other end may have gone.
        let _ = first.take().map(|first| first.send(()));
        true
    });
}

/// Memory that is left alone, so that what runs beside it goes on: a twentieth.
pub(super) fn reserve(memory: u64) -> u64 {
    (memory / 20).max(128 * MIB)
}
