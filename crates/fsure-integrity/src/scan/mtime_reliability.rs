//! The rule that says if another date explains another content in this tree. After a copy
//! that kept no dates it does not: nearly every file has its recorded content
//! under a new date, and a file that was damaged before or by the copying looks
//! like an edit. The rule, with its limits, is in `docs/promises.md`.

use std::rc::Rc;

use super::compare_blocks::{BlockComparison, FirstRead};
use super::entry_builder::granularity_ns;
use super::evaluator::{Evaluator, PendingRead};
use super::file_read::ReadContent;
use super::known_damage::known_damage;
use super::result_recorder::{PathResult, ResultRecorder};
use crate::catalog::{RedatedFiles, StoredRow};
use crate::model::{DateRules, Entry, EntryKind, Verdict};
use fsure_core::Result;
use fsure_core::block_hash::BlockValue;

/// Memory for edits whose verdict waits for the end of the run. Beyond it what
/// was seen so far decides.
const HELD_BYTES_MAX: usize = 64 << 20;

/// The meaning of another date of a file that has another content of the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NewDates {
    /// At most half of the files have another date than recorded: there are
    /// edits, and they are believed.
    Explain,
    /// Many files have another date, and what most of them hold is not known yet.
    InDoubt,
    /// Most files have their recorded content under another date.
    ExplainNothing,
}

/// Counts of files that have their recorded content under another date.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RedatedCount {
    /// In the scope, by this update and those before it that were cut off.
    same_content: u64,
    /// By updates of more than the scope that were cut off: some of them are in it.
    around: u64,
    judged: u64,
}

impl RedatedCount {
    fn add(&mut self, settled: &PathResult) {
        let is_recorded = settled.row().is_some_and(|row| !row.is_gone());
        if settled.kind() == EntryKind::File && is_recorded {
            self.judged += 1;
            let is_redated = settled.verdict == Verdict::Touched && settled.was_read;
            self.same_content += u64::from(is_redated);
        }
    }

    /// Returns true if the files of the recorded content under another date are
    /// most of `files`.
    fn is_most_of(self, files: u64) -> bool {
        self.same_content.saturating_add(self.around).saturating_mul(2) > files
    }
}

/// Edits whose verdict waits until it is known what other dates say in this tree.
#[derive(Default)]
pub(super) struct HeldEdits {
    edits: Vec<(u64, Box<PendingRead>)>,
    bytes: usize,
}

impl ResultRecorder<'_> {
    /// Begins to count. `are_many` is true if so many files have another date
    /// that they might be most; a part of a tree is not sampled. An update goes
    /// on where one that was cut off came to.
    pub(super) fn begin_redated(&mut self, are_many: bool) -> Result<()> {
        let scope = &self.plan.walk.scope;
        let carried = match self.outcome.is_update {
            true => self.catalog.redated_files(scope)?,
            false => RedatedFiles::default(),
        };
        self.redated.same_content += carried.within;
        self.redated.around = carried.around;
        if are_many || carried != RedatedFiles::default() || !scope.is_root() {
            self.new_dates = NewDates::InDoubt;
        }
        Ok(())
    }

    /// Keeps the count for the update that goes on if this one is cut off.
    pub(super) fn keep_redated(&mut self) -> Result<()> {
        if !self.outcome.is_update || self.new_dates == NewDates::Explain {
            return Ok(());
        }
        let scope = &self.plan.walk.scope;
        let kept = self.catalog.set_redated_files(scope, self.redated.same_content);
        self.stop_on_write_error(kept)
    }

    /// Ends the counting: nothing is left that an update could go on with.
    pub(super) fn end_redated(&mut self) -> Result<()> {
        self.new_dates = NewDates::Explain;
        if !self.outcome.is_update {
            return Ok(());
        }
        let scope = &self.plan.walk.scope;
        let settled = self.catalog.settle_redated_files(scope, self.redated.same_content);
        self.stop_on_write_error(settled)
    }

    /// Counts a file for the rule, which may decide it.
    pub(super) fn count_redated(&mut self, settled: &PathResult) {
        self.redated.add(settled);
        if self.new_dates == NewDates::InDoubt && self.redated.is_most_of(self.files_at_start) {
            self.new_dates = NewDates::ExplainNothing;
        }
    }
}

impl Evaluator<'_> {
    /// Returns how far dates can be believed for this file. One that was a
    /// damaged copy stays one under the same date: an `update` has recorded the
    /// new dates of the files around it by then.
    pub(super) fn date_rules(&self, stored: Option<&StoredRow>, entry: &Entry) -> DateRules {
        let was_damaged_copy =
            known_damage(stored).is_some_and(|known| known.verdict == Verdict::DamagedCopy);
        DateRules {
            granularity_ns: granularity_ns(self.recorder.catalog, stored, entry),
            new_date_explains: self.recorder.new_dates != NewDates::ExplainNothing
                && !was_damaged_copy,
        }
    }

    /// Returns true if a verdict depends on the meaning of other dates in this
    /// tree, and that is not known yet.
    pub(super) fn is_in_doubt(
        &mut self,
        verdict: Verdict,
        then: &Entry,
        now: &Entry,
    ) -> Result<bool> {
        let is_edit = matches!(verdict, Verdict::Modified | Verdict::Reverted);
        if !is_edit || then.size != now.size {
            return Ok(false);
        }
        // Which looks at a sample of the tree.
        Ok(self.recorder.precheck_once()? && self.recorder.new_dates == NewDates::InDoubt)
    }

    /// Lets an edit wait for its verdict.
    pub(super) fn hold_edit(
        &mut self,
        id: u64,
        mut pending: Box<PendingRead>,
        content: Rc<ReadContent>,
        comparison: BlockComparison,
        recorded: Vec<BlockValue>,
    ) -> Result<()> {
        let values = content.blocks.len() + recorded.len();
        self.held_edits.bytes += size_of::<PendingRead>() + 1024 + values * size_of::<BlockValue>();
        pending.first = Some(FirstRead { content, comparison, recorded });
        self.held_edits.edits.push((id, pending));
        match self.held_edits.bytes > HELD_BYTES_MAX {
            true => self.decide_held_edits(),
            false => Ok(()),
        }
    }

    /// Decides the meaning of other dates, and gives the edits that wait their
    /// verdict. Returns true if some of them are read a second time.
    pub(super) fn settle_held_edits(&mut self) -> Result<bool> {
        if self.held_edits.edits.is_empty() {
            return Ok(false);
        }
        self.decide_held_edits()?;
        Ok(!self.pending.is_empty())
    }

    fn decide_held_edits(&mut self) -> Result<()> {
        let held = std::mem::take(&mut self.held_edits).edits;
        if self.recorder.new_dates == NewDates::InDoubt {
            let files = self.recorder.redated.judged + held.len() as u64;
            self.recorder.new_dates = match self.recorder.redated.is_most_of(files) {
                true => NewDates::ExplainNothing,
                false => NewDates::Explain,
            };
        }
        for (id, mut pending) in held {
            if self.recorder.new_dates == NewDates::ExplainNothing {
                // Nothing is reported as damaged after one reading.
                let first = pending.first.as_ref();
                let blocks = first.map_or_else(Vec::new, |first| first.blocks(pending.entry.size));
                self.queue_read(id, pending, blocks, Vec::new());
            } else if let Some(FirstRead { content, comparison, .. }) = pending.first.take() {
                self.finish_after_first_read(pending, comparison, content)?;
            }
        }
        Ok(())
    }
}
