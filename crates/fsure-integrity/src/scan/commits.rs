//! The schedule of commits: about one a second.

use std::time::{Duration, Instant};

/// Time between commits, which is the most work that a kill or a power failure can cost.
const COMMIT_EVERY: Duration = Duration::from_secs(1);

/// Tells when a commit is due.
pub(super) struct CommitSchedule {
    committed: Instant,
}

impl CommitSchedule {
    pub(super) fn begin() -> Self {
        Self { committed: Instant::now() }
    }

    pub(super) fn is_due(&self) -> bool {
        self.committed.elapsed() >= COMMIT_EVERY
    }

    /// Notes that everything is committed now.
    pub(super) fn note_committed(&mut self) {
        self.committed = Instant::now();
    }
}
