//! Reports what a run finds and does not judge: paths that are left out, and
//! roots that have a record of their own. They must not count as OK.

use super::Purpose;
use super::result_recorder::{PathResult, ResultRecorder};
use crate::catalog::StoredRow;
use crate::model::{DateRules, EntryKind, Finding, Observation, RecordState, Verdict, judge};
use crate::tree::ExcludeReason;
use fsure_core::{RelPath, Result};

impl ResultRecorder<'_> {
    /// Reports a path that is left out and not recorded.
    pub(super) fn leave_out(&mut self, path: RelPath, kind: EntryKind, why: ExcludeReason) {
        self.publish(Finding::bare(path, kind, Verdict::Ignored, reason_of(why)));
    }

    /// Counts what a pattern or a border keeps out.
    pub(super) fn count_left_out(&mut self, kind: EntryKind) {
        match kind {
            EntryKind::Folder => self.outcome.ignored_folders += 1,
            EntryKind::File => self.outcome.ignored_files += 1,
            EntryKind::Special => self.outcome.special += 1,
            EntryKind::Link => {}
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
        let known = match &stored {
            StoredRow::Sound(row) if row.is_gone() => return Ok(false),
            StoredRow::Sound(row) => RecordState::Sound(&row.record),
            StoredRow::Bad(_) => RecordState::Bad,
        };
        let verdict = judge(known, Observation::LeftOut, DateRules::default());
        let mut settled = PathResult::new(path, Some(stored), None, verdict);
        settled.reason = reason_of(why);
        settled.may_be_forgotten = true;
        let is_file = settled.kind() == EntryKind::File;
        let accepted = self.outcome.accepted.total();
        let path = settled.path.clone();
        self.finish_path(settled)?;
        if is_file && verdict == Verdict::Ignored && self.outcome.accepted.total() == accepted {
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
        Ok(true)
    }

    /// Finds nested roots that were recorded and are gone: their disk might not
    /// be mounted, and nothing else would report that.
    pub(super) fn look_for_nested_roots(&mut self) -> Result<()> {
        let known = self.catalog.nested_roots()?;
        let found = self.outcome.nested_roots.clone();
        let scope = &self.plan.walk.scope;
        let absent = known.iter().filter(|path| path.is_within(scope) && !found.contains(path));
        for path in absent {
            let forgets = match &self.plan.purpose {
                Purpose::Update(rules) => self.may_write && rules.accept.covers(path),
                _ => false,
            };
            if forgets {
                let forgotten = self.catalog.set_nested_root(path, false);
                self.stop_on_write_error(forgotten)?;
            } else {
                self.outcome.absent_roots.push(path.clone());
            }
        }
        if let Some(path) =
            found.iter().find(|path| self.plan.binds_claims && !known.contains(path))
        {
            let why =
                format!("{} has a record of its own, of which it knows nothing", path.display());
            self.outcome.record_untrusted.get_or_insert(why);
        }
        for path in found.iter().filter(|path| !known.contains(path)) {
            if self.outcome.is_update && self.may_write {
                let remembered = self.catalog.set_nested_root(path, true);
                self.stop_on_write_error(remembered)?;
            }
        }
        self.known_roots = known;
        Ok(())
    }
}

fn reason_of(why: ExcludeReason) -> Option<String> {
    match why {
        ExcludeReason::CommandLine | ExcludeReason::Pattern => None,
        ExcludeReason::OtherFileSystem => Some("another file system".to_owned()),
        ExcludeReason::OtherMount => {
            Some("another folder is mounted over the recorded one".to_owned())
        }
        ExcludeReason::NestedRoot => Some("it has a record of its own now".to_owned()),
    }
}
