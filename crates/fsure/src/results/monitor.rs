//! The interface for listening to a measurement.

use super::ResultLine;
use crate::model::StepMonitor;

/// A listener to a measurement. None of the calls may block for long.
pub trait MeasurementMonitor: StepMonitor {
    /// Receives a line of the result, as soon as it is known.
    fn measured(&self, _line: &ResultLine) {}
}

impl MeasurementMonitor for crate::model::NullMonitor {}
