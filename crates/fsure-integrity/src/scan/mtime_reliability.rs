//! The rule that says if another date explains another content in this tree. After a copy
//! that kept no dates it does not: nearly every file has its recorded content
//! under a new date, and a file that was damaged before or by the copying looks
//! like an edit. The rule, with its limits, is in `docs/promises.md`.

use super::Purpose;
use super::path_result::PathResult;
use crate::catalog::{Catalog, RedatedFiles};
use crate::model::{EntryKind, Scopes, Verdict};
use fsure_core::Result;

/// The meaning of another date of a file that has another content of the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NewDates {
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
struct RedatedCount {
    /// In the scope, by this update and those before it that were cut off.
    same_content: u64,
    /// By updates of more than the scope that were cut off: some of them are in it.
    around: u64,
    judged: u64,
}

impl RedatedCount {
    fn add(&mut self, result: &PathResult) {
        let is_recorded = result.row().is_some_and(|row| !row.is_gone());
        if result.kind() == EntryKind::File && is_recorded {
            self.judged += 1;
            let is_redated = result.verdict == Verdict::Touched && result.was_read;
            self.same_content += u64::from(is_redated);
        }
    }

    /// Returns true if the files of the recorded content under another date are
    /// most of `files`.
    fn is_most_of(self, files: u64) -> bool {
        self.same_content.saturating_add(self.around).saturating_mul(2) > files
    }
}

/// The meaning of other dates in a tree, and the counts that decide it.
pub(super) struct MtimeReliability {
    new_dates: NewDates,
    redated: RedatedCount,
    /// True if the count goes on where an update that was cut off came to.
    is_update: bool,
    /// Count of earlier updates of the scope that were cut off, when this run began.
    carried: u64,
    /// True if the count was kept for the case that this run is cut off.
    has_kept: bool,
}

impl MtimeReliability {
    pub(super) fn new(purpose: &Purpose) -> Self {
        Self {
            new_dates: NewDates::Explain,
            redated: RedatedCount::default(),
            is_update: matches!(purpose, Purpose::Update(_)),
            carried: 0,
            has_kept: false,
        }
    }

    /// Begins to count. Several scopes are counted with the folder around them, which makes an
    /// edit rather doubtful than believed. `are_many` is true if so many files have another date
    /// that they might be most; a part of a tree is not sampled. An update goes
    /// on where one that was cut off came to.
    pub(super) fn begin(
        &mut self,
        catalog: &Catalog,
        scopes: &Scopes,
        are_many: bool,
    ) -> Result<()> {
        let carried = match self.is_update {
            true => catalog.redated_counts().of(&scopes.around())?,
            false => RedatedFiles::default(),
        };
        self.redated.same_content += carried.within;
        self.carried = carried.within;
        self.redated.around = carried.around;
        if are_many || carried != RedatedFiles::default() || !scopes.is_root() {
            self.new_dates = NewDates::InDoubt;
        }
        Ok(())
    }

    /// Keeps the count for the update that goes on if this one is cut off.
    pub(super) fn keep(&mut self, catalog: &mut Catalog, scopes: &Scopes) -> Result<()> {
        if !self.is_update || self.new_dates == NewDates::Explain {
            return Ok(());
        }
        self.has_kept = true;
        catalog.redated_counts_mut().set(&scopes.around(), self.redated.same_content)
    }

    /// Ends the counting: nothing is left that an update could go on with. After an update of
    /// several scopes, what updates of the folder around them have left is there again.
    pub(super) fn end(&mut self, catalog: &mut Catalog, scopes: &Scopes) -> Result<()> {
        self.new_dates = NewDates::Explain;
        if !self.is_update {
            return Ok(());
        }
        let scope = scopes.around();
        match scopes.is_one() {
            true => catalog.redated_counts_mut().finish(&scope, self.redated.same_content),
            false if self.has_kept => catalog.redated_counts_mut().restore(&scope, self.carried),
            false => Ok(()),
        }
    }

    /// Counts a file for the rule, which may decide it. `files` is the number of files
    /// recorded when the run began.
    pub(super) fn add(&mut self, result: &PathResult, files: u64) {
        self.redated.add(result);
        if self.is_in_doubt() && self.redated.is_most_of(files) {
            self.new_dates = NewDates::ExplainNothing;
        }
    }

    /// Decides the rule by what was seen so far, with so many edits waiting for it.
    pub(super) fn decide(&mut self, held: u64) {
        if self.is_in_doubt() {
            self.new_dates = match self.redated.is_most_of(self.redated.judged + held) {
                true => NewDates::ExplainNothing,
                false => NewDates::Explain,
            };
        }
    }

    /// Returns true if it is not known yet what other dates say in this tree.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.new_dates == NewDates::InDoubt
    }

    /// Returns true if other dates explain nothing in this tree.
    pub(super) fn explains_nothing(&self) -> bool {
        self.new_dates == NewDates::ExplainNothing
    }
}
