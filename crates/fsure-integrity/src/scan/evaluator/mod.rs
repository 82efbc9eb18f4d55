//! Leads every path to its verdict: decides what has to be read for it, or finishes it without
//! reading anything. The evaluation of what is read is in `read_results`.

mod read_results;

use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use fsure_os::root_dir::{is_denied, is_gone};
use fsure_os::{Kind, Stat};

use super::compare_blocks::are_proven;
use super::entry_builder::{EntryBuilder, granularity_ns, known, words_kind};
use super::hard_links::{HardLinkCache, HardLinkState};
use super::held_edits::HeldEdits;
use super::merge::{MergedPath, WalkState};
use super::moves::{MoveTracker, name_mismatch_of, reason_of};
use super::name_alias::FolderCache;
use super::part_planner::PartPlanner;
use super::partial_read::PartialRead;
use super::path_result::PathResult;
use super::planner::digests_to_compute;
use super::progress_estimate::{Remaining, judges_all};
use super::read_queue::{PendingRead, ReadQueue};
use super::read_request::ReadOutcome;
use super::result_recorder::ResultRecorder;
use super::run_report::unlisted_because;
use super::scrub_budget::Deadline;
use super::{Purpose, ScanPlan};
use crate::catalog::{AppearedName, MissingName, StoredRow, UnfinishedBlocks};
use crate::model::{
    DateRules, Entry, EntryKind, Evidence, Finding, NameMismatch, Observation, RecordState,
    StopReason, Verdict, judge,
};
use crate::tree::ExcludeReason;
use fsure_core::{Algorithm, AlgorithmSet, RelPath, Result, timeout_error};

/// The turn of a file in a scrub.
#[derive(Clone, Copy)]
pub(super) struct ScrubTurn {
    /// True if it was not OK when it was last checked.
    pub(super) is_again: bool,
    /// The most bytes that may be read of it.
    pub(super) bytes_max: u64,
}

/// Decides the verdict of every path of a run.
pub(super) struct Evaluator<'a> {
    plan: &'a ScanPlan,
    recorder: ResultRecorder<'a>,
    reads: ReadQueue<'a>,
    links: HardLinkCache,
    /// The part of the record that is left, if all of it is judged.
    remaining: Option<Remaining>,
    /// The turn of the file that is taken now.
    turn: ScrubTurn,
    part_planner: PartPlanner,
    moves: MoveTracker,
    held_edits: HeldEdits,
    entries: EntryBuilder,
    listed: FolderCache,
    /// Folders whose names the walk has not come to yet.
    folders: HashMap<RelPath, (Option<StoredRow>, Entry)>,
}

impl<'a> Evaluator<'a> {
    pub(super) fn new(
        plan: &'a ScanPlan,
        recorder: ResultRecorder<'a>,
        ending: Deadline,
    ) -> Result<Self> {
        Ok(Self {
            plan,
            reads: ReadQueue::new(plan, ending),
            links: HardLinkCache::default(),
            remaining: judges_all(plan).then(|| Remaining::of(recorder.catalog().bytes())),
            turn: ScrubTurn { is_again: false, bytes_max: u64::MAX },
            part_planner: PartPlanner::new(plan.scrub.as_ref(), recorder.time().now_s()),
            moves: MoveTracker::new(recorder.catalog(), plan.scrub.is_none())?,
            held_edits: HeldEdits::default(),
            entries: EntryBuilder::default(),
            listed: FolderCache::default(),
            folders: HashMap::new(),
            recorder,
        })
    }

    pub(super) fn recorder(&self) -> &ResultRecorder<'a> {
        &self.recorder
    }

    pub(super) fn recorder_mut(&mut self) -> &mut ResultRecorder<'a> {
        &mut self.recorder
    }

    pub(super) fn reads(&self) -> &ReadQueue<'a> {
        &self.reads
    }

    pub(super) fn reads_mut(&mut self) -> &mut ReadQueue<'a> {
        &mut self.reads
    }

    pub(super) fn part_planner(&self) -> PartPlanner {
        self.part_planner
    }

    /// Returns the bytes to judge in all; `None` if this run knows no better
    /// than the record does.
    pub(super) fn bytes_total(&self) -> Option<u64> {
        let outcome = self.recorder.report().outcome();
        let left = if let Some(scrub) = &outcome.scrub {
            let left = self.reads.budget().left();
            scrub.left_bytes().min(left.saturating_add(self.reads.charged_under_way()))
        } else {
            self.remaining.as_ref()?.bytes().saturating_add(self.reads.bytes_under_way())
        };
        Some(outcome.bytes_judged.saturating_add(left))
    }

    /// Begins the turn of a file in a scrub, which is taken next.
    pub(super) fn begin_turn(&mut self, turn: ScrubTurn) {
        self.turn = turn;
    }

    /// Takes a path from the merge: finishes it or orders its content.
    pub(super) fn process_path(&mut self, case: MergedPath) -> Result<()> {
        let MergedPath { path, stored, seen } = case;
        if let Some(remaining) = &mut self.remaining {
            remaining.pass(stored.as_ref());
        }
        match seen {
            WalkState::Entry(stat, device) => self.process_entry(path, stored, &stat, device),
            WalkState::LeftOut(kind, why) => self.take_left_out(path, stored, kind, why),
            WalkState::BelowLeftOut(why) => {
                if let Some(stored) = stored {
                    self.recorder.leave_out_recorded(path, stored, why)?;
                }
                Ok(())
            }
            WalkState::Unlisted(true) => {
                self.finish_without_entry(path, stored, Observation::Forbidden, None)
            }
            WalkState::Unlisted(false) => {
                self.finish_without_entry(path, stored, Observation::Unlisted, None)
            }
            WalkState::Unseen(error) => self.finish_unseen(path, stored, &error),
            WalkState::Absent => self.process_missing(path, stored),
            WalkState::NamesKnown => self.finish_folder(&path, None),
            WalkState::NamesUnknown(error) => match self.folders.contains_key(&path) {
                true => self.finish_folder(&path, Some(&error)),
                false => {
                    self.recorder.report_mut().add_unlisted_root(path, &error);
                    Ok(())
                }
            },
            WalkState::PatternsRead(text) => {
                self.recorder.remember_exclude_file(path, text);
                Ok(())
            }
            WalkState::PatternsUnread(error) => {
                let warning = format!("{}: {error}: nothing is left out for it", path.display());
                self.recorder.report().warn(&warning);
                Ok(())
            }
        }
    }

    fn process_entry(
        &mut self,
        path: RelPath,
        stored: Option<StoredRow>,
        stat: &Stat,
        device: u64,
    ) -> Result<()> {
        let mut entry = self.entry(&path, stat, device)?;
        match entry.kind {
            EntryKind::File => return self.plan_file_read(path, stored, entry, stat, device),
            EntryKind::Special => {
                self.recorder.report_mut().outcome_mut().special += 1;
                if matches!(known(stored.as_ref(), &entry, 1), RecordState::Nothing) {
                    return Ok(());
                }
            }
            EntryKind::Link if self.plan.is_list && stored.is_none() => return Ok(()),
            EntryKind::Link => match self.plan.root.link_target(path.as_bytes()) {
                Ok(target) => entry.target = Some(target.into_boxed_slice()),
                Err(error) => return self.finish_unseen(path, stored, &error),
            },
            // Its verdict waits for its names.
            EntryKind::Folder => {
                self.folders.insert(path.clone(), (stored, entry));
                // A scrub comes by no names: there is a folder where a file was.
                return match self.plan.scrub {
                    Some(_) => self.finish_folder(&path, None),
                    None => Ok(()),
                };
            }
        }
        if entry.kind == EntryKind::Link
            && self.defer_appeared(&path, stored.as_ref(), &entry, device)?
        {
            return Ok(());
        }
        let verdict = self.judge(stored.as_ref(), &entry, Evidence::StatOnly);
        self.finish(PathResult::new(path, stored, Some(entry), verdict))
    }

    fn plan_file_read(
        &mut self,
        path: RelPath,
        stored: Option<StoredRow>,
        entry: Entry,
        stat: &Stat,
        device: u64,
    ) -> Result<()> {
        if self.defer_appeared(&path, stored.as_ref(), &entry, device)? {
            return Ok(());
        }
        let catalog = self.recorder.catalog();
        let wanted =
            digests_to_compute(self.plan, catalog, &self.moves, &path, stored.as_ref(), &entry)?;
        let Some(algorithms) = wanted else {
            let verdict = self.judge(stored.as_ref(), &entry, Evidence::StatOnly);
            let result = PathResult::new(path, stored, Some(entry), verdict);
            return self.finish(result.remember_damage());
        };
        let place = (stat.clone(), device);
        let pending = Box::new(PendingRead::new(path, stored, entry, place, algorithms));
        match self.plan.scrub {
            Some(_) => self.order_due(pending),
            None => self.request_read_once_per_inode(pending),
        }
    }

    /// Orders a file to be read, unless another name of it is or was.
    fn request_read_once_per_inode(&mut self, pending: Box<PendingRead>) -> Result<()> {
        let id = self.reads.new_id();
        if let Some(key) = pending.link {
            match self.links.get(&key) {
                Some(HardLinkState::Reading(waiting)) => {
                    waiting.push(id);
                    self.reads.push_waiting(id, pending);
                    return Ok(());
                }
                Some(HardLinkState::Read(content, _))
                    if content.stat.is_unchanged_from(&pending.stat) =>
                {
                    let content = Rc::clone(content);
                    self.links.pass(&key);
                    return self.evaluate_content(id, pending, content);
                }
                Some(HardLinkState::Silent) => {
                    let failed = ReadOutcome::Unopened(timeout_error(self.plan.effort.timeout));
                    return self.handle_read_failure(id, pending, failed);
                }
                // Another file by now, or a number used again.
                Some(HardLinkState::Read(..)) => {}
                None => self.links.begin(key),
            }
        }
        let kept = self.kept_parts(&pending)?;
        self.reads.push(id, pending, Vec::new(), kept);
        Ok(())
    }

    fn kept_parts(&mut self, pending: &PendingRead) -> Result<Vec<UnfinishedBlocks>> {
        if self.reads.keeps_parts(pending) && pending.part.is_none() {
            return self.recorder.catalog().unfinished_files().of(&pending.path, &pending.entry);
        }
        Ok(Vec::new())
    }

    /// Orders a file that is due, or what the budget allows of it.
    fn order_due(&mut self, mut pending: Box<PendingRead>) -> Result<()> {
        pending.is_again = self.turn.is_again;
        if let Some(part) = self.plan_part(&pending)? {
            pending.algorithms = AlgorithmSet::of(&[Algorithm::Blake3]);
            pending.link = None;
            let (id, blocks) = (self.reads.new_id(), part.ordered().to_vec());
            pending.part = Some(part);
            self.reads.push(id, pending, blocks, Vec::new());
            return Ok(());
        }
        let is_shared = pending.link.is_some_and(|key| self.links.get(&key).is_some());
        if pending.stat.size > self.bytes_left() && !is_shared {
            self.pass_by(&pending.path, pending.stat.size);
            return Ok(());
        }
        self.request_read_once_per_inode(pending)
    }

    /// Chooses the blocks of a file to read; `None` if it is not to be read by blocks.
    fn plan_part(&mut self, pending: &PendingRead) -> Result<Option<PartialRead>> {
        let left = self.bytes_left();
        let is_timed = self.reads.budget().deadline().left().is_some();
        let catalog = self.recorder.catalog_mut();
        let Some(candidate) = self.part_planner.candidate(catalog, pending, left, is_timed)? else {
            return Ok(None);
        };
        let recorded = self.recorder.blocks(candidate.row)?;
        if !are_proven(&candidate.row.record, &recorded) {
            return Ok(None);
        }
        let values = (recorded, candidate.blake3);
        Ok(PartialRead::choose(values, candidate.verified, pending.stat.size, left))
    }

    /// Bytes that may be read of the file that is taken now.
    fn bytes_left(&self) -> u64 {
        self.reads.budget().left().min(self.turn.bytes_max)
    }

    /// Passes by a file that does not fit, and reports it if it never would.
    pub(super) fn pass_by(&mut self, path: &RelPath, least: u64) {
        if least > self.reads.budget().largest_possible() {
            self.recorder.report_mut().scrub_mut().note_too_large([path]);
        }
    }

    /// Finishes a folder once its names are known, or why they are not.
    fn finish_folder(&mut self, path: &RelPath, unlisted: Option<&io::Error>) -> Result<()> {
        let Some((path, (stored, entry))) = self.folders.remove_entry(path) else {
            return Ok(());
        };
        if self.plan.is_list && stored.is_none() && unlisted.is_none() {
            return Ok(());
        }
        let evidence = match unlisted {
            None => Evidence::StatOnly,
            Some(error) if is_denied(error) => Evidence::Denied,
            Some(_) => Evidence::Partial { rest_differs: false },
        };
        if unlisted.is_none() && self.defer_appeared(&path, stored.as_ref(), &entry, 0)? {
            return Ok(());
        }
        let verdict = self.judge(stored.as_ref(), &entry, evidence);
        let mut result = PathResult::new(path, stored, Some(entry), verdict);
        result.reason = unlisted.map(unlisted_because);
        self.finish(result)
    }

    fn take_left_out(
        &mut self,
        path: RelPath,
        stored: Option<StoredRow>,
        kind: Kind,
        why: ExcludeReason,
    ) -> Result<()> {
        if why == ExcludeReason::NestedRoot {
            self.recorder.report_mut().outcome_mut().nested_roots.push(path);
            return Ok(());
        }
        let is_reported = match stored {
            Some(stored) => self.recorder.leave_out_recorded(path.clone(), stored, why)?,
            None => false,
        };
        let (kind, report) = (words_kind(kind), self.recorder.report_mut());
        report.count_left_out(kind);
        if !is_reported {
            report.add_left_out(path, kind, why);
        }
        Ok(())
    }

    /// Finishes a recorded path that the walk did not come across, after another
    /// stat by its name: it might have appeared behind the walk's back. The stat is
    /// of the name in the record, whatever other one the file was found under.
    fn process_missing(&mut self, path: RelPath, stored: Option<StoredRow>) -> Result<()> {
        let path = stored.as_ref().map_or(path, |stored| stored.path().clone());
        match self.plan.root.stat(path.as_bytes()) {
            // Another name's entry, as names go where capitals do not count.
            Ok(stat) if self.listed.is_alias(&self.plan.root, &path, &stat) => {
                self.finish_without_entry(path, stored, Observation::Absent, None)
            }
            Ok(stat) => {
                let parent = path.parent().unwrap_or_default();
                let device = match stat.kind {
                    Kind::Folder => stat.device,
                    _ => self.plan.root.stat(parent.as_bytes()).map_or(stat.device, |p| p.device),
                };
                self.process_entry(path, stored, &stat, device)
            }
            Err(error) if is_gone(&error) && self.is_of_absent_volume(stored.as_ref()) => {
                let reason = "the file system it was recorded on is not mounted here".to_owned();
                self.finish_without_entry(path, stored, Observation::Unlisted, Some(reason))
            }
            Err(error) if is_gone(&error) => {
                self.finish_without_entry(path, stored, Observation::Absent, None)
            }
            Err(error) => self.finish_unseen(path, stored, &error),
        }
    }

    /// Returns true if a record is of a file system below the root that the walk
    /// has not come across: what is recorded on it is not missing, it is not here.
    fn is_of_absent_volume(&self, stored: Option<&StoredRow>) -> bool {
        let Some(StoredRow::Sound(row)) = stored else { return false };
        self.plan.walk.borders.cross_file_systems
            && !self.entries.have_met(row.record.entry.file_system)
    }

    /// Finishes a path of which the system gives no entry.
    fn finish_unseen(
        &mut self,
        path: RelPath,
        stored: Option<StoredRow>,
        error: &io::Error,
    ) -> Result<()> {
        let found = if is_denied(error) { Observation::Forbidden } else { Observation::Unlisted };
        self.finish_without_entry(path, stored, found, Some(error.to_string()))
    }

    /// Finishes a path of which there is no entry.
    fn finish_without_entry(
        &mut self,
        path: RelPath,
        stored: Option<StoredRow>,
        found: Observation<'_>,
        reason: Option<String>,
    ) -> Result<()> {
        let known = match &stored {
            Some(StoredRow::Sound(row)) if !row.is_gone() => RecordState::Sound(&row.record),
            Some(StoredRow::Bad(_)) => RecordState::Bad,
            _ => RecordState::Nothing,
        };
        let is_nowhere = matches!(found, Observation::Absent) || stored.is_some();
        if matches!(known, RecordState::Nothing) && is_nowhere {
            // A tombstone, and nothing came back.
            if let (Some(StoredRow::Sound(row)), Observation::Absent) = (&stored, found) {
                self.recorder.note_tombstone(row);
            }
            return Ok(());
        }
        let is_absent = matches!(found, Observation::Absent);
        if is_absent && self.defer_missing(stored.as_ref())? {
            return Ok(());
        }
        let verdict = judge(known, found, DateRules::default());
        let mut result = PathResult::new(path, stored, None, verdict);
        result.reason = reason;
        result.may_be_forgotten = is_absent;
        self.finish(result)
    }

    /// Lets a name wait that is there and not recorded. Returns true if it waits.
    fn defer_appeared(
        &mut self,
        path: &RelPath,
        stored: Option<&StoredRow>,
        entry: &Entry,
        device: u64,
    ) -> Result<bool> {
        if !self.is_unknown(stored, entry) || !self.moves.defer_appeared(path, entry, device)? {
            return Ok(false);
        }
        if let Some(remaining) = self.remaining.as_mut().filter(|_| entry.kind == EntryKind::File) {
            remaining.add_arrived(entry.size);
        }
        Ok(true)
    }

    /// Returns true if nothing is recorded that an entry could be compared with.
    fn is_unknown(&self, stored: Option<&StoredRow>, entry: &Entry) -> bool {
        let granularity_ns = granularity_ns(self.recorder.catalog(), stored, entry);
        matches!(known(stored, entry, granularity_ns), RecordState::Nothing)
    }

    /// Lets a record wait whose name is gone. Returns true if it waits.
    fn defer_missing(&mut self, stored: Option<&StoredRow>) -> Result<bool> {
        let Some(StoredRow::Sound(row)) = stored else { return Ok(false) };
        let granularity_ns = self.recorder.catalog().granularity_ns(row.record.entry.file_system);
        if !self.moves.defer_missing(row, granularity_ns)? {
            return Ok(false);
        }
        if let Some(remaining) = self.remaining.as_mut().filter(|_| row.is_live_file()) {
            remaining.add_departed(row.record.entry.size);
        }
        Ok(true)
    }

    /// Notes that all names are known. Returns true if any of them might wait.
    pub(super) fn finish_walk(&mut self) -> Result<bool> {
        // Folders that were gone when the walk came to their names.
        for (path, (stored, _)) in std::mem::take(&mut self.folders) {
            self.process_missing(path, stored)?;
        }
        for path in self.folders.keys().cloned().collect::<Vec<_>>() {
            self.finish_folder(&path, None)?;
        }
        let scope = &self.plan.walk.scope;
        let Some(gone) = self.moves.pair_names(self.recorder.catalog_mut(), scope)? else {
            return Ok(false);
        };
        self.recorder.set_files_gone(gone);
        if let Some(remaining) = &mut self.remaining {
            remaining.end_names(self.moves.moved_bytes()?);
        }
        Ok(true)
    }

    /// Takes the next name that waits. Returns false if there was none.
    pub(super) fn process_deferred(&mut self) -> Result<bool> {
        let Some(appeared) = self.moves.next_appeared(false)? else { return Ok(false) };
        self.recorder.catalog_mut().pin_snapshot()?;
        let AppearedName { path, device, moved_from, doubt, size, .. } = appeared;
        if let Some(remaining) = self.remaining.as_mut().filter(|_| moved_from.is_some()) {
            remaining.pass_moved(size);
        }
        let stat = match self.plan.root.stat(path.as_bytes()) {
            Ok(stat) => stat,
            Err(error) if is_gone(&error) => return Ok(true),
            Err(error) => return self.finish_unseen(path, None, &error).map(|()| true),
        };
        let is_folder = stat.kind == Kind::Folder;
        let device = if is_folder { stat.device } else { device };
        let entry = self.entry(&path, &stat, device)?;
        let catalog = self.recorder.catalog_mut();
        let moved = match moved_from {
            Some(from) => self.moves.claim_record(catalog, &from, &path, &entry)?,
            None => None,
        };
        let is_moved = moved.is_some();
        let stored = if is_moved { moved } else { catalog.get(&path)? };
        if !is_moved && !self.is_unknown(stored.as_ref(), &entry) {
            self.recorder.distrust_change();
        }
        if let Some(doubt) = doubt.filter(|_| !is_moved && self.plan.purpose == Purpose::Status) {
            let verdict = self.judge(stored.as_ref(), &entry, Evidence::StatOnly);
            let mut result = PathResult::new(path, stored, Some(entry), verdict);
            result.reason = Some(reason_of(doubt));
            self.finish(result)?;
            return Ok(true);
        }
        self.process_entry(path.clone(), stored, &stat, device)?;
        if is_folder {
            self.finish_folder(&path, None)?;
        }
        Ok(true)
    }

    /// Finishes a path, and reports if its name mismatch leaves it in doubt.
    fn finish(&mut self, mut result: PathResult) -> Result<()> {
        self.moves.flag_ambiguous_name(&mut result)?;
        self.recorder.finish_path(result)
    }

    /// Finishes all that still waits.
    pub(super) fn finish_deferred(&mut self) -> Result<()> {
        if !self.moves.pair_contents()? {
            return Ok(());
        }
        while !self.is_to_stop()?
            && let Some(appeared) = self.moves.next_appeared(true)?
        {
            self.finish_appeared(appeared)?;
        }
        let mut after = None;
        while !self.is_to_stop()? {
            let page = self.moves.missing_page(after.as_ref())?;
            let Some(last) = page.last() else { break };
            after = Some(last.path.clone());
            self.recorder.catalog_mut().pin_snapshot()?;
            for MissingName { path, doubt, .. } in page {
                let stored = self.recorder.catalog_mut().get(&path)?;
                if !matches!(&stored, Some(StoredRow::Sound(row)) if !row.is_gone()) {
                    self.recorder.distrust_change();
                }
                let reason = doubt.map(reason_of);
                self.finish_without_entry(path, stored, Observation::Absent, reason)?;
                if self.recorder.is_stopped() {
                    break;
                }
            }
        }
        Ok(())
    }

    fn is_to_stop(&mut self) -> Result<bool> {
        self.recorder.commit_if_due()?;
        let report = self.recorder.report_mut();
        if let Some(code) = report.monitor().stop_requested() {
            report.stop(StopReason::Interrupted(code));
        }
        Ok(self.recorder.is_stopped())
    }

    /// Reports a file whose content was found, which might be that of a missed one.
    fn finish_appeared(&mut self, appeared: AppearedName) -> Result<()> {
        let AppearedName { path, device, moved_from, doubt, is_recorded, .. } = appeared;
        let found = match self.plan.root.stat(path.as_bytes()) {
            Ok(stat) => Some(self.entry(&path, &stat, device)?),
            Err(_) => None,
        };
        let mut finding = Finding::bare(path.clone(), EntryKind::File, Verdict::New, None);
        finding.found = found;
        finding.recorded_now = is_recorded;
        finding.reason = doubt.map(reason_of);
        finding.name_mismatch = name_mismatch_of(doubt);
        let stored = match &moved_from {
            Some(from) => self.recorder.catalog_mut().get(from)?,
            None => None,
        };
        if let (Some(from), Some(StoredRow::Sound(row))) = (moved_from, stored) {
            self.moves.claim(&from)?;
            // Its old name's goes with its old record.
            finding.meta = self.recorder.compare_moved_metadata(&from, &path)?;
            if is_recorded {
                self.recorder.transfer_record(&row, &path)?;
            }
            finding.verdict = Verdict::Moved;
            finding.reason = None;
            finding.name_mismatch = NameMismatch::between(&from, &finding.path);
            finding.moved_from = Some(from);
            finding.recorded = Some(row.record.entry);
        }
        self.recorder.report_mut().add(finding);
        Ok(())
    }

    pub(super) fn entry(&mut self, path: &RelPath, stat: &Stat, device: u64) -> Result<Entry> {
        let catalog = self.recorder.catalog_mut();
        self.entries.entry(&self.plan.root, catalog, path, stat, device)
    }

    fn date_rules(&self, stored: Option<&StoredRow>, entry: &Entry) -> DateRules {
        self.recorder.mtimes().date_rules(self.recorder.catalog(), stored, entry)
    }

    fn judge(&self, stored: Option<&StoredRow>, entry: &Entry, evidence: Evidence) -> Verdict {
        let rules = self.date_rules(stored, entry);
        let known = known(stored, entry, rules.granularity_ns);
        judge(known, Observation::Present(entry, evidence), rules)
    }
}
