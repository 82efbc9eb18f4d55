//! The listener to a run: the terminal, a test, another language. The library
//! calls it, and never prints.

use super::ExitCode;

/// A listener. Calls come from several threads; none must block for long.
pub trait Monitor: Sync {
    /// Receives a message to the user.
    fn warn(&self, _message: &str) {}

    /// Returns the exit code to end with if the run should save its state and
    /// end; `None` if it should go on.
    fn stop_requested(&self) -> Option<ExitCode> {
        None
    }
}

/// The step that a long run is at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step<'a> {
    /// The step, in words.
    pub what: &'a str,
    /// Share of the run that is done, 0 to 1, by the time it may take.
    pub share: f64,
}

/// A listener to a run that has steps. None of the calls may block for long.
pub trait StepMonitor: Monitor {
    /// Receives the step that is under way; called no more than once a second while a clock runs.
    fn under_way(&self, _step: &Step<'_>) {}
}

/// A monitor that ignores every call.
#[derive(Clone, Copy, Debug)]
pub struct NullMonitor;

impl Monitor for NullMonitor {}

impl StepMonitor for NullMonitor {}
