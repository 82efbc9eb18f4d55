//! The budget of a scrub. Bytes are counted before they are ordered, so that a
//! budget is kept, and not noticed when it is gone; bytes that were ordered of
//! a file that could not even be opened are given back.

use std::time::Duration;

use fsure_core::{Clock, ElapsedTimer, RelPath};

/// The limit on the work of a scrub.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Budget {
    /// All that is due.
    All,
    /// All that can be done in this time.
    Time(Duration),
    /// So many bytes of content.
    Bytes(u64),
    /// So many hundredths of the recorded bytes.
    Percent(f64),
}

/// The rules that a scrub obeys.
#[derive(Clone, Debug)]
pub struct ScrubRules {
    /// Limit on the work.
    pub budget: Budget,
    /// Files that were verified more recently than this are not due.
    pub max_age: Option<Duration>,
    /// True if the scrub must not leave any file that is due.
    pub must_be_complete: bool,
    /// Folders below the root that are roots of their own.
    pub nested_roots: Vec<RelPath>,
}

/// The deadline of a run, for all threads that work on it.
#[derive(Clone, Debug)]
pub(super) struct Deadline {
    time: Option<Duration>,
    watch: ElapsedTimer,
}

impl Deadline {
    /// Begins to count.
    pub(super) fn new(rules: Option<&ScrubRules>, clock: &Clock) -> Self {
        let budget = rules.map(|rules| rules.budget);
        let time = if let Some(Budget::Time(time)) = budget { Some(time) } else { None };
        Self { time, watch: clock.watch() }
    }

    /// Returns the time that is left; `None` if it has no end.
    pub(super) fn left(&self) -> Option<Duration> {
        Some(self.time?.saturating_sub(self.watch.elapsed()))
    }

    pub(super) fn is_over(&self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }

    /// Returns true if `spent` is at least half of the time.
    pub(super) fn is_half(&self, spent: Duration) -> bool {
        self.time.is_some_and(|time| spent.saturating_mul(2) >= time)
    }
}

/// The bytes and the time of a budget, and what is spent of the bytes.
pub(super) struct BudgetTracker {
    bytes: u64,
    spent: u64,
    /// The part of `spent` for files that were not OK before.
    spent_again: u64,
    deadline: Deadline,
}

impl BudgetTracker {
    /// Creates the budget of a run: without rules it has no limit.
    pub(super) fn new(rules: Option<&ScrubRules>, deadline: Deadline) -> Self {
        let budget = rules.map_or(Budget::All, |rules| rules.budget);
        let bytes = if let Budget::Bytes(bytes) = budget { bytes } else { u64::MAX };
        Self { bytes, spent: 0, spent_again: 0, deadline }
    }

    pub(super) fn deadline(&self) -> &Deadline {
        &self.deadline
    }

    /// Sets the number of bytes that may be spent.
    pub(super) fn fill(&mut self, bytes: u64) {
        self.bytes = bytes;
    }

    /// Returns the bytes that are left.
    pub(super) fn left(&self) -> u64 {
        self.bytes.saturating_sub(self.spent)
    }

    /// True if there was nothing to spend from the beginning.
    pub(super) fn is_zero(&self) -> bool {
        self.bytes == 0
    }

    /// The least budget with which a later run of this kind has so many bytes for a file that is
    /// well; `None` if this one is as large.
    pub(super) fn least_for(&self, bytes: u64) -> Option<u64> {
        let least = self.spent_again.saturating_add(bytes);
        (least > self.bytes).then_some(least)
    }

    pub(super) fn spend(&mut self, bytes: u64, is_again: bool) {
        self.spent = self.spent.saturating_add(bytes);
        self.spent_again += if is_again { bytes } else { 0 };
    }

    pub(super) fn refund(&mut self, bytes: u64, is_again: bool) {
        self.spent = self.spent.saturating_sub(bytes);
        self.spent_again -= if is_again { bytes.min(self.spent_again) } else { 0 };
    }
}
