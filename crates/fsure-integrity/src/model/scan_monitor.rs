//! The listener to a run over a root: its verdicts, their remedies and its progress.

use std::time::Duration;

use super::{Finding, HealResult};
use fsure_core::{Monitor, NullMonitor, RelPath};

/// The progress of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Files judged.
    pub files: u64,
    /// Bytes of file content judged, by size: holes and unchanged files too.
    pub bytes_judged: u64,
    /// Bytes of file content hashed.
    pub bytes_hashed: u64,
    /// Bytes to be judged, as far as is known so far.
    pub bytes_total: u64,
    /// True if `bytes_total` is final.
    pub total_is_known: bool,
    /// Time that the run has left; `None` if its time is not limited.
    pub time_left: Option<Duration>,
}

/// Files from this size on have a progress of their own. A disk reads a smaller one within
/// seconds.
pub const OWN_PROGRESS_MIN: u64 = 1 << 30;

/// The file that a run is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurrentFile<'a> {
    /// Its path in the root.
    pub path: &'a RelPath,
    /// The share of it that is read, in percent; `None` of a file that takes seconds.
    pub percent: Option<u8>,
}

/// Returns the share of a whole that is done, in percent: never more than 100.
pub fn percent(done: u64, whole: u64) -> u8 {
    match whole {
        0 => 100,
        _ => (u128::from(done) * 100 / u128::from(whole)).min(100) as u8,
    }
}

/// A listener to a run over a root. Calls come from several threads; none must
/// block for long.
pub trait ScanMonitor: Monitor {
    /// Receives the progress of a run and the current file; called several times a second.
    fn progress(&self, _progress: &Progress, _current: Option<CurrentFile<'_>>) {}

    /// Receives a verdict. Verdicts come in the order in which they are reached.
    fn finding(&self, _finding: &Finding) {}

    /// Receives what was done about a finding, once that is known.
    fn remedy(&self, _remedy: &HealResult) {}
}

impl ScanMonitor for NullMonitor {}
