//! The output of `ram try`: the times of a command, by way.

use std::io::BufRead;

use serde::Deserialize;

use super::lines::OutputLines;
use fsure_measure::results::ReadError;

/// A command that was run in several ways.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TrialRun {
    /// The ways: on the disk, in memory, deferred.
    pub(crate) ways: Vec<TrialWay>,
    /// The last line; `None` if the run was cut off.
    pub(crate) summary: Option<TrialTotals>,
}

/// The times of one way; `None` without runs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct TrialWay {
    /// Its name.
    pub(crate) way: String,
    pub(crate) runs: u64,
    pub(crate) median_s: Option<f64>,
    pub(crate) low_s: Option<f64>,
    pub(crate) high_s: Option<f64>,
    /// Median with what the way takes before and behind.
    pub(crate) whole_s: Option<f64>,
    /// Ends of its interval; `None` in older results.
    pub(crate) whole_low_s: Option<f64>,
    pub(crate) whole_high_s: Option<f64>,
    /// Ratio of the time on the disk to that of this way.
    pub(crate) ratio: Option<f64>,
    pub(crate) ratio_low: Option<f64>,
    pub(crate) ratio_high: Option<f64>,
    /// The same of the whole times; `None` in older results.
    pub(crate) whole_ratio: Option<f64>,
    pub(crate) whole_ratio_low: Option<f64>,
    pub(crate) whole_ratio_high: Option<f64>,
    /// Reason why there are no runs.
    pub(crate) refused: Option<String>,
}

/// The last line.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct TrialTotals {
    /// The file system of the folder; `None` in older results, and if it is not known.
    pub(crate) file_system: Option<String>,
    pub(crate) max_loss_ms: f64,
    pub(crate) turns: u64,
    pub(crate) ended_early: bool,
    pub(crate) exit_code: u8,
}

/// Reads the lines of a run.
pub(super) fn read(lines: &mut OutputLines<impl BufRead>) -> Result<TrialRun, ReadError> {
    let mut run = TrialRun::default();
    while let Some(line) = lines.take()? {
        match line.kind() {
            "trial" => run.ways.push(line.read()?),
            "summary" => run.summary = Some(line.read()?),
            _ => lines.pass_over(),
        }
    }
    Ok(run)
}
