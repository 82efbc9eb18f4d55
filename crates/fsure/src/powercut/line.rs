//! What the three commands say, one line each: for programs as it is, for a
//! person in words.

use serde::Serialize;

use super::{Device, Judged};
use crate::words::Monitor;

/// A listener to any of the three; warnings and the wish to stop are those of
/// [`Monitor`]. No call may block for long.
pub trait Listener: Monitor {
    /// Something has come to pass.
    fn told(&self, _line: &Line) {}

    /// Where it stands, in words; several times a second.
    fn under_way(&self, _words: &str) {}
}

impl Listener for crate::words::Silent {}

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Line {
    /// The witness listens.
    Listening {
        /// Where.
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
        /// Whether the writer has said that this is the end.
        is_ended: bool,
    },
    /// A checker has asked.
    Asked {
        /// For this run.
        run: String,
    },
    /// A run begins.
    Run(RunBegins),
    /// The command that cuts the power is started.
    Cutting {
        /// Seconds since the run began.
        seconds: f64,
        /// Whether the writer rests.
        is_resting: bool,
    },
    /// A run of the writer ends.
    Written {
        /// Its run.
        run: String,
        /// Writes whose flush has returned.
        acked: u64,
        /// How long it took.
        seconds: f64,
        /// Whether the run is over, so that nothing can be judged of it.
        is_ended: bool,
    },
    /// What was found of one method.
    Method(Method),
    /// What it comes to.
    Summary(Summary),
}

impl Line {
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
    /// Where the files are.
    pub folder: String,
    /// The drive, where it is known.
    pub device: Option<Device>,
    /// Why it is not.
    pub unknown: Option<String>,
    /// The methods that are tried.
    pub methods: Vec<String>,
    /// The patterns that are tried.
    pub patterns: Vec<String>,
    /// What chance begins with.
    pub seed: u64,
}

/// What was found of one method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Method {
    /// Its name.
    pub method: String,
    /// Writes acknowledged.
    pub acked: u64,
    /// Of the blocks that are owed: nothing there.
    pub lost: u64,
    /// An older version.
    pub old: u64,
    /// Sectors of two versions.
    pub torn: u64,
    /// What belongs elsewhere.
    pub misdirected: u64,
    /// Of all these, those before a later write that is there.
    pub reordered: u64,
    /// The age of the oldest that does not hold.
    pub oldest_lost_ms: Option<u64>,
    /// Writes that are there and were not acknowledged.
    pub extra: u64,
}

impl Method {
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

/// What a check comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// All that was acknowledged is there.
    Passed,
    /// Something is not.
    Failed,
    /// Nothing can be said.
    NothingShown,
}

/// The last line of a check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The run; `None` where there is none.
    pub run: Option<String>,
    /// What it comes to.
    pub state: State,
    /// Writes acknowledged.
    pub acked: u64,
    /// Blocks that do not hold what was acknowledged last.
    pub failed: u64,
    /// How long the writer was heard, milliseconds.
    pub heard_ms: u64,
    /// How the files were read: `direct`, or the next best way.
    pub read: &'static str,
    /// The drive, where the result can be attributed.
    pub device: Option<Device>,
    /// All that is kept of that drive, with this.
    pub cuts: Option<Kept>,
    /// Why nothing is shown, or is not attributed.
    pub why: Option<String>,
    /// The exit code.
    pub exit_code: u8,
}

/// All cuts of a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// Cuts made.
    pub made: u64,
    /// Writes acknowledged before them.
    pub acknowledged: u64,
    /// Blocks that did not hold.
    pub lost: u64,
}
