//! The memory that `fsure defer` and all processes that it defers for share,
//! and the rule by which a call is acknowledged. One file for both sides: the
//! shim, which has no library to lean on, is compiled from it, too.
//!
//! Times are nanoseconds of `CLOCK_MONOTONIC`, which is one clock for all
//! processes; 0 is "none". All accesses are `SeqCst`: three of them in a row
//! stand in the place of a flush of milliseconds.
//!
//! Who acknowledges has first noted itself in `oldest` and then looked whether
//! it still may. Who flushes has first said that it begins, and then taken `oldest`
//! away. So a write that was acknowledged came before the flush that takes its note
//! away, and who acknowledges it knows of the one before that.

use core::sync::atomic::Ordering::SeqCst;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// Calls are acknowledged.
pub(crate) const OPEN: u32 = 1;
/// Calls are real: not begun yet, or over.
pub(crate) const REAL: u32 = 2;
/// A flush has failed, and so does every call.
pub(crate) const FAILED: u32 = 3;

/// `FUTEX_OWNER_DIED`: set by the kernel in `owner` when the thread that flushes
/// ends, however it does.
pub(crate) const OWNER_DIED: u32 = 0x4000_0000;

/// Tells this memory from any other, and from that of another version.
pub(crate) const MAGIC: u64 = 0x6673_7572_6564_6602;

/// `F_SEAL_SEAL`, `F_SEAL_SHRINK` and `F_SEAL_GROW`: what is mapped is there for
/// good, and only a file in memory has them.
pub(crate) const SEALS: u32 = 1 | 2 | 4;

/// Digits of the number that stands before the path to the page.
pub(crate) const DIGITS: usize = 16;

/// File systems at most.
pub(crate) const DEVICES: usize = 16;

#[repr(C)]
pub(crate) struct DeferPage {
    pub(crate) magic: AtomicU64,
    /// Of this run. Who outlives it has a path that may lead to the page of another
    /// by then, which has another number.
    pub(crate) number: AtomicU64,
    pub(crate) state: AtomicU32,
    /// The thread that flushes, as the owner of a robust futex.
    pub(crate) owner: AtomicU32,
    /// A futex: counts the times that there was something to flush again.
    pub(crate) wake: AtomicU32,
    pub(crate) device_count: AtomicU32,
    /// Maximum age of lost writes.
    pub(crate) longest: AtomicU64,
    /// Time that the oldest acknowledged call waits until a flush begins.
    pub(crate) delay: AtomicU64,
    /// Expected duration of a flush, from those before.
    pub(crate) takes: AtomicU64,
    /// Time at which the flush in progress began.
    pub(crate) began: AtomicU64,
    /// The oldest acknowledged call that the next flush will make durable.
    pub(crate) oldest: AtomicU64,
    pub(crate) deferred: AtomicU64,
    pub(crate) waited: AtomicU64,
    pub(crate) passed: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) devices: [AtomicU64; DEVICES],
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlushAnswer {
    /// It is acknowledged; `first` says that the thread that flushes is to be woken.
    Acknowledged { first: bool },
    /// The real call is to be made.
    Real,
    /// It fails.
    Failed,
}

/// The device of a file as the page lists it. A name of neither a file nor a folder
/// is on no device that the page lists, whatever file system the name is on.
pub(crate) fn device(mode: u16, major: u32, minor: u32) -> u64 {
    const FOLDER: u16 = 0o040_000;
    const FILE: u16 = 0o100_000;
    match mode & 0o170_000 {
        FOLDER | FILE => (major as u64) << 32 | minor as u64,
        _ => u64::MAX,
    }
}

impl DeferPage {
    /// Decides and counts the outcome of a call for a file on `device`, made at `now`.
    pub(crate) fn call(&self, device: u64, now: u64) -> FlushAnswer {
        if !self.is_listed(device) {
            self.passed.fetch_add(1, SeqCst);
            return FlushAnswer::Real;
        }
        if let Some(answer) = self.is_over() {
            return answer;
        }
        if !self.may_acknowledge(now) {
            self.waited.fetch_add(1, SeqCst);
            return FlushAnswer::Real;
        }
        let first = self.oldest.compare_exchange(0, now, SeqCst, SeqCst).is_ok();
        if let Some(answer) = self.is_over() {
            return answer;
        }
        // A flush that has begun since the first look does not take that note away. The
        // note stays: another may have relied on it.
        if !self.may_acknowledge(now) {
            self.waited.fetch_add(1, SeqCst);
            return FlushAnswer::Real;
        }
        self.deferred.fetch_add(1, SeqCst);
        FlushAnswer::Acknowledged { first }
    }

    /// Takes the note of the oldest call away, for the flush that makes it durable;
    /// 0: there is none.
    pub(crate) fn take_oldest(&self) -> u64 {
        self.oldest.swap(0, SeqCst)
    }

    fn is_listed(&self, device: u64) -> bool {
        let count = self.device_count.load(SeqCst) as usize;
        self.devices.iter().take(count).any(|listed| listed.load(SeqCst) == device)
    }

    /// Returns the outcome of every call once no call is acknowledged any more; `None` until
    /// then.
    fn is_over(&self) -> Option<FlushAnswer> {
        match self.state.load(SeqCst) {
            FAILED => {
                self.refused.fetch_add(1, SeqCst);
                Some(FlushAnswer::Failed)
            }
            OPEN if self.owner.load(SeqCst) & OWNER_DIED == 0 => None,
            _ => Some(FlushAnswer::Real),
        }
    }

    /// Returns true if a call that is acknowledged now will be durable in time, provided that
    /// flushes take as long as before. The flush in progress has to end, then the next one
    /// begins, and no call that it makes durable must be older than agreed when it ends. A
    /// tenth of that age is reserved for the thread that takes the time to learn of the end.
    fn may_acknowledge(&self, now: u64) -> bool {
        let (mut takes, began) = (self.takes.load(SeqCst), self.began.load(SeqCst));
        let oldest = match self.oldest.load(SeqCst) {
            0 => now,
            // Another may be ahead of what the caller took for now.
            oldest => oldest.min(now),
        };
        let mut rest = 0;
        if began != 0 {
            let elapsed = now.saturating_sub(began);
            takes = takes.max(elapsed);
            rest = takes - elapsed;
        }
        let begins = (now - oldest + rest).max(self.delay.load(SeqCst));
        begins.saturating_add(takes) <= self.longest.load(SeqCst) / 10 * 9
    }
}
