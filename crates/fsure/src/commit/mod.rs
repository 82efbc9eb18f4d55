//! Commits that share flushes. A flush of a drive costs milliseconds however
//! much it makes durable, so those who commit at the same time should wait for
//! the same one; and who can bear to lose the last second need not wait at all,
//! as long as somebody keeps that second true.
//!
//! - [`Committer::each`]: a flush for every commit.
//! - [`Committer::group`]: commits wait for a flush that they share.
//! - [`Committer::defer`]: commits do not wait; flushes follow so closely that
//!   what is acknowledged and not durable is never older than agreed, and where
//!   the drive cannot keep up commits do wait.
//!
//! What a deferred commit leaves open is *order*: after a cut, a later one may be
//! there and an earlier one not, unless the file system commits whole prefixes
//! (ext4 with `data=journal`, btrfs with `flushoncommit`). With one file that
//! only grows that cannot be seen; with a database it is corruption.
//!
//! A flush that failed is not repeated: the kernel may have thrown away what it
//! could not write and call the next flush a success (PostgreSQL, "fsyncgate",
//! 2018). From then on every commit and every wait fails.

mod lag;
mod policy;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use policy::{Policy, State};

pub use lag::Lag;

/// What makes everything durable that was written before it was called.
pub type Flush = dyn FnMut() -> io::Result<()> + Send;

/// Makes commits durable. Shared by the threads that commit; dropping it flushes
/// what is left.
pub struct Committer {
    shared: Arc<Shared>,
    flusher: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    /// Somebody may go on: a flush is done, or there is something to flush.
    changed: Condvar,
    began: Instant,
}

/// One commit, which can be waited for.
pub struct Ticket {
    shared: Arc<Shared>,
    number: u64,
}

impl Committer {
    /// Every commit waits for a flush that began after it.
    pub fn each(flush: Box<Flush>) -> Self {
        Self::new(Policy::Each, flush)
    }

    /// As [`Committer::each`], but a flush waits until so many commits wait for
    /// it or the first of them has waited so long.
    pub fn group(most: u64, wait: Duration, flush: Box<Flush>) -> Self {
        Self::new(Policy::Group { most: most.max(1), wait }, flush)
    }

    /// Commits return at once. What they acknowledged is durable after at most
    /// `longest`, as long as a flush takes less than half of that; where it takes
    /// longer nothing more is acknowledged until it is done.
    pub fn defer(longest: Duration, flush: Box<Flush>) -> Self {
        Self::new(Policy::Defer { longest }, flush)
    }

    fn new(policy: Policy, flush: Box<Flush>) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(policy)),
            changed: Condvar::new(),
            began: Instant::now(),
        });
        let flusher = {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || shared.flush_as_due(flush))
        };
        Self { shared, flusher: Some(flusher) }
    }

    /// Commits what the caller has written. With `each` and `group` the ticket is
    /// to be waited for; with `defer` the commit is acknowledged when this
    /// returns. Fails once a flush has failed.
    pub fn commit(&self) -> io::Result<Ticket> {
        let mut state = self.shared.lock();
        while !state.may_acknowledge(self.shared.now()) {
            state = self.shared.wait(state, None);
        }
        state.failure()?;
        let number = state.commit(self.shared.now());
        drop(state);
        self.shared.changed.notify_all();
        Ok(Ticket { shared: Arc::clone(&self.shared), number })
    }

    /// How far acknowledgements were ahead of the medium.
    pub fn lag(&self) -> Lag {
        self.shared.lock().lag(self.shared.now())
    }
}

impl Ticket {
    /// Waits until the commit is durable. Fails if the flush failed.
    pub fn wait(&self) -> io::Result<()> {
        let mut state = self.shared.lock();
        while !state.is_durable(self.number) {
            state.failure()?;
            state = self.shared.wait(state, None);
        }
        Ok(())
    }

    /// Whether the commit is durable by now.
    pub fn is_durable(&self) -> bool {
        self.shared.lock().is_durable(self.number)
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.shared.lock().end();
        self.shared.changed.notify_all();
        if let Some(flusher) = self.flusher.take() {
            // Its panic has been told by then.
            let _ = flusher.join();
        }
    }
}

impl Shared {
    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        most: Option<Duration>,
    ) -> MutexGuard<'a, State> {
        match most {
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(most) => {
                self.changed.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }

    /// Flushes when it is time to, until there is an end.
    fn flush_as_due(&self, mut flush: Box<Flush>) {
        let mut state = self.lock();
        loop {
            let due = state.due_in(self.now());
            match due {
                Some(Duration::ZERO) => {
                    let until = state.begin_flush();
                    drop(state);
                    // Who waits must hear of a panic, too.
                    let result = catch_unwind(AssertUnwindSafe(&mut flush))
                        .unwrap_or_else(|_| Err(io::Error::other("the flush panicked")));
                    state = self.lock();
                    state.end_flush(until, result, self.now());
                    self.changed.notify_all();
                }
                None if state.is_over() => return,
                due => state = self.wait(state, due),
            }
        }
    }
}

#[cfg(test)]
mod tests;
