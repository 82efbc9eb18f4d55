//! The time that an answer from a history covers, and what is missing of it.

use super::folder_sum::RecordedRest;
use super::interval::RecordedInterval;

/// The part of a history that an answer is given from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// Beginning of the first interval, in nanoseconds since 1970.
    pub began_ns: i64,
    /// End of the last interval, in nanoseconds since 1970.
    pub ended_ns: i64,
    /// Intervals as they were recorded.
    pub recorded: u64,
    /// The same in their order, merged where they are many; none if folders were named.
    pub intervals: Vec<RecordedInterval>,
    /// Gaps between intervals.
    pub gaps: Vec<Gap>,
    /// Seconds that were not recorded, in gaps and in merged intervals, and while the machine
    /// slept.
    pub seconds_missing: f64,
    /// Number of lines that are damaged.
    pub damaged: u64,
    /// Number of times that the clock was set back between two intervals.
    pub set_back: u64,
    /// Folders that no path led to; none if folders were named.
    pub not_visible: RecordedRest,
    /// True if a recorder is at work now.
    pub is_recording: bool,
    /// Seconds from the end of the interval that was stored last to now, negative if the clock
    /// was set back since.
    pub age_s: f64,
    /// True if an interval is dated later than now.
    pub is_in_future: bool,
}

/// A time that was not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Its beginning, in nanoseconds since 1970.
    pub began_ns: i64,
    /// Its end, in nanoseconds since 1970.
    pub ended_ns: i64,
}

impl Gap {
    /// Its length in seconds.
    pub fn seconds(&self) -> f64 {
        seconds_between(self.began_ns, self.ended_ns)
    }
}

/// Seconds from one moment to another.
pub(super) fn seconds_between(from_ns: i64, to_ns: i64) -> f64 {
    to_ns.saturating_sub(from_ns) as f64 / 1e9
}
