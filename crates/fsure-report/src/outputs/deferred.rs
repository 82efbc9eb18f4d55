//! The output of `defer`: a first and a last line; what the program printed is between them.

use std::io::BufRead;

use serde::Deserialize;

use super::lines::OutputLines;
use fsure_measure::results::ReadError;

/// A program that ran with flushes in the background.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Deferred {
    /// The last line; `None` if the run was cut off.
    pub(crate) summary: Option<DeferredTotals>,
}

/// The last line.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct DeferredTotals {
    pub(crate) backend: String,
    pub(crate) max_loss_ms: f64,
    pub(crate) deferred: u64,
    pub(crate) waited: u64,
    pub(crate) passed: u64,
    pub(crate) refused: u64,
    pub(crate) flushes: u64,
    pub(crate) longest_flush_ms: f64,
    pub(crate) largest_lag_ms: f64,
    pub(crate) command_exit: Option<u8>,
    pub(crate) command_signal: Option<i32>,
    pub(crate) failure: Option<String>,
    pub(crate) exit_code: u8,
}

/// Reads the lines of a run.
pub(super) fn read(lines: &mut OutputLines<impl BufRead>) -> Result<Deferred, ReadError> {
    let mut run = Deferred::default();
    while let Some(line) = lines.take()? {
        match line.kind() {
            "summary" => run.summary = Some(line.read()?),
            _ => lines.pass_over(),
        }
    }
    Ok(run)
}
