//! Writes the entries of a run in the history of its record: the generation
//! that it makes, and how much it has verified. The generation is written with
//! the first changes and updated with each commit, so that a killed run leaves
//! its entry, too.

use super::Purpose;
use super::result_recorder::ResultRecorder;
use crate::model::Verification;
use fsure_core::Result;

impl ResultRecorder<'_> {
    /// Writes the generation that this run makes, if it makes one.
    pub(super) fn note_generation(&mut self) -> Result<()> {
        let is_update = matches!(self.plan.purpose, Purpose::Update(_));
        if !is_update {
            return Ok(());
        }
        let (at_s, command) = (self.now_s, self.plan.command);
        self.catalog.note_changes(&mut self.generation, at_s, command, self.changes)
    }

    /// Notes how much was verified, if anything was.
    pub(super) fn note_verification(&mut self) -> Result<()> {
        let is_of_use = self.plan.purpose == Purpose::Verify && self.outcome.hashed > 0;
        if !is_of_use || !self.may_write || self.is_halted || !self.precheck_once()? {
            return Ok(());
        }
        let noted = self.catalog.last_generation().and_then(|generation| {
            self.catalog.note_verification(&Verification {
                at_s: self.now_s,
                command: self.plan.command.to_owned(),
                generation,
                files: self.outcome.hashed,
                bytes: self.bytes_read_and_judged,
                exit_code: self.outcome.exit_code().number(),
            })
        });
        self.stop_on_write_error(noted)
    }

    /// Marks the record as untrusted if it is trusted for its signature: rows
    /// that were read before are not what the record holds now.
    pub(super) fn distrust_change(&mut self) {
        if self.plan.binds_claims {
            let why = "its rows changed while they were judged".to_owned();
            self.outcome.record_untrusted.get_or_insert(why);
        }
    }
}
