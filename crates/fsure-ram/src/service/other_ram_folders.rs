//! Other RAM folders, with which a folder shares the memory. Counting them asks the registry
//! and each of their file systems, which takes milliseconds and longer on a busy machine.
//! So a thread of its own counts, and whatever needs the count takes the last one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fsure_os::overmount;

use super::registry::{Registry, RegistryEntry};
use super::run_memory::RamFolders;

const COUNT_INTERVAL: Duration = Duration::from_secs(1);
/// Longest delay before the end is noticed.
const END_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Counts those of a registry, without `own`, and those of other `ram run`.
pub(super) fn count(registry: &Registry, own: Option<&RegistryEntry>) -> RamFolders {
    let all = registry.entries().unwrap_or_default();
    let bound = all.iter().filter(|other| own.is_none_or(|own| other.id != own.id));
    let spaces = bound.filter_map(|other| overmount::space(&other.path).ok());
    spaces.fold(registry.runs().others(), |sum, space| sum.and(1, space.used))
}

/// The last count, for several threads.
pub(super) struct LastCount(Mutex<RamFolders>);

impl LastCount {
    pub(super) fn new(first: RamFolders) -> Self {
        Self(Mutex::new(first))
    }

    pub(super) fn get(&self) -> RamFolders {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts every second until it is over.
    pub(super) fn renew(&self, is_over: &AtomicBool, mut count: impl FnMut() -> RamFolders) {
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
