//! What is being done at this moment, for those who ask while it lasts: a disk that does
//! not answer holds up who waits for it, and somebody else must be able to say so.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What one thread does and others may ask for.
#[derive(Clone, Debug, Default)]
pub struct Doing(Arc<Mutex<Option<(&'static str, Instant)>>>);

impl Doing {
    /// From here on it is this.
    pub fn begin(&self, what: &'static str) {
        self.set(Some((what, Instant::now())));
    }

    /// It is nothing any more.
    pub fn end(&self) {
        self.set(None);
    }

    /// What it is, and for how long.
    pub fn now(&self) -> Option<(&'static str, Duration)> {
        let now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        now.map(|(what, since)| (what, since.elapsed()))
    }

    fn set(&self, what: Option<(&'static str, Instant)>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }
}
