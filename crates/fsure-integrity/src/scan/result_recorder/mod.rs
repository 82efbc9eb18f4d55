//! Counts and reports each verdict and, if the rules allow it, writes it.

mod finish;

use std::collections::BTreeSet;

use super::apply_update_rules::decide;
use super::commits::CommitSchedule;
use super::excluded;
use super::future_changes::FutureChanges;
use super::known_damage::{self, JudgedDamage};
use super::metadata;
use super::missing_files::MissingFiles;
use super::mtime_reliability::MtimeReliability;
use super::path_result::PathResult;
use super::precheck::{self, Sample};
use super::read_request::KEEP_PARTS_MIN;
use super::run_report::RunReport;
use super::run_time::{RunTime, seconds};
use super::signed_excludes::ObeyedPatterns;
use super::tombstones::TombstoneSweep;
use super::verified_sequence::{SequencePlace, VerifiedPathRange, VerifiedSequence};
use super::{Purpose, ScanPlan};
use crate::catalog::{
    Audit, Catalog, Row, StoredMetadata, StoredRow, UnfinishedBlocks, VerificationDates,
    VerifiedRange, check_pages,
};
use crate::model::{
    Basis, Entry, EntryKind, Metadata, MetadataChange, Offline, Record, ScanMonitor, Verdict,
};
use crate::tree::ExcludeReason;
use fsure_core::block_hash::BlockValue;
use fsure_core::{Error, RelPath, Result};

/// A reason to end the run with nothing changed since the last commit.
enum AbortReason {
    /// The root is not there; nothing may be changed.
    Offline(Offline),
    /// The record as a whole cannot be believed.
    Untrusted(String),
}

/// Counts, reports and writes verdicts.
pub(super) struct ResultRecorder<'a> {
    plan: &'a ScanPlan,
    catalog: &'a mut Catalog,
    report: RunReport<'a>,
    time: RunTime,
    commits: CommitSchedule,
    /// True if this run has committed results.
    has_saved: bool,
    may_write: bool,
    /// True if the record and the root were checked, or are being checked.
    is_prechecked: bool,
    is_halted: bool,
    /// True if the time of a scrub is over.
    is_over: bool,
    /// True if the catalog has parts of files that may have to be forgotten.
    has_parts: bool,
    /// Rows that fail their seal, as the precheck has seen them.
    bad_rows: Vec<RelPath>,
    /// Bytes of the files that were judged by their content.
    bytes_read_and_judged: u64,
    missing: MissingFiles,
    /// True if there is no folder among the scopes.
    is_of_files: bool,
    mtimes: MtimeReliability,
    future_changes: FutureChanges,
    judged_damage: JudgedDamage,
    /// Files that take longer than a scrub has had time, as far as is known.
    cut_off: BTreeSet<RelPath>,
    tombstones: TombstoneSweep,
    patterns: ObeyedPatterns,
    /// The recorded files in their order, if the run reads all of them.
    sequence: Option<VerifiedSequence>,
    /// Number of small files that were as recorded, and of which nothing is written but their
    /// range.
    intact_files: u64,
    /// The number of the generation that the run makes, once it makes one.
    generation: Option<u64>,
}

impl<'a> ResultRecorder<'a> {
    pub(super) fn new(
        plan: &'a ScanPlan,
        catalog: &'a mut Catalog,
        monitor: &'a dyn ScanMonitor,
    ) -> Self {
        let time = RunTime::begin(&plan.clock);
        Self {
            plan,
            report: RunReport::new(plan, monitor),
            time,
            commits: CommitSchedule::begin(),
            has_saved: false,
            may_write: plan.may_write,
            is_prechecked: false,
            is_halted: false,
            is_over: false,
            has_parts: false,
            bad_rows: Vec::new(),
            bytes_read_and_judged: 0,
            missing: MissingFiles::new(catalog.files()),
            is_of_files: plan.is_of_files(),
            mtimes: MtimeReliability::new(&plan.purpose),
            future_changes: FutureChanges::default(),
            judged_damage: JudgedDamage::default(),
            cut_off: BTreeSet::new(),
            tombstones: TombstoneSweep::new(&plan.purpose, time.now_s()),
            patterns: ObeyedPatterns::default(),
            sequence: VerifiedSequence::of(plan),
            intact_files: 0,
            generation: None,
            catalog,
        }
    }

    pub(super) fn catalog(&self) -> &Catalog {
        self.catalog
    }

    pub(super) fn catalog_mut(&mut self) -> &mut Catalog {
        self.catalog
    }

    pub(super) fn report(&self) -> &RunReport<'a> {
        &self.report
    }

    pub(super) fn report_mut(&mut self) -> &mut RunReport<'a> {
        &mut self.report
    }

    pub(super) fn time(&self) -> RunTime {
        self.time
    }

    pub(super) fn mtimes(&self) -> &MtimeReliability {
        &self.mtimes
    }

    pub(super) fn mtimes_mut(&mut self) -> &mut MtimeReliability {
        &mut self.mtimes
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_halted || self.is_over || self.report.outcome().stopped.is_some()
    }

    /// Returns true if the run ends before all orders came back, with a record
    /// that is sound and may be written.
    pub(super) fn is_cut_short(&self) -> bool {
        self.is_stopped() && !self.is_halted
    }

    /// Notes that the time of a scrub is over.
    pub(super) fn end_in_time(&mut self) {
        self.is_over = true;
    }

    /// Files judged, and bytes: those of the files judged, and of the
    /// `hashed` ones those that belong to files still being read.
    pub(super) fn judged(&self, hashed: u64) -> (u64, u64) {
        let under_way = hashed.saturating_sub(self.bytes_read_and_judged);
        let outcome = self.report.outcome();
        (outcome.files.total(), outcome.bytes_judged.saturating_add(under_way))
    }

    /// Takes the rows that fail their seal, as the precheck has seen them.
    pub(super) fn take_bad_rows(&mut self) -> Vec<RelPath> {
        std::mem::take(&mut self.bad_rows)
    }

    /// Notes the number of files that are gone for good, now that all names are known. They may
    /// have vanished since the check before the first write.
    pub(super) fn set_files_gone(&mut self, gone: u64) {
        self.missing.set_gone(gone);
        if self.is_prechecked && !self.is_halted && !self.is_of_files {
            self.halt_if_mostly_missing(gone);
        }
    }

    /// Notes a tombstone that nothing came back for.
    pub(super) fn note_tombstone(&mut self, row: &Row) {
        self.tombstones.note(row);
    }

    /// Notes a pattern file that the walk obeys.
    pub(super) fn remember_exclude_file(&mut self, path: RelPath, text: Vec<u8>) {
        if self.plan.binds_claims {
            self.patterns.add(path, text);
        }
    }

    /// Returns the place of the next row in the order of paths, if it is one of a file and the
    /// run verifies ranges of them.
    pub(super) fn next_in_sequence(&mut self, stored: Option<&StoredRow>) -> Option<SequencePlace> {
        match (&mut self.sequence, stored) {
            (Some(sequence), Some(StoredRow::Sound(row))) if row.is_live_file() => {
                Some(sequence.push())
            }
            _ => None,
        }
    }

    /// Ends the range of verified paths at a file, if it is in the sequence.
    pub(super) fn end_range_at(&mut self, place: Option<SequencePlace>) {
        if let (Some(sequence), Some(place)) = (&mut self.sequence, place) {
            sequence.not_verified(place);
        }
    }

    /// Ends the range of verified paths at a path that has no place in the sequence.
    pub(super) fn end_range(&mut self) {
        if let Some(sequence) = &mut self.sequence {
            let place = sequence.push();
            sequence.not_verified(place);
        }
    }

    /// Notes that a file is as recorded as part of a range. Returns false if it needs a row of
    /// its own.
    fn verify_in_range(&mut self, result: &mut PathResult, dates: VerificationDates) -> bool {
        let (Some(sequence), Some(place)) = (&mut self.sequence, result.sequence_place) else {
            return false;
        };
        let is_in_range =
            result.can_be_dated(dates) && sequence.verified(place, &result.path, dates);
        if is_in_range {
            result.sequence_place = None;
        }
        is_in_range
    }

    /// Takes a small file that is as recorded into its range. Returns false if something else
    /// has to be written of it. Nothing is written here, so that the record need not be checked
    /// before.
    fn take_intact(&mut self, result: &mut PathResult, dates: VerificationDates) -> bool {
        let has_blocks = result.row().is_none_or(Row::has_blocks);
        let is_intact = result.verdict == Verdict::Ok && !has_blocks;
        let is_taken =
            is_intact && !self.catalog.findings().are_any() && self.verify_in_range(result, dates);
        self.intact_files += u64::from(is_taken);
        is_taken
    }

    /// Marks the record as untrusted if it is trusted for its signature: rows
    /// that were read before are not what the record holds now.
    pub(super) fn distrust_change(&mut self) {
        if self.plan.binds_claims {
            self.report.distrust("its rows changed while they were judged".to_owned());
        }
    }

    /// Returns the block values of a row; none if the catalog cannot give them,
    /// which makes the record doubtful and not the run impossible.
    pub(super) fn blocks(&mut self, row: &Row) -> Result<Vec<BlockValue>> {
        match self.catalog.block_values().of(row) {
            Err(Error::RecordUntrusted { why, .. }) => {
                self.report.distrust(why);
                self.may_write = false;
                Ok(Vec::new())
            }
            other => other,
        }
    }

    /// Writes, counts and reports a verdict.
    pub(super) fn finish_path(&mut self, mut result: PathResult) -> Result<()> {
        if result.verdict == Verdict::Missing && !self.precheck_once()? {
            return Ok(());
        }
        let Some(wrote) = self.write_and_count(&mut result)? else { return Ok(()) };
        let is_flagged = result.name_mismatch.is_some() || !result.meta.is_empty();
        if result.verdict == Verdict::Ok && !is_flagged && !self.plan.report_ok {
            self.report.outcome_mut().add_ok(result.kind(), result.size());
            return Ok(());
        }
        self.report.note_if_denied(self.plan, &mut result);
        self.report.add_result(&result, wrote);
        self.note_missing(&result);
        Ok(())
    }

    /// Writes what was found and counts the work. Returns true if it is
    /// recorded now; `None` if the run is over.
    pub(super) fn write_and_count(&mut self, result: &mut PathResult) -> Result<Option<bool>> {
        if let Some(why) = self.patterns.check(result) {
            self.report.distrust(why);
        }
        let metadata = metadata::compare_found(self.plan, result);
        let metadata = metadata.map(|(metadata, changes)| {
            result.meta = changes;
            metadata
        });
        let wrote = self.write(result)?;
        self.end_range_at(result.sequence_place.take());
        let wrote = self.write_metadata(result, metadata, wrote)? || wrote;
        if self.is_halted {
            return Ok(None);
        }
        self.mtimes.add(result, self.missing.at_start());
        self.future_changes.add(result, self.time);
        if self.plan.scrub.is_some() {
            self.judged_damage.add(result);
        }
        let outcome = self.report.outcome_mut();
        outcome.hashed += u64::from(result.was_read);
        outcome.damaged_blocks += result.damaged_blocks;
        if let (Some(scrub), Some(_)) = (&mut outcome.scrub, &result.stored) {
            scrub.note_done(result.row().map_or(0, |row| row.record.entry.size));
            self.cut_off.remove(&result.path);
        }
        if result.kind() == EntryKind::File {
            // Sizes are what files claim, and a few may claim more than a number holds.
            outcome.bytes_judged = outcome.bytes_judged.saturating_add(result.size());
            self.bytes_read_and_judged += if result.was_read { result.size() } else { 0 };
        }
        Ok(Some(wrote))
    }

    /// Counts a missing file, and halts the run if more than half of the files
    /// are gone: that is not a clean-up but a disk that is not there.
    fn note_missing(&mut self, result: &PathResult) {
        if result.verdict != Verdict::Missing || result.kind() != EntryKind::File {
            return;
        }
        // A scrub reports as missing what a verify reports as moved.
        let are_most = self.missing.add(self.plan.scrub.is_some());
        if are_most && !self.is_of_files {
            self.halt_if_mostly_missing(self.missing.missing());
        }
    }

    fn halt_if_mostly_missing(&mut self, missing: u64) {
        let recorded = self.missing.at_start();
        if !self.plan.allowed.missing && self.missing.is_most(missing) {
            self.halt(AbortReason::Offline(Offline::MostlyMissing { missing, recorded }));
        }
    }

    /// Ends the run with nothing changed since the last commit.
    fn halt(&mut self, halt: AbortReason) {
        self.catalog.rollback();
        self.may_write = false;
        self.is_halted = true;
        let outcome = self.report.outcome_mut();
        match halt {
            AbortReason::Offline(offline) => {
                outcome.offline = Some(offline);
                outcome.saved_before_offline = self.has_saved;
            }
            AbortReason::Untrusted(why) => outcome.record_untrusted = Some(why),
        }
    }

    /// Reports a recorded path that is left out, so that it does not count as
    /// "as recorded". Returns false for a tombstone, which is not reported.
    pub(super) fn leave_out_recorded(
        &mut self,
        path: RelPath,
        stored: StoredRow,
        why: ExcludeReason,
    ) -> Result<bool> {
        let Some(result) = excluded::result_of(path, stored, why) else { return Ok(false) };
        let is_left_out = result.kind() == EntryKind::File && result.verdict == Verdict::Ignored;
        let path = result.path.clone();
        let accepted = self.report.outcome().accepted.total();
        self.finish_path(result)?;
        if is_left_out && self.report.outcome().accepted.total() == accepted {
            self.report.count_recorded_left_out(path, why);
        }
        Ok(true)
    }

    /// Checks once, before anything is written or reported as missing, the
    /// record as a whole and that the root is there at all. Returns true if the
    /// run may go on.
    pub(super) fn precheck_once(&mut self) -> Result<bool> {
        if self.is_prechecked {
            return Ok(!self.is_halted);
        }
        self.is_prechecked = true;
        let damaged_pages = check_pages(self.catalog)?;
        let mut audit = match self.is_all_intact() || damaged_pages.is_some() {
            true => Audit::default(),
            false => Audit::of_rows(self.catalog)?,
        };
        if damaged_pages.is_some() {
            audit.objection = damaged_pages;
            self.reject_record(&audit);
        } else if !audit.is_clean() && !precheck::is_accepted(&self.plan.purpose, &audit) {
            self.reject_record(&audit);
        } else if audit.objection.is_some() {
            self.accept_losses(&audit)?;
        }
        self.has_parts = self.catalog.verified_ranges().are_any()?;
        // Storage that does not respond must not keep a run that has given it up.
        let sample = match self.is_stopped() {
            true => Sample::default(),
            false => Sample::look(self.plan, self.catalog, &audit.sample),
        };
        if !self.is_halted && !self.plan.allowed.missing {
            let missing = match self.missing.gone() {
                Some(gone) => gone,
                None if sample.may_be_deserted() => self.count_gone()?,
                None => 0,
            };
            self.halt_if_mostly_missing(missing);
        }
        self.mtimes.begin(self.catalog, &self.plan.scopes, sample.may_be_redated())?;
        self.bad_rows = audit.bad_rows;
        Ok(!self.is_halted)
    }

    /// Checks the pages of a record whose rows were all fetched and are sound, unless the check of
    /// the whole record has: one that no row is in may be damaged, too.
    pub(super) fn check_pages_once(&mut self) -> Result<()> {
        if !self.is_prechecked {
            let objection = check_pages(self.catalog)?;
            if objection.is_some() {
                self.reject_record(&Audit { objection, ..Audit::default() });
            }
        }
        Ok(())
    }

    /// Returns true if the run may write now, after the check that comes before its first write:
    /// the check may take the right away.
    fn may_write_now(&mut self) -> Result<bool> {
        if !self.may_write {
            return Ok(false);
        }
        Ok(self.precheck_once()? && self.may_write)
    }

    /// Returns true if all recorded files were read and are as recorded, and all rows were
    /// fetched and are sound: a check of all rows would find nothing, and no file is gone or
    /// has another date.
    fn is_all_intact(&self) -> bool {
        self.intact_files == self.catalog.files() && self.has_shown_all()
    }

    /// Returns true if all rows of the catalog were fetched and are sound. Those of a part of the
    /// tree might fit the totals of an older root row that was put back.
    pub(super) fn has_shown_all(&self) -> bool {
        self.plan.scopes.is_root() && self.catalog.has_shown_all()
    }

    /// The record is not what was written. A run that judges goes on and
    /// writes nothing; one that records has nothing left to do.
    fn reject_record(&mut self, audit: &Audit) {
        let why = precheck::objection(audit);
        self.may_write = false;
        if !matches!(self.plan.purpose, Purpose::Update(_)) {
            self.report.outcome_mut().record_untrusted = Some(why);
            return;
        }
        self.halt(AbortReason::Untrusted(why));
        for path in &audit.bad_rows {
            if !self.report.has_reported_bad(path) {
                let stored = Some(StoredRow::Bad(path.clone()));
                let result = PathResult::new(path.clone(), stored, None, Verdict::RecordBad);
                self.report.add_result(&result, false);
            }
        }
    }

    /// Takes the rows there are for the whole record, and leaves a note of it
    /// if rows were lost without a trace.
    fn accept_losses(&mut self, audit: &Audit) -> Result<()> {
        self.catalog.recount_at_commit();
        if precheck::has_lost_rows(audit) {
            let (none, name) = (RelPath::root(), Verdict::RecordBad.name());
            self.catalog.note_accepted(self.time.now_s(), &none, name, None, None)?;
        }
        Ok(())
    }

    fn count_gone(&mut self) -> Result<u64> {
        let monitor = self.report.monitor();
        let counted = precheck::count_gone(self.plan, self.catalog, monitor, &self.missing)?;
        self.missing.set_elsewhere(counted.elsewhere);
        Ok(counted.gone)
    }

    /// Writes what the rules allow. Returns true if what was found is recorded now.
    fn write(&mut self, result: &mut PathResult) -> Result<bool> {
        if !self.may_write {
            return Ok(false);
        }
        match &self.plan.purpose {
            Purpose::Status => Ok(false),
            Purpose::Verify => self.write_verified(result).map(|()| false),
            Purpose::Update(rules) => {
                let accepts = result.needs_acceptance() && rules.accept.covers(&result.path);
                if result.needs_acceptance() && !accepts {
                    return self.write_not_accepted(result).map(|()| false);
                }
                let is_as_recorded = matches!(result.verdict, Verdict::Ok | Verdict::Touched)
                    && result.content.is_some();
                if rules.only_completes && !is_as_recorded {
                    return Ok(false);
                }
                self.write_found(result, accepts)
            }
        }
    }

    /// Notes a verdict of `verify` or of a scrub for the next run: the time at which a
    /// content was last seen to be as recorded, and the files that were checked and were not.
    fn write_verified(&mut self, result: &mut PathResult) -> Result<()> {
        // Of folders and links there is nothing to note.
        if result.kind() != EntryKind::File || result.row().is_none_or(Row::is_gone) {
            return Ok(());
        }
        let is_seen_well =
            matches!(result.verdict, Verdict::Ok | Verdict::Touched | Verdict::Moved);
        let content = result.content.as_ref().filter(|_| is_seen_well);
        let dates = content.map(|content| VerificationDates {
            hashed_ns: None,
            verified_s: result.verified_s.unwrap_or(seconds(content.hashed_ns)),
        });
        if dates.is_some_and(|dates| self.take_intact(result, dates)) {
            return Ok(());
        }
        if !self.may_write_now()? {
            return Ok(());
        }
        self.note_found(result)?;
        let Some(dates) = dates.filter(|_| self.may_write) else { return Ok(()) };
        let is_in_range = self.verify_in_range(result, dates);
        let Some(row) = result.row() else { return Ok(()) };
        if !is_in_range {
            let record = Record { verified_s: dates.verified_s, ..row.record.clone() };
            let written = self.catalog.put_same_content(row, record);
            self.stop_on_write_error(written)?;
        }
        if row.has_blocks() && self.has_parts && self.may_write {
            let forgotten = self.catalog.verified_ranges_mut().set(
                &row.record.path,
                &row.record.entry,
                &[],
                &[],
            );
            self.stop_on_write_error(forgotten)?;
        }
        Ok(())
    }

    /// Notes damage that an update found, which it does not record.
    fn write_not_accepted(&mut self, result: &PathResult) -> Result<()> {
        if !result.verdict.is_damage() || result.basis != Basis::Content || !self.may_write_now()? {
            return Ok(());
        }
        self.note_found(result)?;
        if result.size() >= KEEP_PARTS_MIN && self.may_write {
            // All of it is read again the next time.
            let forgotten = self.catalog.unfinished_files_mut().forget(&result.path);
            self.stop_on_write_error(forgotten)?;
        }
        Ok(())
    }

    fn note_found(&mut self, result: &PathResult) -> Result<()> {
        let noted = known_damage::note_found(self.catalog, result, &self.plan.clock);
        self.stop_on_write_error(noted)
    }

    fn write_found(&mut self, result: &mut PathResult, accepts: bool) -> Result<bool> {
        let Some(change) = decide(self.catalog, result, self.time) else {
            return Ok(false);
        };
        // Of a large file more is written than its row: the parts that were kept of it go.
        let is_small = result.size() < KEEP_PARTS_MIN;
        let seen_again = change.seen_again(result.row()).filter(|_| is_small);
        if seen_again.is_some_and(|dates| self.take_intact(result, dates)) {
            return Ok(true);
        }
        if !self.may_write_now()? {
            return Ok(false);
        }
        let is_in_range = seen_again.is_some_and(|dates| self.verify_in_range(result, dates));
        let before = result.row().map(|row| &row.record);
        let after = change.record().filter(|_| accepts).cloned();
        let is_judged = result.was_read || result.entry.is_none();
        let added = change.added_digests(result);
        let written = match is_in_range {
            true => Ok(()),
            false => change.write(self.catalog, result),
        };
        let written = written.and_then(|()| match is_judged {
            true => self.catalog.findings_mut().forget(&result.path),
            false => Ok(()),
        });
        self.stop_on_write_error(written)?;
        if !self.is_stopped() {
            self.report.outcome_mut().added_digests.add(added);
        }
        if accepts && !self.is_stopped() {
            let (name, now_s) = (result.verdict.name(), self.time.now_s());
            let noted =
                self.catalog.note_accepted(now_s, &result.path, name, before, after.as_ref());
            self.stop_on_write_error(noted)?;
        }
        Ok(!self.is_stopped())
    }

    /// Records the metadata of a path that is itself recorded. Returns true if it did.
    fn write_metadata(
        &mut self,
        result: &PathResult,
        now: Option<Metadata>,
        wrote: bool,
    ) -> Result<bool> {
        let (Purpose::Update(rules), Some(now)) = (&self.plan.purpose, now) else {
            return Ok(false);
        };
        if !self.may_write || !metadata::is_to_record(rules, result, &now, wrote) {
            return Ok(false);
        }
        let is_as_recorded = matches!(
            self.catalog.metadata().of(&result.path)?,
            Some(StoredMetadata::Sound(was)) if was == now
        );
        if is_as_recorded || !self.may_write_now()? {
            return Ok(false);
        }
        let written = self.catalog.metadata_mut().put(&result.path, &now);
        self.stop_on_write_error(written)?;
        Ok(!self.is_stopped())
    }

    /// Returns the differences between the metadata of a moved file and that of
    /// its old name.
    pub(super) fn compare_moved_metadata(
        &mut self,
        from: &RelPath,
        to: &RelPath,
    ) -> Result<Vec<MetadataChange>> {
        metadata::compare_moved(self.plan, self.catalog, from, to)
    }

    /// Leaves the record of a file whose content was found and recorded under
    /// another name to that name, with the digests that were not computed anew.
    pub(super) fn transfer_record(&mut self, old: &Row, path: &RelPath) -> Result<()> {
        let Some(StoredRow::Sound(new)) = self.catalog.get(path)? else { return Ok(()) };
        let mut digests = old.record.digests.clone();
        for algorithm in new.record.digests.algorithms().iter() {
            let value = new.record.digests.get(algorithm).expect("it is in the set");
            digests.insert(algorithm, value);
        }
        let record = Record { digests, ..new.record.clone() };
        let put = self.catalog.put_same_content(&new, record);
        let written = put.and_then(|()| self.catalog.remove(old));
        self.stop_on_write_error(written)
    }

    /// Keeps the values of a part of a large file.
    pub(super) fn keep_unfinished(
        &mut self,
        path: &RelPath,
        entry: &Entry,
        blocks: &UnfinishedBlocks,
    ) -> Result<()> {
        let is_update = matches!(self.plan.purpose, Purpose::Update(_));
        if !is_update || !self.may_write_now()? {
            return Ok(());
        }
        let kept = self.catalog.unfinished_files_mut().put(path, entry, blocks);
        self.stop_on_write_error(kept)
    }

    /// Keeps which parts of a large file are verified.
    pub(super) fn keep_parts(
        &mut self,
        path: &RelPath,
        entry: &Entry,
        blake3: &[u8],
        parts: &[VerifiedRange],
    ) -> Result<()> {
        if !self.may_write_now()? {
            return Ok(());
        }
        self.has_parts = true;
        let kept = self.catalog.verified_ranges_mut().set(path, entry, blake3, parts);
        self.stop_on_write_error(kept)
    }

    /// Notes that a file differed at a first reading, so that it comes first
    /// the next time.
    pub(super) fn keep_undecided(&mut self, path: &RelPath) -> Result<()> {
        if !self.may_write {
            return Ok(());
        }
        let noted = self.catalog.findings_mut().note_undecided(path, self.plan.clock.now_s());
        self.stop_on_write_error(noted)
    }

    /// Takes the files that earlier scrubs had not enough time for.
    pub(super) fn load_cut_off(&mut self) -> Result<()> {
        self.cut_off =
            self.catalog.findings().cut_off(&self.plan.scopes.around())?.into_iter().collect();
        Ok(())
    }

    /// Notes that the time was over before a file was read to its end.
    pub(super) fn keep_cut_off(&mut self, path: &RelPath) -> Result<()> {
        self.cut_off.insert(path.clone());
        if !self.may_write {
            return Ok(());
        }
        let at_s = self.plan.clock.now_s();
        let noted = self.catalog.findings_mut().note_cut_off(path, at_s);
        self.stop_on_write_error(noted)
    }

    pub(super) fn commit_if_due(&mut self) -> Result<()> {
        if self.commits.is_due() {
            self.commit()?;
        }
        Ok(())
    }

    /// Commits what was written, with the count and the entry in the history that a run which
    /// is killed leaves behind.
    fn commit(&mut self) -> Result<()> {
        self.catalog.release();
        self.write_ranges()?;
        if self.catalog.is_writing() && self.may_write_now()? {
            let kept = self.mtimes.keep(self.catalog, &self.plan.scopes);
            let noted = kept.and_then(|()| self.note_generation());
            let committed = noted.and_then(|()| self.catalog.commit());
            self.has_saved |= committed.is_ok();
            self.stop_on_write_error(committed)?;
        }
        self.commits.note_committed();
        Ok(())
    }

    /// Writes the ranges of paths that were verified since the last commit.
    pub(super) fn write_ranges(&mut self) -> Result<()> {
        let has_new = self.sequence.as_ref().is_some_and(VerifiedSequence::has_new);
        if !has_new || !self.may_write_now()? {
            return Ok(());
        }
        let Some(sequence) = &mut self.sequence else { return Ok(()) };
        for VerifiedPathRange { first, last, dates } in sequence.take_new() {
            if !self.may_write {
                break;
            }
            let noted = self.catalog.note_verified_paths(&first, &last, dates);
            self.stop_on_write_error(noted)?;
        }
        Ok(())
    }

    /// Writes the generation that this run makes, if it makes one.
    fn note_generation(&mut self) -> Result<()> {
        if !matches!(self.plan.purpose, Purpose::Update(_)) {
            return Ok(());
        }
        let (at_s, command) = (self.time.now_s(), self.plan.command);
        self.catalog.history_mut().note_changes(
            &mut self.generation,
            at_s,
            command,
            self.report.changes(),
        )
    }
}
