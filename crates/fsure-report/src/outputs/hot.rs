//! The output of `hot`: folders and the time for which programs waited for them.

use std::io::BufRead;

use serde::Deserialize;

use super::flush_trace::LostEvents;
use super::lines::OutputLines;
use fsure_measure::results::ReadError;

/// Folders that are kept, the hottest first.
const FOLDERS_MAX: usize = 5_000;

/// Intervals that are kept: two days of a minute each.
const INTERVALS_MAX: usize = 2_880;

/// A watch over folders.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HotRun {
    /// Folders, the hottest first.
    pub(crate) folders: Vec<HotFolder>,
    /// Intervals in their order.
    pub(crate) intervals: Vec<HotInterval>,
    /// Folders that there is advice on.
    pub(crate) advice: Vec<HotAdvice>,
    /// The last line; `None` if the run was cut off.
    pub(crate) summary: Option<HotTotals>,
}

/// A folder in which something was done.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct HotFolder {
    /// Its path, as text.
    pub(crate) path: String,
    /// Its bytes in base64, if they are not valid UTF-8.
    pub(crate) path_bytes: Option<String>,
    /// Figures of what was done in it directly.
    #[serde(flatten)]
    pub(crate) own: HotFigures,
    /// Names of the programs.
    pub(crate) names: Vec<String>,
}

/// The operations of an interval.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct HotInterval {
    pub(crate) seconds: f64,
    /// Programs that did something.
    pub(crate) programs: Vec<HotProgram>,
}

/// A program in an interval.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct HotProgram {
    pub(crate) program: String,
    pub(crate) waited_ms: Option<f64>,
}

/// Figures; one that the source cannot measure is `None`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct HotFigures {
    pub(crate) waited_ms: Option<f64>,
    pub(crate) bytes_written: Option<u64>,
    pub(crate) bytes_read: Option<u64>,
    pub(crate) writes: u64,
    pub(crate) reads: u64,
    pub(crate) fsyncs: Option<u64>,
    pub(crate) fsync_ms: Option<f64>,
}

/// Advice on a folder.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct HotAdvice {
    /// Its path, as text.
    pub(crate) path: String,
    /// Its bytes in base64, if they are not valid UTF-8.
    pub(crate) path_bytes: Option<String>,
    /// Name of the advice.
    pub(crate) advice: String,
    /// Seconds of waiting that it would save in an hour.
    pub(crate) saves_s_per_hour: f64,
    /// Memory that it would take.
    pub(crate) memory_bytes: Option<u64>,
    /// Name of the risk.
    pub(crate) risk: String,
    /// Reason for the advice.
    pub(crate) why: String,
}

/// The last line.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct HotTotals {
    pub(crate) source: String,
    pub(crate) fell_back: Option<String>,
    pub(crate) seconds: f64,
    #[serde(flatten)]
    pub(crate) totals: HotFigures,
    pub(crate) folders_not_visible: u64,
    pub(crate) not_seen: Vec<String>,
    pub(crate) is_of_command: bool,
    pub(crate) processes_left: u64,
    /// Time of the changes of metadata; `None` if no command was watched.
    pub(crate) metadata_ms: Option<f64>,
    pub(crate) logged: Option<u64>,
    /// The history that it was read from; `None` if it was watched then.
    pub(crate) history: Option<HotHistory>,
    pub(crate) lost: Vec<LostEvents>,
    pub(crate) ended_early: bool,
    pub(crate) exit_code: u8,
}

/// The time that a history covers.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct HotHistory {
    pub(crate) began: String,
    pub(crate) ended: String,
    pub(crate) intervals: u64,
    pub(crate) seconds_missing: f64,
    pub(crate) gaps: Vec<serde_json::Value>,
}

/// Reads the lines of a run.
pub(super) fn read(lines: &mut OutputLines<impl BufRead>) -> Result<HotRun, ReadError> {
    let mut run = HotRun::default();
    while let Some(line) = lines.take()? {
        match line.kind() {
            "folder" if run.folders.len() < FOLDERS_MAX => run.folders.push(line.read()?),
            "folder" => {}
            // The summary counts them all; the file has each.
            "call" => {}
            "interval" if run.intervals.len() < INTERVALS_MAX => run.intervals.push(line.read()?),
            "interval" => {}
            "advice" => run.advice.push(line.read()?),
            "summary" => run.summary = Some(line.read()?),
            _ => lines.pass_over(),
        }
    }
    Ok(run)
}
