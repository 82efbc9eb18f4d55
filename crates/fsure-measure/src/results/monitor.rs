//! The interface for listening to a measurement.

use super::ResultLine;
use fsure_core::StepMonitor;

/// A listener to a measurement. None of the calls may block for long.
pub trait MeasurementMonitor: StepMonitor {
    /// Receives a line of the result, as soon as it is known.
    fn measured(&self, _line: &ResultLine) {}
}

impl MeasurementMonitor for fsure_core::NullMonitor {}
