//! Who listens to a run: the terminal, a test, another language. The library
//! tells, and never prints.

use std::time::Duration;

use super::{ExitCode, Finding, RelPath, Remedy};

/// How far a run has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Files judged.
    pub files: u64,
    /// Bytes of file content judged, by size: holes and unchanged files too.
    pub bytes_judged: u64,
    /// Bytes of file content hashed.
    pub bytes_hashed: u64,
    /// Bytes there are to judge, as far as is known by now.
    pub bytes_total: u64,
    /// Whether `bytes_total` is final.
    pub total_is_known: bool,
    /// What is left of the time that the run has, where it has an end.
    pub time_left: Option<Duration>,
}

/// A listener. Calls come from several threads; none may block for long.
pub trait Monitor: Sync {
    /// Where a run stands; called several times a second.
    fn progress(&self, _progress: &Progress, _current: Option<&RelPath>) {}

    /// A verdict, in the order in which they are reached.
    fn finding(&self, _finding: &Finding) {}

    /// What was done about a finding, once that is known.
    fn remedy(&self, _remedy: &Remedy) {}

    /// Something a person should know that is no verdict on a path.
    fn warn(&self, _message: &str) {}

    /// Whether the run should save its state and end, and the exit code to
    /// end with.
    fn stop_requested(&self) -> Option<ExitCode> {
        None
    }
}

/// A monitor that listens to nothing.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Monitor for Silent {}
