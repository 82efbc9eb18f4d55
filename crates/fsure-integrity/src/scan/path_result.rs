//! The result for one path, as it goes from the evaluation to the recorder.

use std::rc::Rc;

use super::candidate::Candidate;
use super::read_request::ReadContent;
use super::verified_sequence::SequencePlace;
use crate::catalog::{Row, StoredRow, VerificationDates};
use crate::model::{
    Basis, ByteRange, Entry, EntryKind, Finding, KnownDamage, MetadataChange, NameMismatch, Record,
    RecordedValue, Verdict,
};
use fsure_core::RelPath;

/// A path with its verdict and all that led to it.
pub(super) struct PathResult {
    pub(super) path: RelPath,
    pub(super) stored: Option<StoredRow>,
    pub(super) entry: Option<Entry>,
    pub(super) verdict: Verdict,
    pub(super) damaged: Vec<ByteRange>,
    pub(super) damaged_blocks: u64,
    pub(super) unreadable: Vec<ByteRange>,
    pub(super) reason: Option<String>,
    /// Differences between its metadata and the record.
    pub(super) meta: Vec<MetadataChange>,
    /// Name mismatch between its name and the recorded one, if any.
    pub(super) name_mismatch: Option<NameMismatch>,
    /// True if the record may be dropped at the user's request: nothing of that
    /// name is there, or it is left out.
    pub(super) may_be_forgotten: bool,
    /// True if its content was read.
    pub(super) was_read: bool,
    pub(super) basis: Basis,
    /// The content, if it was read and was the same every time.
    pub(super) content: Option<Rc<ReadContent>>,
    /// Time at which its oldest part was read, seconds since 1970, if it was
    /// not read in one go.
    pub(super) verified_s: Option<i64>,
    /// Its place among the recorded files, if it can be part of a range that is verified.
    pub(super) sequence_place: Option<SequencePlace>,
}

impl PathResult {
    pub(super) fn new(
        path: RelPath,
        stored: Option<StoredRow>,
        entry: Option<Entry>,
        verdict: Verdict,
    ) -> Self {
        let other_name = stored.as_ref().map(StoredRow::path).filter(|other| **other != path);
        let name_mismatch = other_name.and_then(|other| NameMismatch::between(other, &path));
        let is_moved = other_name.is_some() && name_mismatch.is_none();
        let verdict = if is_moved { verdict.as_moved() } else { verdict };
        Self {
            path,
            stored,
            entry,
            verdict,
            damaged: Vec::new(),
            damaged_blocks: 0,
            unreadable: Vec::new(),
            reason: None,
            name_mismatch,
            meta: Vec::new(),
            may_be_forgotten: false,
            was_read: false,
            basis: Basis::Stat,
            content: None,
            verified_s: None,
            sequence_place: None,
        }
    }

    /// Creates the result for a path that is there.
    pub(super) fn of(file: Candidate, verdict: Verdict) -> Self {
        let sequence_place = file.sequence_place;
        Self { sequence_place, ..Self::new(file.path, file.stored, Some(file.entry), verdict) }
    }

    /// The record this verdict is about; a tombstone counts if the file came
    /// back as it was.
    fn recorded(&self) -> Option<&Record> {
        let row = self.row()?;
        let came_back = self.verdict != Verdict::New;
        (!row.is_gone() || came_back).then_some(&row.record)
    }

    pub(super) fn row(&self) -> Option<&Row> {
        match &self.stored {
            Some(StoredRow::Sound(row)) => Some(row),
            _ => None,
        }
    }

    /// Damage that an earlier run found, unless this run saw the recorded content.
    pub(super) fn open_damage(&self) -> Option<KnownDamage> {
        let is_as_recorded =
            matches!(self.verdict, Verdict::Ok | Verdict::Touched | Verdict::Moved);
        self.row()?.known_damage().filter(|_| !(self.was_read && is_as_recorded))
    }

    /// The row it was judged by, if that is another path's.
    pub(super) fn moved_row(&self) -> Option<&Row> {
        self.row().filter(|row| row.record.path != self.path)
    }

    /// Returns true if its row is of this path and has no later date than these.
    pub(super) fn can_be_dated(&self, dates: VerificationDates) -> bool {
        self.moved_row().is_none()
            && self.row().is_some_and(|row| {
                dates.verified_s >= row.record.verified_s
                    && dates.hashed_ns.is_none_or(|hashed_ns| hashed_ns >= row.record.hashed_ns)
            })
    }

    pub(super) fn kind(&self) -> EntryKind {
        let recorded = || self.row().map(|row| row.record.entry.kind);
        self.entry.as_ref().map(|entry| entry.kind).or_else(recorded).unwrap_or(EntryKind::File)
    }

    /// Bytes of the entry found.
    pub(super) fn size(&self) -> u64 {
        self.entry.as_ref().map_or(0, |entry| entry.size)
    }

    /// Bytes of the longer of recorded and found.
    pub(super) fn longest_size(&self) -> u64 {
        self.size().max(self.row().map_or(0, |row| row.record.entry.size))
    }

    /// Gives a file that this run does not read the verdict of the run that did:
    /// an unchanged stat says nothing of a content that is known to be damaged.
    pub(super) fn remember_damage(mut self) -> Self {
        let is_well_by_stat =
            matches!(self.verdict, Verdict::Ok | Verdict::Touched | Verdict::Moved);
        if let Some(known) = self.row().and_then(Row::known_damage).filter(|_| is_well_by_stat) {
            self.verdict = known.verdict;
            self.basis = Basis::KnownDamage;
        }
        self
    }

    /// Returns true if the user has to accept what was found before it is
    /// recorded: the verdict is suspicious, or explains no damage that was
    /// there before.
    pub(super) fn needs_acceptance(&self) -> bool {
        let is_edit = matches!(self.verdict, Verdict::Modified | Verdict::Reverted);
        !self.verdict.is_recordable() || (is_edit && self.open_damage().is_some())
    }

    /// Returns true if the record of it, or of its metadata, fails its seal.
    pub(super) fn has_bad_record(&self) -> bool {
        let has_bad_metadata = self.meta.iter().any(|change| change.was == RecordedValue::Bad);
        self.verdict == Verdict::RecordBad || has_bad_metadata
    }

    /// Returns what is reported of it; `recorded_now` is true if the run has recorded it.
    pub(super) fn finding(&self, recorded_now: bool) -> Finding {
        Finding {
            path: self.path.clone(),
            kind: self.kind(),
            verdict: self.verdict,
            moved_from: self.moved_row().map(|row| row.record.path.clone()),
            recorded: self.recorded().map(|record| record.entry.clone()),
            found: self.entry.clone(),
            damaged: self.damaged.clone(),
            unreadable: self.unreadable.clone(),
            reason: self.reason.clone(),
            name_mismatch: self.name_mismatch,
            meta: self.meta.clone(),
            recorded_now,
            is_dry_run: false,
            basis: self.basis,
            known_damage: self.open_damage(),
        }
    }
}
