//! The end of a run: what is reported and written once all paths have their result, or when the
//! record cannot be written any more.

use super::ResultRecorder;
use crate::catalog::{Claims, forget_tombstones};
use crate::model::{Outcome, Verification};
use crate::scan::Purpose;
use crate::scan::excluded::NestedRoots;
use crate::scan::progress_estimate::judges_all;
use crate::scan::write_error::survive_write_error;
use fsure_core::{Error, RelPath, Result};

impl ResultRecorder<'_> {
    /// Commits what is left and hands over the outcome. `claims` are those of
    /// all rows, if they have to be known.
    pub(in crate::scan) fn finish(&mut self, claims: Option<Claims>) -> Result<Outcome> {
        if !self.is_stopped() || self.is_over {
            let known_roots = self.finish_nested_roots()?;
            if let Some(why) = self.patterns.check_unjudged() {
                self.report.distrust(why);
            }
            let choices = self.catalog.options();
            let claims = claims.map(|claims| claims.finish(&known_roots, choices));
            self.report.outcome_mut().claims = claims.map(|claimed| claimed.digest);
        }
        if self.report.outcome().scrub.is_some() && self.may_write && self.catalog.is_writing() {
            let forgotten = self.catalog.findings_mut().prune();
            self.stop_on_write_error(forgotten)?;
        }
        if self.report.outcome().stopped.is_some() && judges_all(self.plan) {
            let outcome = self.report.outcome_mut();
            outcome.unjudged_files = Some(self.catalog.files().saturating_sub(outcome.with_record));
        }
        let is_complete = !self.is_stopped() && self.plan.scopes.is_root();
        let is_update = self.report.outcome().is_update;
        if is_complete && self.may_write && is_update && self.catalog.is_writing() {
            let forgotten = self.catalog.unfinished_files_mut().forget_all();
            self.stop_on_write_error(forgotten)?;
        }
        if self.plan.scrub.is_some() && !self.is_halted {
            self.report_known_damage()?;
        }
        if let Some(scrub) = &mut self.report.outcome_mut().scrub {
            scrub.note_too_large(&self.cut_off);
        }
        if let Some(warning) = self.future_changes.warning() {
            self.report.warn(&warning);
        }
        self.forget_tombstones()?;
        self.note_verification()?;
        if !self.is_stopped() && self.may_write {
            let result = self.mtimes.end(self.catalog, &self.plan.scopes);
            self.stop_on_write_error(result)?;
        }
        self.commit()?;
        self.shrink();
        Ok(self.report.take_outcome())
    }

    /// Reports and records the nested roots that came and went. Returns those that had been
    /// recorded.
    fn finish_nested_roots(&mut self) -> Result<Vec<RelPath>> {
        let known = self.catalog.nested_roots().all()?;
        let found = self.report.outcome().nested_roots.clone();
        let roots = NestedRoots { known, found };
        for path in roots.absent(&self.plan.scopes) {
            let forgets = match &self.plan.purpose {
                Purpose::Update(rules) => self.may_write && rules.accept.covers(path),
                _ => false,
            };
            if forgets {
                let forgotten = self.catalog.nested_roots_mut().set(path, false);
                self.stop_on_write_error(forgotten)?;
            } else {
                self.report.outcome_mut().absent_roots.push(path.clone());
            }
        }
        if let Some(path) = roots.unrecorded().next().filter(|_| self.plan.binds_claims) {
            let path = path.display();
            self.report.distrust(format!(
                "{path} has a record of its own that was not there when it was signed"
            ));
        }
        for path in roots.unrecorded() {
            if self.report.outcome().is_update && self.may_write {
                let remembered = self.catalog.nested_roots_mut().set(path, true);
                self.stop_on_write_error(remembered)?;
            }
        }
        Ok(roots.known)
    }

    /// Reports the known damage below the scope that a scrub did not come to.
    fn report_known_damage(&mut self) -> Result<()> {
        let (scope, mut after) = (self.plan.scopes.around(), None);
        while let Some((last, unjudged)) =
            self.judged_damage.next_unjudged(self.catalog, &scope, after.as_ref())?
        {
            for result in unjudged {
                self.report.add_result(&result, false);
            }
            after = Some(last);
        }
        Ok(())
    }

    /// Drops the tombstones that are due, at the end of a run.
    fn forget_tombstones(&mut self) -> Result<()> {
        let Some(until_s) = self.tombstones.due_until_s(self.catalog) else { return Ok(()) };
        if self.is_stopped() || !self.may_write_now()? {
            return Ok(());
        }
        for scope in self.plan.scopes.iter() {
            let forgotten = forget_tombstones(self.catalog, scope, until_s);
            self.report.outcome_mut().forgotten += *forgotten.as_ref().unwrap_or(&0);
            self.stop_on_write_error(forgotten.map(drop))?;
        }
        Ok(())
    }

    /// Notes how much was verified, if anything was.
    fn note_verification(&mut self) -> Result<()> {
        let hashed = self.report.outcome().hashed;
        let is_of_use = self.plan.purpose == Purpose::Verify && hashed > 0;
        if !is_of_use || !self.may_write_now()? {
            return Ok(());
        }
        let noted = self.catalog.history().last_generation().and_then(|generation| {
            self.catalog.history_mut().note_verification(&Verification {
                at_s: self.time.now_s(),
                command: self.plan.command.to_owned(),
                generation,
                files: hashed,
                bytes: self.bytes_read_and_judged,
                exit_code: self.report.outcome().exit_code().number(),
            })
        });
        self.stop_on_write_error(noted)
    }

    /// Gives the space of what was dropped back to the disk. That it cannot be
    /// done, on a full disk for one, costs nothing but the space.
    fn shrink(&mut self) {
        if self.report.outcome().forgotten == 0 || self.is_stopped() || !self.may_write {
            return;
        }
        if let Err(error) = self.catalog.shrink() {
            let warning =
                format!("{error}: the removed rows are gone, but the file keeps its size");
            self.report.warn(&warning);
        }
    }

    /// A record that cannot be written is as it was at the last commit. It ends a
    /// run that records, with a report of what was found until then; one that
    /// judges goes on and notes nothing more.
    pub(super) fn stop_on_write_error(&mut self, written: Result<()>) -> Result<()> {
        match written {
            Err(error @ Error::RecordNotWritten { .. }) if !self.plan.must_write => {
                self.take_back();
                let hint = error.hint().unwrap_or_default();
                self.report.warn(&format!(
                    "{error}: all files are judged, but from here on their dates of verification \
                     are not saved; {hint}"
                ));
                Ok(())
            }
            other => self.survive_end(other),
        }
    }

    /// Takes back what was written since the last commit, for the rest of the run.
    fn take_back(&mut self) {
        self.catalog.rollback();
        self.may_write = false;
        // They are dropped at the end, in the last transaction.
        self.report.outcome_mut().forgotten = 0;
    }

    /// The same of what ends any run: a catalog that cannot be read any more.
    pub(in crate::scan) fn survive_end(&mut self, result: Result<()>) -> Result<()> {
        if let Some(stop) = survive_write_error(result, self.catalog)? {
            self.take_back();
            self.report.stop(stop);
        }
        Ok(())
    }
}
