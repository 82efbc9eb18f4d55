//! How far acknowledgements were ahead of the medium: measured, because a bound
//! that is only promised is a hope.

use std::time::Duration;

/// What commits and flushes came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// Flushes done.
    pub flushes: u64,
    /// Commits that they made durable.
    pub commits: u64,
    /// The longest that a commit was not durable.
    pub longest: Duration,
}

impl Lag {
    pub(super) fn flushed(&mut self, commits: u64, oldest: Duration) {
        self.flushes += 1;
        self.commits += commits;
        self.longest = self.longest.max(oldest);
    }

    /// With what waits still.
    pub(super) fn with_waiting(self, oldest: Option<Duration>) -> Self {
        Self { longest: self.longest.max(oldest.unwrap_or_default()), ..self }
    }
}
