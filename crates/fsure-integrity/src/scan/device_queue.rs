//! State that the readers of one device share: their queue, and the heads of a
//! disk that has some.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crossbeam_channel::{Receiver, Sender, bounded};

use super::file_read::FileRead;
use super::io_options::DeviceLimits;
use super::read_request::ReadRequest;

/// One device, as its readers see it.
pub(super) struct DeviceQueue {
    pub(super) orders: Receiver<Vec<ReadRequest>>,
    /// Calls for help with a large file.
    pub(super) call: Sender<Arc<FileRead>>,
    pub(super) calls: Receiver<Arc<FileRead>>,
    pub(super) heads: SeekLimiter,
    pub(super) share: DeviceLimits,
    /// True if what is read past the local page cache might come from the cache
    /// of another machine.
    pub(super) is_remote: bool,
}

impl DeviceQueue {
    pub(super) fn new(
        orders: Receiver<Vec<ReadRequest>>,
        share: DeviceLimits,
        is_remote: bool,
    ) -> Self {
        let (call, calls) = bounded(share.threads * share.threads);
        Self { orders, call, calls, heads: SeekLimiter::new(share.heads), share, is_remote }
    }
}

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
    fn new(count: usize) -> Self {
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
