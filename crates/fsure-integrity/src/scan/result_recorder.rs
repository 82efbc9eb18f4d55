//! Counts and reports each verdict and, if the rules allow it, writes it. The
//! rules of `update` are here and nowhere else.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::rc::Rc;
use std::time::Instant;

use fsure_os::root_dir::is_denied;

use super::apply_update_rules::CatalogChange;
use super::file_read::ReadContent;
use super::known_damage::known_damage;
use super::mtime_reliability::{NewDates, RedatedCount};
use super::progress_estimate::judges_all;
use super::{AbortReason, Purpose, ScanPlan};
use crate::catalog::{Catalog, Claims, Row, StoredRow};
use crate::model::{
    Basis, ByteRange, Changes, Entry, EntryKind, Finding, KnownDamage, MetadataChange,
    NameMismatch, Offline, Outcome, Record, RecordedValue, ScanMonitor, StopReason, Verdict,
    is_in_the_future,
};
use fsure_core::block_hash::BlockValue;
use fsure_core::{Error, RelPath, Result};

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
    /// Difference in spelling between its name and the recorded one, if any.
    pub(super) norm: Option<NameMismatch>,
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
}

impl PathResult {
    pub(super) fn new(
        path: RelPath,
        stored: Option<StoredRow>,
        entry: Option<Entry>,
        verdict: Verdict,
    ) -> Self {
        let other_name = stored.as_ref().map(StoredRow::path).filter(|other| **other != path);
        let norm = other_name.and_then(|other| NameMismatch::between(other, &path));
        let is_moved = other_name.is_some() && norm.is_none();
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
            norm,
            meta: Vec::new(),
            may_be_forgotten: false,
            was_read: false,
            basis: Basis::Stat,
            content: None,
            verified_s: None,
        }
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
}

/// Counts, reports and writes verdicts.
pub(super) struct ResultRecorder<'a> {
    pub(super) plan: &'a ScanPlan,
    pub(super) catalog: &'a mut Catalog,
    pub(super) monitor: &'a dyn ScanMonitor,
    pub(super) outcome: Outcome,
    pub(super) started_ns: i64,
    pub(super) now_s: i64,
    pub(super) committed: Instant,
    pub(super) may_write: bool,
    pub(super) is_gate_open: bool,
    pub(super) is_halted: bool,
    /// True if there are tombstones that are old enough to be dropped.
    pub(super) has_old_tombstones: bool,
    /// True if the time of a scrub is over.
    pub(super) is_over: bool,
    /// True if the catalog has parts of files that may have to be forgotten.
    pub(super) has_parts: bool,
    /// Files of known damage that this run has judged.
    pub(super) judged_damage: HashSet<RelPath>,
    /// Files that take longer than a scrub has had time, as far as is known.
    pub(super) cut_off: BTreeSet<RelPath>,
    /// Rows that fail their seal, as the gate has seen them.
    pub(super) bad_rows: Vec<RelPath>,
    /// Bytes of the files that were judged by their content.
    pub(super) bytes_read_and_judged: u64,
    pub(super) files_at_start: u64,
    missing_files: u64,
    /// Files that are gone and not under another name by their inode, once all
    /// names are known.
    pub(super) files_gone: Option<u64>,
    /// Files that are gone and were seen under another name before the run.
    pub(super) files_elsewhere: u64,
    /// The meaning of other dates in this tree, and the counts of the rule for that.
    pub(super) new_dates: NewDates,
    pub(super) redated: RedatedCount,
    /// Files that were last changed by a clock ahead of this one, and the first.
    future_changes: u64,
    first_future_change: Option<RelPath>,
    /// Bad rows that were reported, so that none is reported twice.
    pub(super) told_bad: HashSet<RelPath>,
    /// Changes that the run has made to the record.
    pub(super) changes: Changes,
    /// The number of the generation that the run makes, once it makes one.
    pub(super) generation: Option<u64>,
    /// Pattern files that the walk keeps to, with their texts, until they are
    /// judged.
    pub(super) obeyed: HashMap<RelPath, Vec<u8>>,
    /// Folders that had a record of their own, by this one.
    pub(super) known_roots: Vec<RelPath>,
}

impl<'a> ResultRecorder<'a> {
    pub(super) fn new(
        plan: &'a ScanPlan,
        catalog: &'a mut Catalog,
        monitor: &'a dyn ScanMonitor,
    ) -> Self {
        let started_ns = plan.clock.now_ns();
        Self {
            plan,
            monitor,
            outcome: Outcome {
                is_update: matches!(plan.purpose, Purpose::Update(_)),
                is_against_list: plan.is_list,
                ..Outcome::default()
            },
            started_ns,
            now_s: started_ns / 1_000_000_000,
            committed: Instant::now(),
            may_write: plan.may_write,
            is_gate_open: false,
            is_halted: false,
            has_old_tombstones: false,
            is_over: false,
            has_parts: false,
            judged_damage: HashSet::new(),
            cut_off: BTreeSet::new(),
            bad_rows: Vec::new(),
            bytes_read_and_judged: 0,
            files_at_start: catalog.files(),
            missing_files: 0,
            files_gone: None,
            files_elsewhere: 0,
            new_dates: NewDates::Explain,
            redated: RedatedCount::default(),
            future_changes: 0,
            first_future_change: None,
            told_bad: HashSet::new(),
            changes: Changes::default(),
            generation: None,
            obeyed: HashMap::new(),
            known_roots: Vec::new(),
            catalog,
        }
    }

    pub(super) fn warn(&self, message: &str) {
        self.monitor.warn(message);
    }

    pub(super) fn stop(&mut self, stop: StopReason) {
        self.outcome.stopped.get_or_insert(stop);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_halted || self.is_over || self.outcome.stopped.is_some()
    }

    /// Writes, counts and reports a verdict.
    pub(super) fn finish_path(&mut self, mut settled: PathResult) -> Result<()> {
        if settled.verdict == Verdict::Missing && !self.precheck_once()? {
            return Ok(());
        }
        let Some(wrote) = self.write_and_count(&mut settled)? else { return Ok(()) };
        let is_flagged = settled.norm.is_some() || !settled.meta.is_empty();
        if settled.verdict == Verdict::Ok && !is_flagged && !self.plan.tell_ok {
            self.outcome.add_ok(settled.kind(), settled.size());
            return Ok(());
        }
        self.report(&settled, wrote);
        self.note_missing(&settled);
        Ok(())
    }

    /// Writes what was found and counts the work. Returns true if it is
    /// recorded now; `None` if the run is over.
    pub(super) fn write_and_count(&mut self, settled: &mut PathResult) -> Result<Option<bool>> {
        self.check_exclude_file(settled);
        let metadata = self.compare_metadata(settled)?;
        let wrote = self.write(settled)?;
        let wrote = self.write_metadata(settled, metadata, wrote)? || wrote;
        if self.is_halted {
            return Ok(None);
        }
        self.count_redated(settled);
        self.count_future_change(settled);
        self.outcome.hashed += u64::from(settled.was_read);
        let was_known = known_damage(settled.stored.as_ref()).is_some();
        if self.plan.scrub.is_some() && (was_known || settled.verdict.is_damage()) {
            self.judged_damage.insert(settled.path.clone());
        }
        self.outcome.damaged_blocks += settled.damaged_blocks;
        if let (Some(scrub), Some(_)) = (&mut self.outcome.scrub, &settled.stored) {
            scrub.note_done(settled.row().map_or(0, |row| row.record.entry.size));
            self.cut_off.remove(&settled.path);
        }
        if settled.kind() == EntryKind::File {
            // Sizes are what files claim, and a few may claim more than a number holds.
            let judged = &mut self.outcome.bytes_judged;
            *judged = judged.saturating_add(settled.size());
            self.bytes_read_and_judged += if settled.was_read { settled.size() } else { 0 };
        }
        Ok(Some(wrote))
    }

    fn count_future_change(&mut self, settled: &PathResult) {
        let Some(entry) = settled.entry.as_ref() else { return };
        let is_future = |change_ns| is_in_the_future(change_ns, self.started_ns);
        if entry.kind == EntryKind::File && entry.ctime_ns.is_some_and(is_future) {
            self.future_changes += 1;
            self.first_future_change.get_or_insert_with(|| settled.path.clone());
        }
    }

    /// Warns that a clock was wrong, or is: until that date, an edit of such a
    /// file by a clock that is right looks older than its record.
    fn warn_of_future_changes(&self) {
        if let Some(first) = &self.first_future_change {
            let (files, first) = (self.future_changes, first.display());
            let have = if files == 1 { "file has" } else { "files have" };
            self.warn(&format!(
                "{files} {have} a change time in the future (the first: {first}): the clock was \
                 ahead when it was written, or is behind now ('date' shows it)"
            ));
        }
    }

    pub(super) fn report(&mut self, settled: &PathResult, wrote: bool) {
        let has_bad_metadata = settled.meta.iter().any(|change| change.was == RecordedValue::Bad);
        if settled.verdict == Verdict::RecordBad || has_bad_metadata {
            self.told_bad.insert(settled.path.clone());
        }
        let finding = Finding {
            path: settled.path.clone(),
            kind: settled.kind(),
            verdict: settled.verdict,
            moved_from: settled.moved_row().map(|row| row.record.path.clone()),
            recorded: settled.recorded().map(|record| record.entry.clone()),
            found: settled.entry.clone(),
            damaged: settled.damaged.clone(),
            unreadable: settled.unreadable.clone(),
            reason: settled.reason.clone(),
            norm: settled.norm,
            meta: settled.meta.clone(),
            recorded_now: wrote,
            basis: settled.basis,
            known_damage: settled.open_damage(),
        };
        self.publish(finding);
    }

    /// Reports a finding and counts it.
    pub(super) fn publish(&mut self, finding: Finding) {
        self.monitor.finding(&finding);
        if finding.recorded_now && finding.kind == EntryKind::File {
            self.changes.add(&finding);
        }
        self.outcome.add(finding);
    }

    /// Counts a missing file, and halts the run if more than half of the files
    /// are gone: that is not a clean-up but a disk that is not there.
    fn note_missing(&mut self, settled: &PathResult) {
        if settled.verdict != Verdict::Missing || settled.kind() != EntryKind::File {
            return;
        }
        self.missing_files += 1;
        // A scrub reports as missing what a verify reports as moved.
        let elsewhere = if self.plan.scrub.is_some() { self.files_elsewhere } else { 0 };
        let rest = self.files_at_start.saturating_sub(elsewhere);
        let gone = self.missing_files.saturating_sub(elsewhere);
        if gone.saturating_mul(2) > rest && !self.plan.is_single_file() {
            self.halt_if_mostly_missing(self.missing_files);
        }
    }

    pub(super) fn halt_if_mostly_missing(&mut self, missing: u64) {
        let recorded = self.files_at_start;
        if !self.plan.force && self.is_mostly_missing(missing) {
            self.halt(AbortReason::Offline(Offline::MostlyMissing { missing, recorded }));
        }
    }

    pub(super) fn is_mostly_missing(&self, missing: u64) -> bool {
        missing.saturating_mul(2) > self.files_at_start
    }

    /// Ends the run with nothing changed since the last commit.
    pub(super) fn halt(&mut self, halt: AbortReason) {
        self.catalog.rollback();
        self.may_write = false;
        self.is_halted = true;
        match halt {
            AbortReason::Offline(offline) => self.outcome.offline = Some(offline),
            AbortReason::Untrusted(why) => self.outcome.record_untrusted = Some(why),
        }
    }

    /// Returns the block values of a row; none if the catalog cannot give them,
    /// which makes the record doubtful and not the run impossible.
    pub(super) fn blocks(&mut self, row: &Row) -> Result<Vec<BlockValue>> {
        match self.catalog.blocks(row) {
            Err(Error::RecordUntrusted { why, .. }) => {
                self.outcome.record_untrusted.get_or_insert(why);
                self.may_write = false;
                Ok(Vec::new())
            }
            other => other,
        }
    }

    /// Reports that the folder that the user named cannot be listed.
    pub(super) fn root_unlisted(&mut self, path: RelPath, error: &io::Error) {
        let verdict = if is_denied(error) { Verdict::Denied } else { Verdict::Unreadable };
        let reason = Some(unlisted_because(error));
        self.publish(Finding::bare(path, EntryKind::Folder, verdict, reason));
    }

    /// Writes what the rules allow. Returns true if what was found is recorded now.
    fn write(&mut self, settled: &PathResult) -> Result<bool> {
        if !self.may_write {
            return Ok(false);
        }
        match &self.plan.purpose {
            Purpose::Status => Ok(false),
            Purpose::Verify => self.write_verified(settled).map(|()| false),
            Purpose::Update(rules) => {
                let accepts = settled.needs_acceptance() && rules.accept.covers(&settled.path);
                if settled.needs_acceptance() && !accepts {
                    return self.write_not_accepted(settled).map(|()| false);
                }
                let is_as_recorded = matches!(settled.verdict, Verdict::Ok | Verdict::Touched)
                    && settled.content.is_some();
                if rules.only_completes && !is_as_recorded {
                    return Ok(false);
                }
                self.write_found(settled, accepts)
            }
        }
    }

    /// Notes damage that an update found, which it does not record.
    fn write_not_accepted(&mut self, settled: &PathResult) -> Result<()> {
        if !settled.verdict.is_damage()
            || settled.basis != Basis::Content
            || !self.precheck_once()?
        {
            return Ok(());
        }
        self.note_found(settled)
    }

    fn write_found(&mut self, settled: &PathResult, accepts: bool) -> Result<bool> {
        let Some(write) = self.decide(settled) else {
            return Ok(false);
        };
        if !self.precheck_once()? {
            return Ok(false);
        }
        let before = settled.row().map(|row| &row.record);
        let after = write.record().filter(|_| accepts).cloned();
        let is_settled = settled.was_read || settled.entry.is_none();
        let written = self.carry_out(settled, write).and_then(|()| match is_settled {
            true => self.catalog.forget_finding(&settled.path),
            false => Ok(()),
        });
        self.stop_on_write_error(written)?;
        if accepts && !self.is_stopped() {
            let name = settled.verdict.name();
            let noted =
                self.catalog.note_accepted(self.now_s, &settled.path, name, before, after.as_ref());
            self.stop_on_write_error(noted)?;
        }
        Ok(!self.is_stopped())
    }

    fn carry_out(&mut self, settled: &PathResult, write: CatalogChange) -> Result<()> {
        let is_bad = matches!(settled.stored, Some(StoredRow::Bad(_)));
        let may_have_parts = settled.size() >= super::evaluator::KEEP_PARTS_MIN;
        match (write, settled.row()) {
            (CatalogChange::Same(record), Some(row)) if settled.moved_row().is_some() => {
                self.catalog.put_moved(row, record, None)?;
            }
            (CatalogChange::Other(record, blocks), Some(row)) if settled.moved_row().is_some() => {
                self.catalog.put_moved(row, record, Some(&blocks))?;
            }
            (CatalogChange::Delete, _) => return self.catalog.delete(&settled.path),
            (CatalogChange::Same(record), Some(row)) => {
                self.catalog.put_same_content(row, record)?;
            }
            (CatalogChange::Other(record, blocks), _) if is_bad => {
                self.catalog.put_over_bad(record, &blocks)?;
            }
            (CatalogChange::Other(record, blocks), row) => {
                self.catalog.put(row, record, &blocks)?;
            }
            (CatalogChange::Same(_), None) => {
                return Err(Error::Internal("the same content as no record".to_owned()));
            }
        }
        if may_have_parts {
            self.catalog.forget_unfinished(&settled.path)?;
        }
        Ok(())
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

    /// Commits what is left and hands over the outcome. `claims` are those of
    /// all rows, if they have to be known.
    pub(super) fn finish(&mut self, claims: Option<Claims>) -> Result<Outcome> {
        if !self.is_stopped() || self.is_over {
            self.look_for_nested_roots()?;
            self.end_obeyed();
            let choices = self.catalog.choices();
            let claims = claims.map(|claims| claims.finish(&self.known_roots, choices));
            self.outcome.claims = claims.map(|claimed| claimed.digest);
        }
        if self.outcome.scrub.is_some() && self.may_write && self.catalog.is_writing() {
            let forgotten = self.catalog.prune_failed_checks();
            self.stop_on_write_error(forgotten)?;
        }
        if self.outcome.stopped.is_some() && judges_all(self.plan) {
            let left = self.catalog.files().saturating_sub(self.outcome.with_record);
            self.outcome.unjudged_files = Some(left);
        }
        let is_complete = !self.is_stopped() && self.plan.walk.scope.is_root();
        if is_complete && self.may_write && self.outcome.is_update && self.catalog.is_writing() {
            let forgotten = self.catalog.forget_all_unfinished();
            self.stop_on_write_error(forgotten)?;
        }
        if self.plan.scrub.is_some() && !self.is_halted {
            self.report_known_damage()?;
        }
        if let Some(scrub) = &mut self.outcome.scrub {
            scrub.note_too_large(&self.cut_off);
        }
        self.warn_of_future_changes();
        self.forget_tombstones()?;
        self.note_verification()?;
        if !self.is_stopped() && self.may_write {
            self.end_redated()?;
        }
        self.commit()?;
        self.shrink();
        Ok(std::mem::take(&mut self.outcome))
    }
}

/// Returns the reason, for the user, that the names of a folder are not all known.
pub(super) fn unlisted_because(error: &io::Error) -> String {
    format!("its names cannot be listed: {error}")
}

/// Whole seconds of a time in nanoseconds.
pub(super) fn seconds(time_ns: i64) -> i64 {
    time_ns.div_euclid(1_000_000_000)
}
