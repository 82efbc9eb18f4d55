//! The interface for listening to a measurement.

use super::ResultLine;
use crate::model::Monitor;

/// Progress of a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step<'a> {
    /// The current measurement, in words.
    pub what: &'a str,
    /// Share of the run that is done, 0 to 1, by the time it may take.
    pub share: f64,
}

/// A listener to a measurement. Warnings and the wish to stop are those of
/// [`Monitor`]; none of the calls may block for long.
pub trait Listener: Monitor {
    /// A line of the result, as soon as it is known.
    fn measured(&self, _line: &ResultLine) {}

    /// Receives the step that is under way; never called while a clock runs.
    fn under_way(&self, _step: &Step<'_>) {}
}

impl Listener for crate::model::NullMonitor {}
