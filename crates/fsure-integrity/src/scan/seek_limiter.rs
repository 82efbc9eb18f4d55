//! The heads of a disk, which readers take turns at.

use std::sync::{Condvar, Mutex, PoisonError};

/// Limits how many readers read at once, and serves them in the order of their
/// requests: the queue is in the order of the disk, and a reader that jumps it
/// costs two seeks.
#[derive(Debug)]
pub(super) struct SeekLimiter {
    count: usize,
    line: Mutex<TicketCounter>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct TicketCounter {
    /// Tickets given out, and how many of their holders are done.
    given: usize,
    done: usize,
}

impl SeekLimiter {
    pub(super) fn new(count: usize) -> Self {
        Self { count, line: Mutex::default(), moved: Condvar::new() }
    }

    /// Waits for a head; false if there is no need to.
    pub(super) fn wait(&self) -> bool {
        if self.count == usize::MAX {
            return false;
        }
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let ticket = line.given;
        line.given += 1;
        while ticket >= line.done + self.count {
            line = self.moved.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
        true
    }

    /// Gives one back.
    pub(super) fn give_back(&self) {
        self.line.lock().unwrap_or_else(PoisonError::into_inner).done += 1;
        self.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn never_more_than_there_are_heads() {
        let heads = SeekLimiter::new(2);
        let (at_once, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        assert!(heads.wait());
                        most.fetch_max(
                            at_once.fetch_add(1, Ordering::SeqCst) + 1,
                            Ordering::SeqCst,
                        );
                        std::thread::yield_now();
                        at_once.fetch_sub(1, Ordering::SeqCst);
                        heads.give_back();
                    }
                });
            }
        });
        assert_eq!(most.into_inner(), 2);
        assert!(!SeekLimiter::new(usize::MAX).wait());
    }
}
