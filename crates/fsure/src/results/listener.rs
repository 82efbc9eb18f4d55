//! Who listens to a measurement.

use super::Line;
use crate::words::Monitor;

/// Where a measurement stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step<'a> {
    /// What is measured now, in words.
    pub what: &'a str,
    /// How much of the run is done, 0 to 1, by the time it may take.
    pub share: f64,
}

/// A listener to a measurement. Warnings and the wish to stop are those of
/// [`Monitor`]; none of the calls may block for long.
pub trait Listener: Monitor {
    /// A line of the result, as soon as it is known.
    fn measured(&self, _line: &Line) {}

    /// What is under way; never called while a clock runs.
    fn under_way(&self, _step: &Step<'_>) {}
}

impl Listener for crate::words::Silent {}
