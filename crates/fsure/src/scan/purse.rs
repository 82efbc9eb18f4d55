//! What a scrub may spend. Bytes are counted before they are ordered, so that
//! a budget is kept and not noticed when it is gone; what was ordered and
//! could not even be opened is given back.

use std::time::Duration;

use crate::words::{Clock, RelPath, Watch};

/// How much a scrub may do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Budget {
    /// All that is due.
    All,
    /// What can be done in so long.
    Time(Duration),
    /// So many bytes of content.
    Bytes(u64),
    /// So many hundredths of the recorded bytes.
    Percent(f64),
}

/// What a scrub keeps to.
#[derive(Clone, Debug)]
pub struct ScrubRules {
    /// How much to do.
    pub budget: Budget,
    /// What was verified more recently is not due.
    pub max_age: Option<Duration>,
    /// Whether what is left of what was due may not be left.
    pub must_be_complete: bool,
    /// Folders below the root that are roots of their own.
    pub nested_roots: Vec<RelPath>,
}

/// When a run has to be over, for all who are at work on it.
#[derive(Clone, Debug)]
pub(super) struct Ending {
    time: Option<Duration>,
    watch: Watch,
}

impl Ending {
    /// Begins to count.
    pub(super) fn new(rules: Option<&ScrubRules>, clock: &Clock) -> Self {
        let budget = rules.map(|rules| rules.budget);
        let time = if let Some(Budget::Time(time)) = budget { Some(time) } else { None };
        Self { time, watch: clock.watch() }
    }

    /// What is left of the time, where it has an end.
    pub(super) fn left(&self) -> Option<Duration> {
        Some(self.time?.saturating_sub(self.watch.elapsed()))
    }

    pub(super) fn is_over(&self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }

    /// Whether so much is at least half of the time.
    pub(super) fn is_half(&self, spent: Duration) -> bool {
        self.time.is_some_and(|time| spent.saturating_mul(2) >= time)
    }
}

/// What is left of a budget.
pub(super) struct Purse {
    bytes: u64,
    spent: u64,
    /// Of that, for what was not well before.
    spent_again: u64,
    pub(super) ending: Ending,
}

impl Purse {
    /// The purse of a run: without rules there is no end to it.
    pub(super) fn new(rules: Option<&ScrubRules>, ending: Ending) -> Self {
        let budget = rules.map_or(Budget::All, |rules| rules.budget);
        let bytes = if let Budget::Bytes(bytes) = budget { bytes } else { u64::MAX };
        Self { bytes, spent: 0, spent_again: 0, ending }
    }

    /// Says how much there is.
    pub(super) fn fill(&mut self, bytes: u64) {
        self.bytes = bytes;
    }

    /// What is left of the bytes.
    pub(super) fn left(&self) -> u64 {
        self.bytes.saturating_sub(self.spent)
    }

    /// The most that a later run of this kind has for a file that is well.
    pub(super) fn most(&self) -> u64 {
        self.bytes.saturating_sub(self.spent_again)
    }

    pub(super) fn spend(&mut self, bytes: u64, is_again: bool) {
        self.spent = self.spent.saturating_add(bytes);
        self.spent_again += if is_again { bytes } else { 0 };
    }

    pub(super) fn take_back(&mut self, bytes: u64, is_again: bool) {
        self.spent = self.spent.saturating_sub(bytes);
        self.spent_again -= if is_again { bytes.min(self.spent_again) } else { 0 };
    }
}
