//! Paths that are settled without reading anything: folders, what is left out,
//! and what is not there or cannot be looked at.

use std::io;

use fsure_os::Kind;
use fsure_os::root_dir::{is_denied, is_gone};

use super::entry_builder::words_kind;
use super::evaluator::Evaluator;
use super::result_recorder::{PathResult, unlisted_because};
use crate::catalog::StoredRow;
use crate::model::{DateRules, Evidence, Observation, RecordState, judge};
use crate::tree::ExcludeReason;
use fsure_core::{RelPath, Result};

impl Evaluator<'_> {
    /// Settles a folder once its names are known, or why they are not.
    pub(super) fn settle_folder(
        &mut self,
        path: &RelPath,
        unlisted: Option<&io::Error>,
    ) -> Result<()> {
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
        if unlisted.is_none() && self.defer_as_move_candidate(&path, stored.as_ref(), &entry, 0)? {
            return Ok(());
        }
        let verdict = self.judge(stored.as_ref(), &entry, evidence);
        let mut settled = PathResult::new(path, stored, Some(entry), verdict);
        settled.reason = unlisted.map(unlisted_because);
        self.settle(settled)
    }

    pub(super) fn take_left_out(
        &mut self,
        path: RelPath,
        stored: Option<StoredRow>,
        kind: Kind,
        why: ExcludeReason,
    ) -> Result<()> {
        if why == ExcludeReason::NestedRoot {
            self.recorder.outcome.nested_roots.push(path);
            return Ok(());
        }
        let is_told = match stored {
            Some(stored) => self.recorder.leave_out_recorded(path.clone(), stored, why)?,
            None => false,
        };
        let kind = words_kind(kind);
        self.recorder.count_left_out(kind);
        if !is_told {
            self.recorder.leave_out(path, kind, why);
        }
        Ok(())
    }

    /// Settles a recorded path that the walk did not come across, after another
    /// stat by its name: it might have appeared behind the walk's back. The stat is
    /// of the name in the record, whatever other one the file was found under.
    pub(super) fn process_missing(
        &mut self,
        path: RelPath,
        stored: Option<StoredRow>,
    ) -> Result<()> {
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
            Err(error) => {
                let found =
                    if is_denied(&error) { Observation::Forbidden } else { Observation::Unlisted };
                self.finish_without_entry(path, stored, found, Some(error.to_string()))
            }
        }
    }

    /// Returns true if a record is of a file system below the root that the walk
    /// has not come across: what is recorded on it is not missing, it is not here.
    fn is_of_absent_volume(&self, stored: Option<&StoredRow>) -> bool {
        let Some(StoredRow::Sound(row)) = stored else { return false };
        self.plan.walk.borders.cross_file_systems
            && !self.entries.have_met(row.record.entry.file_system)
    }

    /// Settles a path of which there is no entry.
    pub(super) fn finish_without_entry(
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
        if is_absent && self.defer_missing_as_move_candidate(stored.as_ref())? {
            return Ok(());
        }
        let verdict = judge(known, found, DateRules::default());
        let mut settled = PathResult::new(path, stored, None, verdict);
        settled.reason = reason;
        settled.may_be_forgotten = is_absent;
        self.settle(settled)
    }
}
