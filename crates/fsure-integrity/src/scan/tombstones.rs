//! Dropping the records of what has been gone for long, or whenever the user says
//! so. They would pile up for ever where names come and go.

use std::time::Duration;

use super::result_recorder::ResultRecorder;
use super::{Forget, Purpose};
use crate::catalog::Row;
use fsure_core::Result;

impl ResultRecorder<'_> {
    /// Notes a tombstone that nothing came back for.
    pub(super) fn note_tombstone(&mut self, row: &Row) {
        let until_s = self.forgets_until_s();
        self.has_old_tombstones |= row.record.gone_s.is_some_and(|gone_s| gone_s <= until_s);
    }

    /// The time up to which tombstones are dropped.
    fn forgets_until_s(&self) -> i64 {
        let Purpose::Update(rules) = &self.plan.purpose else { return i64::MIN };
        match rules.forget {
            Forget::Nothing => i64::MIN,
            // Also those from a future that a wrong clock has made up.
            Forget::Now(Duration::ZERO) => i64::MAX,
            Forget::WithChanges(age) | Forget::Now(age) => {
                let age_s = i64::try_from(age.as_secs()).unwrap_or(i64::MAX);
                self.now_s.saturating_sub(age_s)
            }
        }
    }

    /// Drops the tombstones that are due, at the end of a run.
    pub(super) fn forget_tombstones(&mut self) -> Result<()> {
        let Purpose::Update(rules) = &self.plan.purpose else { return Ok(()) };
        let is_due = match rules.forget {
            Forget::Nothing => false,
            Forget::WithChanges(_) => self.has_old_tombstones && self.catalog.has_changed_claims(),
            // Those that were made a moment ago were not come by as such.
            Forget::Now(age) => self.has_old_tombstones || age.is_zero(),
        };
        if !is_due || self.is_stopped() || !self.may_write || !self.precheck_once()? {
            return Ok(());
        }
        let until_s = self.forgets_until_s();
        let forgotten = self.catalog.forget_gone(&self.plan.walk.scope, until_s);
        self.outcome.forgotten = *forgotten.as_ref().unwrap_or(&0);
        self.stop_on_write_error(forgotten.map(drop))
    }

    /// Gives the room of what was dropped back to the disk. That it cannot be
    /// done, on a full disk for one, costs nothing but the room.
    pub(super) fn shrink(&mut self) {
        if self.outcome.forgotten == 0 || self.is_stopped() || !self.may_write {
            return;
        }
        if let Err(error) = self.catalog.shrink() {
            self.warn(&format!("{error}: what was dropped is gone, and the file stays as large"));
        }
    }
}
