//! The tombstones to drop: the records of what has been gone for long, or whenever the user
//! says so. They would pile up for ever where names come and go.

use std::time::Duration;

use super::{Forget, Purpose};
use crate::catalog::{Catalog, Row};

/// Decides if tombstones are dropped at the end of a run, and which.
pub(super) struct TombstoneSweep {
    rule: Forget,
    /// The time up to which tombstones are dropped.
    until_s: i64,
    /// True if there are tombstones that are old enough to be dropped.
    has_old: bool,
}

impl TombstoneSweep {
    pub(super) fn new(purpose: &Purpose, now_s: i64) -> Self {
        let rule = match purpose {
            Purpose::Update(rules) => rules.forget,
            Purpose::Status | Purpose::Verify => Forget::Nothing,
        };
        let until_s = match rule {
            Forget::Nothing => i64::MIN,
            // Also those from a future that a wrong clock has made up.
            Forget::Now(Duration::ZERO) => i64::MAX,
            Forget::WithChanges(age) | Forget::Now(age) => {
                let age_s = i64::try_from(age.as_secs()).unwrap_or(i64::MAX);
                now_s.saturating_sub(age_s)
            }
        };
        Self { rule, until_s, has_old: false }
    }

    /// Notes a tombstone that nothing came back for.
    pub(super) fn note(&mut self, row: &Row) {
        self.has_old |= row.record.gone_s.is_some_and(|gone_s| gone_s <= self.until_s);
    }

    /// Returns the time up to which tombstones are to be dropped now, at the end of the
    /// run; `None` if none are.
    pub(super) fn due_until_s(&self, catalog: &Catalog) -> Option<i64> {
        let is_due = match self.rule {
            Forget::Nothing => false,
            Forget::WithChanges(_) => self.has_old && catalog.has_changed_claims(),
            // Those that were made a moment ago were not come by as such.
            Forget::Now(age) => self.has_old || age.is_zero(),
        };
        is_due.then_some(self.until_s)
    }
}
