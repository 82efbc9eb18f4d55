//! Files that were last changed by a clock ahead of this one.

use super::path_result::PathResult;
use super::run_time::RunTime;
use crate::model::{EntryKind, is_in_the_future};
use fsure_core::RelPath;

/// Counts such files, and keeps the first.
#[derive(Default)]
pub(super) struct FutureChanges {
    files: u64,
    first: Option<RelPath>,
}

impl FutureChanges {
    pub(super) fn add(&mut self, result: &PathResult, time: RunTime) {
        let Some(entry) = result.entry.as_ref() else { return };
        let is_future = |change_ns| is_in_the_future(change_ns, time.started_ns());
        if entry.kind == EntryKind::File && entry.ctime_ns.is_some_and(is_future) {
            self.files += 1;
            self.first.get_or_insert_with(|| result.path.clone());
        }
    }

    /// Returns a warning that a clock was wrong, or is: until that date, an edit of
    /// such a file by a clock that is right looks older than its record.
    pub(super) fn warning(&self) -> Option<String> {
        let (files, first) = (self.files, self.first.as_ref()?.display());
        let have = if files == 1 { "file has" } else { "files have" };
        Some(format!(
            "{files} {have} a change time in the future (the first: {first}): the clock was \
             ahead when it was written, or is behind now ('date' shows it)"
        ))
    }
}
