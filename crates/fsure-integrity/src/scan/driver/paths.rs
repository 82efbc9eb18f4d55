//! Takes each path from the source to the planner, and does what the plan says: finishes it, has
//! it read, or lets it wait for other names.

use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use fsure_os::root_dir::{is_denied, is_gone};
use fsure_os::{Kind, Stat};

use super::ScanDriver;
use crate::catalog::{AppearedName, Catalog, MissingName, StoredRow, UnfinishedBlocks};
use crate::model::{
    DateRules, Entry, EntryKind, Evidence, Finding, NameMismatch, Observation, RecordState,
    StopReason, Verdict, judge,
};
use crate::scan::Purpose;
use crate::scan::candidate::Candidate;
use crate::scan::compare_blocks::are_proven;
use crate::scan::entry_builder::entry_kind;
use crate::scan::hard_links::HardLinkState;
use crate::scan::merge::{MergedPath, WalkState};
use crate::scan::moves::{MoveTracker, name_mismatch_of, reason_of};
use crate::scan::partial_read::PartialRead;
use crate::scan::path_result::PathResult;
use crate::scan::planner::{PlanLookup, PlanState, Planned, plan_path};
use crate::scan::read_queue::PendingRead;
use crate::scan::read_request::ReadOutcome;
use crate::scan::run_report::unlisted_because;
use crate::scan::scrub_queue::report_if_too_large;
use crate::tree::ExcludeReason;
use fsure_core::{Algorithm, AlgorithmSet, RelPath, Result, timeout_error};

/// Folders whose names the walk has not come to yet.
#[derive(Default)]
pub(super) struct FolderQueue(HashMap<RelPath, Candidate>);

impl ScanDriver<'_> {
    /// Takes a path from the source.
    pub(super) fn take_path(&mut self, case: MergedPath) -> Result<()> {
        let MergedPath { path, stored, seen, turn } = case;
        if let Some(turn) = turn {
            self.turn = turn;
        }
        if let Some(remaining) = &mut self.remaining {
            remaining.pass(stored.as_ref());
        }
        self.sequence_place = self.recorder.next_in_sequence(stored.as_ref());
        self.take_seen(path, stored, seen)?;
        self.recorder.end_range_at(self.sequence_place.take());
        Ok(())
    }

    fn take_seen(
        &mut self,
        path: RelPath,
        stored: Option<StoredRow>,
        seen: WalkState,
    ) -> Result<()> {
        match seen {
            WalkState::Entry(stat, device) => self.take_entry(path, stored, &stat, device),
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
            WalkState::Absent => self.take_missing(path, stored),
            WalkState::NamesKnown => self.finish_folder(&path, None),
            WalkState::NamesUnknown(error) => match self.folders.0.contains_key(&path) {
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
                let warning = format!("{}: {error}: its patterns are not applied", path.display());
                self.recorder.report().warn(&warning);
                Ok(())
            }
        }
    }

    /// Plans a path that is there, and does what the plan says.
    pub(super) fn take_entry(
        &mut self,
        path: RelPath,
        stored: Option<StoredRow>,
        stat: &Stat,
        device: u64,
    ) -> Result<()> {
        let mut entry = self.entry(&path, stat, device)?;
        match entry.kind {
            EntryKind::Special => self.recorder.report_mut().outcome_mut().special += 1,
            EntryKind::Link if self.plan.is_list && stored.is_none() => return Ok(()),
            EntryKind::Link => match self.plan.root.link_target(path.as_bytes()) {
                Ok(target) => entry.target = Some(target.into_boxed_slice()),
                Err(error) => return self.finish_unseen(path, stored, &error),
            },
            EntryKind::File | EntryKind::Folder => {}
        }
        let file = self.candidate(path, stored, entry, (stat.clone(), device));
        let (catalog, moves) = (self.recorder.catalog(), &self.moves);
        let lookup = CatalogLookup { catalog, moves };
        match plan_path(&self.plan.purpose, self.plan_state(), file, &lookup)? {
            Planned::Nothing => Ok(()),
            Planned::Done(result) => self.finish_path(result),
            Planned::WaitsForNames(file) => self.defer_appeared(&file),
            Planned::Folder(file) => {
                let path = file.path.clone();
                self.folders.0.insert(path.clone(), file);
                // A scrub comes by no names: there is a folder where a file was.
                match self.plan.scrub {
                    Some(_) => self.finish_folder(&path, None),
                    None => Ok(()),
                }
            }
            Planned::Read(mut file, algorithms) => {
                file.sequence_place = self.sequence_place.take();
                if file.sequence_place.is_none() && file.stored.is_some() {
                    // A tombstone that came back, or a row that is not one of a file: what is
                    // written for it must not get the dates of files around it.
                    self.recorder.end_range();
                }
                let pending = Box::new(PendingRead::new(file, algorithms));
                match self.plan.scrub {
                    Some(_) => self.read_due(pending),
                    None => self.read_once_per_inode(pending),
                }
            }
        }
    }

    fn plan_state(&self) -> PlanState {
        PlanState {
            names_wait: self.moves.names_wait(),
            dates_explain_nothing: self.recorder.mtimes().explains_nothing(),
        }
    }

    /// Has a file read, unless another name of it is or was.
    fn read_once_per_inode(&mut self, pending: Box<PendingRead>) -> Result<()> {
        let id = self.reads.new_id();
        if let Some(key) = pending.link {
            match self.links.get(&key) {
                Some(HardLinkState::Reading(waiting)) => {
                    waiting.push(id);
                    self.reads.push_waiting(id, pending);
                    return Ok(());
                }
                Some(HardLinkState::Read(content, _))
                    if content.stat.is_unchanged_from(&pending.file.stat) =>
                {
                    let content = Rc::clone(content);
                    self.links.pass(&key);
                    return self.evaluate(id, pending, content);
                }
                Some(HardLinkState::Silent) => {
                    let failed = ReadOutcome::Unopened(timeout_error(self.plan.effort.timeout));
                    return self.handle_failure(id, pending, failed);
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
            let (path, entry) = (&pending.file.path, &pending.file.entry);
            return self.recorder.catalog().unfinished_files().of(path, entry);
        }
        Ok(Vec::new())
    }

    /// Has a file read that is due, or what the budget allows of it.
    pub(super) fn read_due(&mut self, mut pending: Box<PendingRead>) -> Result<()> {
        pending.is_again = self.turn.is_again;
        if let Some(part) = self.plan_part(&pending)? {
            pending.algorithms = AlgorithmSet::of(&[Algorithm::Blake3]);
            pending.link = None;
            let (id, blocks) = (self.reads.new_id(), part.ordered().to_vec());
            pending.part = Some(part);
            self.reads.push(id, pending, blocks, Vec::new());
            return Ok(());
        }
        let size = pending.file.stat.size;
        let is_shared = pending.link.is_some_and(|key| self.links.get(&key).is_some());
        if size > self.bytes_left() && !is_shared {
            report_if_too_large(&self.reads, &mut self.recorder, &pending.file.path, size);
            return Ok(());
        }
        self.read_once_per_inode(pending)
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
        Ok(PartialRead::choose(values, candidate.verified, pending.file.stat.size, left))
    }

    /// Bytes that may be read of the file that is taken now.
    fn bytes_left(&self) -> u64 {
        self.reads.budget().left().min(self.turn.bytes_max)
    }

    /// Finishes a folder once its names are known, or why they are not.
    fn finish_folder(&mut self, path: &RelPath, unlisted: Option<&io::Error>) -> Result<()> {
        let Some(file) = self.folders.0.remove(path) else {
            return Ok(());
        };
        if self.plan.is_list && file.stored.is_none() && unlisted.is_none() {
            return Ok(());
        }
        let evidence = match unlisted {
            None => Evidence::StatOnly,
            Some(error) if is_denied(error) => Evidence::Denied,
            Some(_) => Evidence::Partial { rest_differs: false },
        };
        let state = self.plan_state();
        if unlisted.is_none() && state.names_wait && file.is_unknown() {
            return self.defer_appeared(&file);
        }
        let verdict = file.judge(evidence, file.date_rules(state.dates_explain_nothing));
        let mut result = PathResult::of(file, verdict);
        result.reason = unlisted.map(unlisted_because);
        self.finish_path(result)
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
        let (kind, report) = (entry_kind(kind), self.recorder.report_mut());
        report.count_left_out(kind, why);
        if !is_reported {
            report.add_left_out(path, kind, why);
        }
        Ok(())
    }

    /// Takes a recorded path that the walk did not come across, after another
    /// stat by its name: it might have appeared behind the walk's back. The stat is
    /// of the name in the record, whatever other one the file was found under.
    pub(super) fn take_missing(&mut self, path: RelPath, stored: Option<StoredRow>) -> Result<()> {
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
                self.take_entry(path, stored, &stat, device)
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
        self.finish_path(result)
    }

    /// Lets a name wait that is there and not recorded.
    fn defer_appeared(&mut self, file: &Candidate) -> Result<()> {
        self.moves.defer_appeared(&file.path, &file.entry, file.device)?;
        let is_file = file.entry.kind == EntryKind::File;
        if let Some(remaining) = self.remaining.as_mut().filter(|_| is_file) {
            remaining.add_arrived(file.entry.size);
        }
        Ok(())
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
        for (path, folder) in std::mem::take(&mut self.folders.0) {
            self.take_missing(path, folder.stored)?;
        }
        for path in self.folders.0.keys().cloned().collect::<Vec<_>>() {
            self.finish_folder(&path, None)?;
        }
        let scope = &self.plan.scopes.around();
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
    pub(super) fn take_deferred(&mut self) -> Result<bool> {
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
        let file = self.candidate(path, stored, entry, (stat.clone(), device));
        if !is_moved && !file.is_unknown() {
            self.recorder.distrust_change();
        }
        if let Some(doubt) = doubt.filter(|_| !is_moved && self.plan.purpose == Purpose::Status) {
            let rules = file.date_rules(self.recorder.mtimes().explains_nothing());
            let verdict = file.judge(Evidence::StatOnly, rules);
            let mut result = PathResult::of(file, verdict);
            result.reason = Some(reason_of(doubt));
            self.finish_path(result)?;
            return Ok(true);
        }
        let path = file.path.clone();
        self.take_entry(file.path, file.stored, &stat, device)?;
        if is_folder {
            self.finish_folder(&path, None)?;
        }
        Ok(true)
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
}

/// Answers the questions of the planner from the record and the names that wait.
struct CatalogLookup<'r> {
    catalog: &'r Catalog,
    moves: &'r MoveTracker,
}

impl PlanLookup for CatalogLookup<'_> {
    fn digests_of_missed(&self, entry: &Entry) -> Result<Option<AlgorithmSet>> {
        self.moves.wants(entry)
    }

    fn is_own_change(&self, path: &RelPath, entry: &Entry) -> Result<bool> {
        self.catalog.own_changes().contains(path, entry)
    }
}
