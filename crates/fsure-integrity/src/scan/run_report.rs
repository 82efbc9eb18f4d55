//! The report of a run: the findings that go to the monitor, and the outcome that counts
//! them.

use std::collections::HashSet;
use std::io;

use fsure_os::root_dir::is_denied;

use super::excluded;
use super::path_result::PathResult;
use super::{Purpose, ScanPlan};
use crate::model::{
    Changes, EntryKind, Finding, Outcome, ScanMonitor, ScrubSummary, StopReason, Verdict,
};
use crate::tree::ExcludeReason;
use fsure_core::RelPath;

/// Reports findings and counts them.
pub(super) struct RunReport<'a> {
    monitor: &'a dyn ScanMonitor,
    outcome: Outcome,
    /// Changes that the run has made to the record.
    changes: Changes,
    /// Bad rows that were reported, so that none is reported twice.
    reported_bad: HashSet<RelPath>,
}

impl<'a> RunReport<'a> {
    pub(super) fn new(plan: &ScanPlan, monitor: &'a dyn ScanMonitor) -> Self {
        Self {
            monitor,
            outcome: Outcome {
                command: plan.command,
                is_update: matches!(plan.purpose, Purpose::Update(_)),
                is_against_list: plan.is_list,
                is_dry_run: plan.is_dry_run,
                has_recovery_data: plan.has_recovery_data,
                allowed: plan.allowed,
                ..Outcome::default()
            },
            changes: Changes::default(),
            reported_bad: HashSet::new(),
        }
    }

    pub(super) fn monitor(&self) -> &'a dyn ScanMonitor {
        self.monitor
    }

    pub(super) fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    pub(super) fn outcome_mut(&mut self) -> &mut Outcome {
        &mut self.outcome
    }

    pub(super) fn take_outcome(&mut self) -> Outcome {
        std::mem::take(&mut self.outcome)
    }

    /// Returns the counts of the scrub in the outcome of this run.
    pub(super) fn scrub_mut(&mut self) -> &mut ScrubSummary {
        self.outcome.scrub.get_or_insert_default()
    }

    pub(super) fn changes(&self) -> Changes {
        self.changes
    }

    /// Returns true if it was reported that the record of a path fails its seal.
    pub(super) fn has_reported_bad(&self, path: &RelPath) -> bool {
        self.reported_bad.contains(path)
    }

    pub(super) fn warn(&self, message: &str) {
        self.monitor.warn(message);
    }

    /// Notes the reason for which the run ends, unless there is one. That the record could not be
    /// written is said in any case: the report of a run that was interrupted says that what it did
    /// is saved.
    pub(super) fn stop(&mut self, stop: StopReason) {
        let is_first = self.outcome.stopped.is_none();
        let has_failed = matches!(self.outcome.stopped, Some(StopReason::RecordFailed(_)));
        if is_first || !has_failed && matches!(stop, StopReason::RecordFailed(_)) {
            self.outcome.stopped = Some(stop);
        }
    }

    /// Notes the reason for which the record cannot be trusted, unless there is one.
    pub(super) fn distrust(&mut self, why: String) {
        self.outcome.record_untrusted.get_or_insert(why);
    }

    /// Calls a new file denied that this user may not read, in a run that does not try to.
    pub(super) fn note_if_denied(&mut self, plan: &ScanPlan, result: &mut PathResult) {
        let is_new = result.verdict == Verdict::New && result.kind() == EntryKind::File;
        let is_tried = matches!(plan.purpose, Purpose::Update(_));
        if is_new && !is_tried && !plan.root.may_read(result.path.as_bytes()) {
            result.verdict = Verdict::Denied;
            result.reason = Some("it is not recorded, and this user may not read it".to_owned());
        }
    }

    /// Reports the result for a path; `recorded_now` is true if the run has recorded it.
    pub(super) fn add_result(&mut self, result: &PathResult, recorded_now: bool) {
        if result.has_bad_record() {
            self.reported_bad.insert(result.path.clone());
        }
        self.add(result.finding(recorded_now));
    }

    /// Reports a finding and counts it.
    pub(super) fn add(&mut self, mut finding: Finding) {
        finding.is_dry_run = self.outcome.is_dry_run;
        self.monitor.finding(&finding);
        if finding.recorded_now && finding.kind == EntryKind::File {
            self.changes.add(&finding);
        }
        self.outcome.add(finding);
    }

    /// Reports that the folder that the user named cannot be listed.
    pub(super) fn add_unlisted_root(&mut self, path: RelPath, error: &io::Error) {
        let verdict = if is_denied(error) { Verdict::Denied } else { Verdict::Unreadable };
        let reason = Some(unlisted_because(error));
        self.add(Finding::bare(path, EntryKind::Folder, verdict, reason));
    }

    /// Reports a path that is left out and not recorded.
    pub(super) fn add_left_out(&mut self, path: RelPath, kind: EntryKind, why: ExcludeReason) {
        if why == ExcludeReason::OtherFileSystem {
            self.outcome.other_file_systems.push(path.clone());
        }
        self.add(Finding::bare(path, kind, Verdict::Ignored, excluded::reason_of(why)));
    }

    /// Counts what a pattern or a border keeps out.
    pub(super) fn count_left_out(&mut self, kind: EntryKind, why: ExcludeReason) {
        self.outcome.left_out_once += u64::from(why == ExcludeReason::CommandLine);
        match kind {
            EntryKind::Folder => self.outcome.ignored_folders += 1,
            EntryKind::File => self.outcome.ignored_files += 1,
            EntryKind::Special => self.outcome.special += 1,
            EntryKind::Link => {}
        }
    }

    /// Counts a recorded file that is left out and stays recorded.
    pub(super) fn count_recorded_left_out(&mut self, path: RelPath, why: ExcludeReason) {
        let left_out = &mut self.outcome.recorded_left_out;
        match why {
            ExcludeReason::CommandLine => left_out.by_command_line += 1,
            ExcludeReason::Pattern => {
                left_out.by_pattern += 1;
                self.outcome.to_accept.left_out.get_or_insert(path);
            }
            ExcludeReason::OtherFileSystem
            | ExcludeReason::OtherMount
            | ExcludeReason::NestedRoot => {
                left_out.by_border += 1;
            }
        }
    }
}

/// Returns the reason, for the user, that the names of a folder are not all known.
pub(super) fn unlisted_because(error: &io::Error) -> String {
    format!("its names cannot be listed: {error}")
}
