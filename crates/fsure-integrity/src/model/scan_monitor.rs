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

/// A listener to a run over a root. Calls come from several threads; none must
/// block for long.
pub trait ScanMonitor: Monitor {
    /// Receives the progress of a run and the current path; called several times a second.
    fn progress(&self, _progress: &Progress, _current: Option<&RelPath>) {}

    /// Receives a verdict. Verdicts come in the order in which they are reached.
    fn finding(&self, _finding: &Finding) {}

    /// Receives what was done about a finding, once that is known.
    fn remedy(&self, _remedy: &HealResult) {}
}

impl ScanMonitor for NullMonitor {}
