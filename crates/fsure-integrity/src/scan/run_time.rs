//! The time of a run: one moment for all that it records, however long it takes.

use fsure_core::Clock;

/// The time at which a run began.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunTime {
    started_ns: i64,
}

impl RunTime {
    pub(super) fn begin(clock: &Clock) -> Self {
        Self { started_ns: clock.now_ns() }
    }

    /// Returns nanoseconds since 1970.
    pub(super) fn started_ns(self) -> i64 {
        self.started_ns
    }

    /// Returns seconds since 1970.
    pub(super) fn now_s(self) -> i64 {
        self.started_ns / 1_000_000_000
    }
}

/// Whole seconds of a time in nanoseconds.
pub(super) fn seconds(time_ns: i64) -> i64 {
    time_ns.div_euclid(1_000_000_000)
}
