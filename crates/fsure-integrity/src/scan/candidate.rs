//! The value that goes through the stages: a path that is there, with its row, its stat and how
//! they relate. The relation is computed once, and again only if another stat is taken.

use fsure_os::Stat;

use super::entry_builder::known;
use super::verified_sequence::SequencePlace;
use crate::catalog::{Row, StoredRow};
use crate::model::{
    DateRules, Entry, Evidence, KnownDamage, Observation, RecordState, Verdict, judge,
};
use fsure_core::RelPath;

/// A path that is there, beside its record.
pub(super) struct Candidate {
    pub(super) path: RelPath,
    pub(super) stored: Option<StoredRow>,
    pub(super) entry: Entry,
    /// Stat of the path when it was last taken or read.
    pub(super) stat: Stat,
    /// Device of the folder it is in, or of itself if it is one.
    pub(super) device: u64,
    /// Coarser granularity of modification times of both file systems, nanoseconds.
    granularity_ns: i64,
    /// True if the row is one that the entry can be compared with.
    is_comparable: bool,
    /// Its place among the recorded files, if it can be part of a range that is verified.
    pub(super) sequence_place: Option<SequencePlace>,
}

impl Candidate {
    /// Creates the value of a path. `granularity_ns` is the coarser granularity of modification
    /// times of the file systems of the entry and of the row.
    pub(super) fn new(
        path: RelPath,
        stored: Option<StoredRow>,
        entry: Entry,
        (stat, device): (Stat, u64),
        granularity_ns: i64,
    ) -> Self {
        let is_comparable =
            matches!(known(stored.as_ref(), &entry, granularity_ns), RecordState::Sound(_));
        Self {
            path,
            stored,
            entry,
            stat,
            device,
            granularity_ns,
            is_comparable,
            sequence_place: None,
        }
    }

    /// Returns what is recorded that the entry can be compared with.
    pub(super) fn state(&self) -> RecordState<'_> {
        match &self.stored {
            Some(StoredRow::Bad(_)) => RecordState::Bad,
            Some(StoredRow::Sound(row)) if self.is_comparable => RecordState::Sound(&row.record),
            _ => RecordState::Nothing,
        }
    }

    /// Returns true if nothing is recorded that the entry could be compared with.
    pub(super) fn is_unknown(&self) -> bool {
        matches!(self.state(), RecordState::Nothing)
    }

    /// Returns the row that the entry is compared with.
    pub(super) fn comparable_row(&self) -> Option<&Row> {
        self.sound_row().filter(|_| self.is_comparable)
    }

    /// Returns the row of the path if its seal fits.
    pub(super) fn sound_row(&self) -> Option<&Row> {
        match &self.stored {
            Some(StoredRow::Sound(row)) => Some(row),
            _ => None,
        }
    }

    /// Returns the damage that an earlier run found in the file.
    pub(super) fn known_damage(&self) -> Option<KnownDamage> {
        self.sound_row().and_then(Row::known_damage)
    }

    pub(super) fn granularity_ns(&self) -> i64 {
        self.granularity_ns
    }

    /// Returns how far dates can be believed for this file. `explain_nothing` is true if other
    /// dates explain nothing in the tree. A file that was a damaged copy stays one under the
    /// same date: an `update` has recorded the new dates of the files around it by then.
    pub(super) fn date_rules(&self, explain_nothing: bool) -> DateRules {
        let was_damaged_copy =
            self.known_damage().is_some_and(|known| known.verdict == Verdict::DamagedCopy);
        DateRules {
            granularity_ns: self.granularity_ns,
            new_date_explains: !explain_nothing && !was_damaged_copy,
        }
    }

    /// Returns the verdict for what was found.
    pub(super) fn judge(&self, evidence: Evidence, rules: DateRules) -> Verdict {
        judge(self.state(), Observation::Present(&self.entry, evidence), rules)
    }
}
