//! The listener to a watch, and what it receives.

use fsure_core::{NullMonitor, StepMonitor};
use fsure_os::io_trace::{FolderIo, IoCounts, LoggedCall};

/// A listener to a watch.
pub trait HotMonitor: StepMonitor {
    /// Receives calls that ended, in the order in which they ended.
    fn calls(&self, _calls: &[LoggedCall]) {}

    /// Receives what was done in an interval.
    fn interval(&self, _interval: &Interval) {}
}

impl HotMonitor for NullMonitor {}

/// The operations of an interval.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Its end, in nanoseconds since 1970.
    pub at_ns: i64,
    /// Its length in seconds.
    pub seconds: f64,
    /// Folders in which something was done.
    pub folders: Vec<FolderIo>,
    /// Programs that did something, by name.
    pub programs: Vec<(String, IoCounts)>,
    /// Kinds of events that were lost since the watch began, with their number.
    pub lost: Vec<(&'static str, u64)>,
}
