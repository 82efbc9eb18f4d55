//! Reports what a run finds and does not judge: paths that are left out, and
//! roots that have a record of their own. They must not count as OK.

use super::path_result::PathResult;
use crate::catalog::StoredRow;
use crate::model::{DateRules, Observation, RecordState, Scopes, judge};
use crate::tree::ExcludeReason;
use fsure_core::RelPath;

/// Returns the result for a recorded path that is left out, so that it does not count as
/// "as recorded"; `None` for a tombstone, which is not reported.
pub(super) fn result_of(
    path: RelPath,
    stored: StoredRow,
    why: ExcludeReason,
) -> Option<PathResult> {
    let known = match &stored {
        StoredRow::Sound(row) if row.is_gone() => return None,
        StoredRow::Sound(row) => RecordState::Sound(&row.record),
        StoredRow::Bad(_) => RecordState::Bad,
    };
    let verdict = judge(known, Observation::LeftOut, DateRules::default());
    let mut result = PathResult::new(path, Some(stored), None, verdict);
    result.reason = reason_of(why);
    result.may_be_forgotten = true;
    Some(result)
}

/// Nested roots, as the record and the walk know them.
pub(super) struct NestedRoots {
    pub(super) known: Vec<RelPath>,
    pub(super) found: Vec<RelPath>,
}

impl NestedRoots {
    /// Returns those below the scopes that were recorded and are gone: their disk might not
    /// be mounted, and nothing else would report that.
    pub(super) fn absent<'a>(&'a self, scopes: &'a Scopes) -> impl Iterator<Item = &'a RelPath> {
        let is_absent = |path: &&RelPath| scopes.contains(path) && !self.found.contains(path);
        self.known.iter().filter(is_absent)
    }

    /// Returns those that are not recorded yet.
    pub(super) fn unrecorded(&self) -> impl Iterator<Item = &RelPath> {
        self.found.iter().filter(|path| !self.known.contains(path))
    }
}

/// Returns the reason, for the user, that a path is left out; `None` if the user said so.
pub(super) fn reason_of(why: ExcludeReason) -> Option<String> {
    match why {
        ExcludeReason::CommandLine | ExcludeReason::Pattern => None,
        ExcludeReason::OtherFileSystem => Some("another file system".to_owned()),
        ExcludeReason::OtherMount => {
            Some("another folder is mounted over the recorded one".to_owned())
        }
        ExcludeReason::NestedRoot => Some("it has a record of its own now".to_owned()),
    }
}
