//! Other RAM folders, with which a folder shares the memory. Counting them asks the registry
//! and each of their file systems, which takes milliseconds and longer on a busy machine.
//! So a thread of its own counts, and whatever needs the count takes the last one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fsure_os::overmount;

use super::registry::{Registry, RegistryEntry};

const COUNT_INTERVAL: Duration = Duration::from_secs(1);
/// Longest delay before the end is noticed.
const END_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The number of other RAM folders, and the memory that they take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// Number of folders.
    pub folders: u64,
    /// Bytes that they take.
    pub bytes: u64,
}

impl Others {
    /// Counts those of a registry, without `own`, and those of other `ram run`.
    pub(super) fn of(registry: &Registry, own: Option<&RegistryEntry>) -> Self {
        let all = registry.entries().unwrap_or_default();
        let bound = all.iter().filter(|other| own.is_none_or(|own| other.id != own.id));
        let rooms = bound.filter_map(|other| overmount::space(&other.path).ok());
        rooms.fold(registry.runs().others(), |sum, room| sum.and(1, room.used))
    }

    /// These, and so many more.
    #[must_use]
    pub(super) fn and(self, folders: u64, bytes: u64) -> Self {
        Self {
            folders: self.folders.saturating_add(folders),
            bytes: self.bytes.saturating_add(bytes),
        }
    }
}

/// The last count, for several threads.
pub(super) struct LastCount(Mutex<Others>);

impl LastCount {
    pub(super) fn new(first: Others) -> Self {
        Self(Mutex::new(first))
    }

    pub(super) fn get(&self) -> Others {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts every second until it is over.
    pub(super) fn renew(&self, is_over: &AtomicBool, mut count: impl FnMut() -> Others) {
        while !is_over.load(Ordering::Relaxed) {
            let counted = count();
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = counted;
            let begun = Instant::now();
            while begun.elapsed() < COUNT_INTERVAL && !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(END_POLL_INTERVAL);
            }
        }
    }
}
