//! The current step of a thread, which other threads can read while it lasts. A disk that
//! does not respond blocks the thread that waits for it, and another thread must be able
//! to report that.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The current step of one thread, shared with other threads.
#[derive(Clone, Debug, Default)]
pub struct Activity(Arc<Mutex<Option<(&'static str, Instant)>>>);

impl Activity {
    /// Begins a step.
    pub fn begin(&self, what: &'static str) {
        self.set(Some((what, Instant::now())));
    }

    /// Ends the step.
    pub fn end(&self) {
        self.set(None);
    }

    /// Returns the step and for how long it has lasted; `None` between steps.
    pub fn now(&self) -> Option<(&'static str, Duration)> {
        let now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        now.map(|(what, since)| (what, since.elapsed()))
    }

    fn set(&self, what: Option<(&'static str, Instant)>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }
}
