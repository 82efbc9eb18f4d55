//! The listener to a run: the terminal, a test, another language. The library
//! calls it, and never prints.

use std::time::Duration;

use super::{ExitCode, Finding, HealResult, RelPath};

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

/// A listener. Calls come from several threads; none must block for long.
pub trait Monitor: Sync {
    /// Receives the progress of a run and the current path; called several times a second.
    fn progress(&self, _progress: &Progress, _current: Option<&RelPath>) {}

    /// Receives a verdict. Verdicts come in the order in which they are reached.
    fn finding(&self, _finding: &Finding) {}

    /// Receives what was done about a finding, once that is known.
    fn remedy(&self, _remedy: &HealResult) {}

    /// Receives a message to the user that is not a verdict on a path.
    fn warn(&self, _message: &str) {}

    /// Returns the exit code to end with if the run should save its state and
    /// end; `None` if it should go on.
    fn stop_requested(&self) -> Option<ExitCode> {
        None
    }
}

/// A monitor that ignores every call.
#[derive(Clone, Copy, Debug)]
pub struct NullMonitor;

impl Monitor for NullMonitor {}
