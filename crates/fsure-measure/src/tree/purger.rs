//! Empties the page cache of the whole machine again and again, as the founders' `purge` did
//! every five seconds. Here it is every second, so that it happens in short runs, too.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use fsure_os::page_cache;

/// Pause between the end of one and the beginning of the next.
const PURGE_INTERVAL: Duration = Duration::from_secs(1);

/// The purges of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Purges {
    /// Number of them.
    pub(super) count: u64,
    /// Time that they took together.
    pub(super) time: Duration,
}

/// Empties the page cache until `stop` is closed.
pub(super) fn purge_until(stop: &Receiver<()>) -> Purges {
    let mut purges = Purges::default();
    loop {
        let began = Instant::now();
        // It has worked once before the first run.
        let _ = page_cache::purge();
        purges.count += 1;
        purges.time += began.elapsed();
        if stop.recv_timeout(PURGE_INTERVAL) == Err(RecvTimeoutError::Disconnected) {
            return purges;
        }
    }
}
