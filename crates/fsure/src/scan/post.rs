//! Where a reader says what it is at, so that the control thread notices one
//! that waits for storage which does not answer. Such a wait cannot be ended
//! from outside; the reader is left behind, and replaced.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::lane::Heads;
use super::reader::Job;

/// One reader's post.
pub(super) struct Post {
    begun: Instant,
    /// When it last was seen to move, milliseconds since `begun`; 0 while it
    /// waits for nothing that could be stuck.
    since_ms: AtomicU64,
    is_lost: AtomicBool,
    has_head: AtomicBool,
    held: Mutex<Held>,
}

/// What a reader has in hand.
#[derive(Default)]
pub(super) struct Held {
    /// Orders, by number; some may be done already.
    pub(super) orders: Vec<u64>,
    /// The file it reads by itself, or together with other readers.
    pub(super) job: Option<Arc<Job>>,
}

impl Post {
    pub(super) fn new(begun: Instant) -> Self {
        Self {
            begun,
            since_ms: AtomicU64::new(0),
            is_lost: AtomicBool::new(false),
            has_head: AtomicBool::new(false),
            held: Mutex::default(),
        }
    }

    /// The reader has these orders in hand now.
    pub(super) fn hold(&self, orders: Vec<u64>) {
        self.held().orders = orders;
        self.move_on();
    }

    /// Of what it has in hand, it reads this file now, or none in particular.
    pub(super) fn turn_to(&self, job: Option<Arc<Job>>) {
        self.held().job = job;
        self.move_on();
    }

    /// The reader moves: it is about to ask the system for something.
    pub(super) fn move_on(&self) {
        self.since_ms.store(self.now_ms(), Ordering::Relaxed);
    }

    /// The reader waits, for work, for its turn or for time to pass.
    pub(super) fn rest(&self) {
        self.since_ms.store(0, Ordering::Relaxed);
    }

    /// Whether it has been given up, and nobody listens to it any more.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// Waits for a head to read with; it must be given back.
    pub(super) fn take_head(&self, heads: &Heads) {
        self.rest();
        let has_head = heads.wait();
        self.has_head.store(has_head, Ordering::Release);
        self.move_on();
    }

    /// Gives the head back, if it has one.
    pub(super) fn give_back_head(&self, heads: &Heads) {
        if self.has_head.swap(false, Ordering::AcqRel) {
            heads.give_back();
        }
    }

    /// Gives the reader up if it has not moved for so long. What it has in
    /// hand, where it is given up.
    pub(super) fn give_up_after(&self, patience: Duration, heads: &Heads) -> Option<Held> {
        let since_ms = self.since_ms.load(Ordering::Relaxed);
        let silent_ms = self.now_ms().saturating_sub(since_ms);
        if since_ms == 0 || u128::from(silent_ms) < patience.as_millis() {
            return None;
        }
        self.is_lost.store(true, Ordering::Release);
        self.give_back_head(heads);
        Some(std::mem::take(&mut *self.held()))
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> u64 {
        1 + u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::effort::Effort;
    use super::super::lane::Lane;
    use super::*;

    #[test]
    fn only_a_reader_that_waits_for_storage_is_given_up() {
        let (_, orders) = crossbeam_channel::bounded(1);
        let share = Effort::default().share(fsure_os::device::Class::Rotational(1));
        let lane = Lane::new(orders, share, false);
        let post = Post::new(Instant::now());
        let at_once = Duration::ZERO;
        post.hold(vec![7]);
        post.rest();
        assert!(post.give_up_after(at_once, &lane.heads).is_none());
        post.take_head(&lane.heads);
        assert!(post.give_up_after(Duration::from_secs(9999), &lane.heads).is_none());
        assert!(!post.is_lost());
        let held = post.give_up_after(at_once, &lane.heads).unwrap();
        assert_eq!((held.orders, held.job.is_none()), (vec![7], true));
        assert!(post.is_lost());
        // Its head is free again, once.
        assert!(lane.heads.wait());
        post.give_back_head(&lane.heads);
        lane.heads.give_back();
        assert!(lane.heads.wait());
    }
}
