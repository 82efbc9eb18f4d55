//! Output of the three commands, one line each: as it is for programs, in words for
//! people.

use serde::Serialize;

use super::{Judged, TestedDevice};
use fsure_core::{Clock, Monitor};

/// A listener to any of the three commands; warnings and stop requests are those of
/// [`Monitor`]. Calls must not block for long.
pub trait PowercutMonitor: Monitor {
    /// Receives a line about an event.
    fn report(&self, _line: &Message) {}

    /// Receives the current state in words, several times a second.
    fn under_way(&self, _words: &str) {}
}

impl PowercutMonitor for fsure_core::NullMonitor {}

/// Returns the current time, to the millisecond, as the lines have it.
pub(super) fn timestamp(clock: &Clock) -> String {
    let now = jiff::Timestamp::from_millisecond(clock.now_ns() / 1_000_000);
    format!("{:.3}", now.unwrap_or_default())
}

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Message {
    /// The witness listens.
    Listening {
        /// Address at which it listens.
        address: String,
    },
    /// A writer was heard for the first time, or again.
    Writer {
        /// Its run.
        run: String,
        /// Its machine.
        host: String,
        /// Its folder.
        folder: String,
        /// Writes acknowledged before.
        acked: u64,
    },
    /// The connection to a writer is gone; its run goes on.
    Silence {
        /// Its run.
        run: String,
        /// Writes acknowledged.
        acked: u64,
        /// True if the writer has reported the end.
        is_ended: bool,
    },
    /// A checker has requested a run.
    Asked {
        /// The run.
        run: String,
    },
    /// A run begins.
    Run(RunBegins),
    /// The command that cuts the power is started.
    Cutting {
        /// Seconds since the run began.
        seconds: f64,
        /// True if the writer rests.
        is_resting: bool,
    },
    /// A run of the writer ends.
    Written {
        /// Its run.
        run: String,
        /// Writes whose flush has returned.
        acked: u64,
        /// Duration of the run, in seconds.
        seconds: f64,
        /// True if the run is over, so that nothing can be judged of it.
        is_ended: bool,
    },
    /// Result of one method.
    Method(MethodResult),
    /// Summary of a check.
    Summary(CheckSummary),
}

impl Message {
    /// The line for programs; no line end.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and text under fixed names")
    }
}

/// A run, as its writer begins it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunBegins {
    /// Its name.
    pub run: String,
    /// Folder of the files.
    pub folder: String,
    /// The drive, if it is known.
    pub device: Option<TestedDevice>,
    /// Reason why the drive is not known.
    pub unknown: Option<String>,
    /// The methods that are tried.
    pub methods: Vec<String>,
    /// The patterns that are tried.
    pub patterns: Vec<String>,
    /// Seed of all random choices.
    pub seed: u64,
}

/// Result of one method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MethodResult {
    /// Its name.
    pub method: String,
    /// Writes acknowledged.
    pub acked: u64,
    /// Owed blocks with nothing there.
    pub lost: u64,
    /// Owed blocks with an older version.
    pub old: u64,
    /// Owed blocks with sectors of two versions.
    pub torn: u64,
    /// Owed blocks with content that belongs elsewhere.
    pub misdirected: u64,
    /// Of all these, those before a later write that is there.
    pub reordered: u64,
    /// Age of the oldest acknowledgement that does not hold, in milliseconds; `None` if
    /// all hold.
    pub oldest_lost_ms: Option<u64>,
    /// Writes that are there and were not acknowledged.
    pub extra: u64,
}

impl MethodResult {
    pub(super) fn new(method: String, acked: u64, judged: &Judged) -> Self {
        Self {
            method,
            acked,
            lost: judged.lost,
            old: judged.old,
            torn: judged.torn,
            misdirected: judged.misdirected,
            reordered: judged.reordered,
            oldest_lost_ms: judged.oldest_ms,
            extra: judged.extra,
        }
    }
}

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckState {
    /// All that was acknowledged is there.
    Passed,
    /// Something is not.
    Failed,
    /// Nothing is shown.
    NothingShown,
}

/// The last line of a check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckSummary {
    /// The run; `None` if there is none.
    pub run: Option<String>,
    /// Result of the check.
    pub state: CheckState,
    /// Writes acknowledged.
    pub acked: u64,
    /// Blocks that do not hold what was acknowledged last.
    pub failed: u64,
    /// Time for which the writer was heard, in milliseconds.
    pub heard_ms: u64,
    /// Way in which the files were read: `direct`, or the next best way.
    pub read: &'static str,
    /// The drive, if the result can be attributed to one.
    pub device: Option<TestedDevice>,
    /// All that is kept of that drive, with this.
    pub cuts: Option<DriveHistory>,
    /// Reason why nothing is shown, or why the result is not attributed to a drive.
    pub why: Option<String>,
    /// The exit code.
    pub exit_code: u8,
}

/// All cuts of a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DriveHistory {
    /// Cuts made.
    pub made: u64,
    /// Writes acknowledged before them.
    pub acknowledged: u64,
    /// Blocks that did not hold.
    pub lost: u64,
}
