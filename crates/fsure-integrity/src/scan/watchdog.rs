//! The state that a reader publishes, so that the control thread notices one
//! that waits for storage which does not respond. Such a wait cannot be ended
//! from outside; the reader is left behind, and replaced.
//!
//! All of it is under one lock: a reader is given up together with exactly what
//! it has in hand, and one that is given up gets nothing more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::seek_limiter::SeekLimiter;
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
    pub(super) file_read: Option<Arc<ReadHandle>>,
}

/// The order that a file is read for, and the flag by which its reading is cut short. It does
/// not keep the file open: closing it may get stuck, too.
pub(super) struct ReadHandle {
    order: u64,
    is_cut: AtomicBool,
}

impl ReadHandle {
    pub(super) fn new(order: u64) -> Self {
        Self { order, is_cut: AtomicBool::new(false) }
    }

    /// Returns the number of the order.
    pub(super) fn order(&self) -> u64 {
        self.order
    }

    /// Gives up the reading: its result is no longer used.
    pub(super) fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }
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
    pub(super) fn set_current(&self, file_read: Option<Arc<ReadHandle>>) {
        self.state().held.file_read = file_read;
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
        timeout: Duration,
        heads: &SeekLimiter,
    ) -> Option<InProgress> {
        let mut state = self.state();
        let moves = state.moves;
        let silent = state.silence.look(moves);
        if state.is_at_rest || silent < timeout {
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
    use super::*;

    #[test]
    fn only_a_reader_that_waits_for_storage_is_given_up() {
        let (heads, heartbeat) = (SeekLimiter::new(1), Heartbeat::new());
        let at_once = Duration::ZERO;
        heartbeat.hold(vec![7]);
        heartbeat.set_idle();
        assert!(heartbeat.give_up_after(at_once, &heads).is_none());
        assert!(heartbeat.acquire_seek_slot(&heads));
        assert!(heartbeat.give_up_after(Duration::from_secs(9999), &heads).is_none());
        assert!(!heartbeat.is_lost());
        let held = heartbeat.give_up_after(at_once, &heads).unwrap();
        assert_eq!((held.orders, held.file_read.is_none()), (vec![7], true));
        assert!(heartbeat.is_lost());
        // Its head is free again, once.
        assert!(heads.wait());
        heartbeat.give_back_head(&heads);
        heads.give_back();
        assert!(heads.wait());
    }

    #[test]
    fn one_that_was_given_up_keeps_no_head() {
        let (heads, heartbeat) = (SeekLimiter::new(1), Heartbeat::new());
        heartbeat.beat();
        assert!(heartbeat.give_up_after(Duration::ZERO, &heads).is_some());
        assert!(!heartbeat.acquire_seek_slot(&heads));
        assert!(heads.wait());
    }
}
