//! The state that a reader publishes, so that the control thread notices one
//! that waits for storage which does not respond. Such a wait cannot be ended
//! from outside; the reader is left behind, and replaced.
//!
//! All of it is under one lock: a reader is given up together with exactly what
//! it has in hand, and one that is given up gets nothing more.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::device_queue::SeekLimiter;
use super::file_read::FileRead;
use fsure_core::StallDetector;

/// One reader's heartbeat.
pub(super) struct Heartbeat(Mutex<HeartbeatState>);

struct HeartbeatState {
    held: InProgress,
    /// Number of times that it has moved.
    moves: u64,
    /// True if it waits for nothing that could be stuck.
    is_at_rest: bool,
    silence: StallDetector,
    has_head: bool,
    is_lost: bool,
}

/// The work that a reader has in hand.
#[derive(Default)]
pub(super) struct InProgress {
    /// Orders, by number; some may be done already.
    pub(super) orders: Vec<u64>,
    /// The file it reads by itself, or together with other readers.
    pub(super) file_read: Option<Arc<FileRead>>,
}

impl Heartbeat {
    pub(super) fn new() -> Self {
        Self(Mutex::new(HeartbeatState {
            held: InProgress::default(),
            moves: 0,
            is_at_rest: true,
            silence: StallDetector::new(),
            has_head: false,
            is_lost: false,
        }))
    }

    /// The reader has these orders in hand now.
    pub(super) fn hold(&self, orders: Vec<u64>) {
        self.state().held.orders = orders;
        self.beat();
    }

    /// Of what it has in hand, it reads this file now, or none in particular.
    pub(super) fn set_current(&self, file_read: Option<Arc<FileRead>>) {
        let before = std::mem::replace(&mut self.state().held.file_read, file_read);
        // Outside of the lock: the last one closes the file.
        drop(before);
        self.beat();
    }

    /// Notes that the reader moves: it is about to make a request to the system.
    pub(super) fn beat(&self) {
        let mut state = self.state();
        state.moves += 1;
        state.is_at_rest = false;
    }

    /// The reader waits, for work, for its turn or for time to pass.
    pub(super) fn set_idle(&self) {
        self.state().is_at_rest = true;
    }

    /// Returns true if it has been given up: its results are no longer used,
    /// and it must not begin anything.
    pub(super) fn is_lost(&self) -> bool {
        self.state().is_lost
    }

    /// Waits for a head to read with, which must be given back. False for a
    /// reader that has been given up.
    pub(super) fn acquire_seek_slot(&self, heads: &SeekLimiter) -> bool {
        self.set_idle();
        let has_head = heads.wait();
        let mut state = self.state();
        if has_head && state.is_lost {
            heads.give_back();
        }
        state.has_head = has_head && !state.is_lost;
        state.moves += 1;
        state.is_at_rest = false;
        !state.is_lost
    }

    /// Gives the head back, if it has one.
    pub(super) fn give_back_head(&self, heads: &SeekLimiter) {
        if std::mem::take(&mut self.state().has_head) {
            heads.give_back();
        }
    }

    /// Gives the reader up if it has not moved for so long. Returns what it has
    /// in hand if it is given up.
    pub(super) fn give_up_after(
        &self,
        patience: Duration,
        heads: &SeekLimiter,
    ) -> Option<InProgress> {
        let mut state = self.state();
        let moves = state.moves;
        let silent = state.silence.look(moves);
        if state.is_at_rest || silent < patience {
            return None;
        }
        state.is_lost = true;
        if std::mem::take(&mut state.has_head) {
            heads.give_back();
        }
        Some(std::mem::take(&mut state.held))
    }

    fn state(&self) -> MutexGuard<'_, HeartbeatState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::device_queue::DeviceQueue;
    use super::super::io_options::IoOptions;
    use super::*;

    fn lane() -> DeviceQueue {
        let (_, orders) = crossbeam_channel::bounded(1);
        DeviceQueue::new(
            orders,
            IoOptions::default().share(fsure_os::device::DeviceClass::Rotational(1), 1024),
            false,
        )
    }

    #[test]
    fn only_a_reader_that_waits_for_storage_is_given_up() {
        let (lane, heartbeat) = (lane(), Heartbeat::new());
        let at_once = Duration::ZERO;
        heartbeat.hold(vec![7]);
        heartbeat.set_idle();
        assert!(heartbeat.give_up_after(at_once, &lane.heads).is_none());
        assert!(heartbeat.acquire_seek_slot(&lane.heads));
        assert!(heartbeat.give_up_after(Duration::from_secs(9999), &lane.heads).is_none());
        assert!(!heartbeat.is_lost());
        let held = heartbeat.give_up_after(at_once, &lane.heads).unwrap();
        assert_eq!((held.orders, held.file_read.is_none()), (vec![7], true));
        assert!(heartbeat.is_lost());
        // Its head is free again, once.
        assert!(lane.heads.wait());
        heartbeat.give_back_head(&lane.heads);
        lane.heads.give_back();
        assert!(lane.heads.wait());
    }

    #[test]
    fn one_that_was_given_up_keeps_no_head() {
        let (lane, heartbeat) = (lane(), Heartbeat::new());
        heartbeat.beat();
        assert!(heartbeat.give_up_after(Duration::ZERO, &lane.heads).is_some());
        assert!(!heartbeat.acquire_seek_slot(&lane.heads));
        assert!(lane.heads.wait());
    }
}
