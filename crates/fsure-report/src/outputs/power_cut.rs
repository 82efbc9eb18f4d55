//! The output of `powercut check`.

use std::io::BufRead;

use serde::Deserialize;

use super::lines::OutputLines;
use fsure_measure::results::ReadError;

/// A check after a power cut.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PowerCut {
    /// Result of each way of writing.
    pub(crate) methods: Vec<PowerCutMethod>,
    /// The last line; `None` if there is none.
    pub(crate) summary: Option<PowerCutTotals>,
}

/// Result of one way of writing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct PowerCutMethod {
    pub(crate) method: String,
    pub(crate) acked: u64,
    pub(crate) lost: u64,
    pub(crate) old: u64,
    pub(crate) torn: u64,
    pub(crate) misdirected: u64,
    pub(crate) reordered: u64,
    pub(crate) oldest_lost_ms: Option<u64>,
    pub(crate) extra: u64,
}

/// The last line.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct PowerCutTotals {
    pub(crate) run: Option<String>,
    /// `passed`, `failed`, `nothing-shown`.
    pub(crate) state: String,
    pub(crate) acked: u64,
    pub(crate) failed: u64,
    pub(crate) heard_ms: u64,
    pub(crate) read: String,
    pub(crate) device: Option<TestedDrive>,
    pub(crate) cuts: Option<DriveCuts>,
    pub(crate) why: Option<String>,
    pub(crate) exit_code: u8,
}

/// A drive, as it identifies itself.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct TestedDrive {
    pub(crate) serial: Option<String>,
    pub(crate) firmware: Option<String>,
    pub(crate) model: Option<String>,
}

/// All cuts of a drive.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct DriveCuts {
    pub(crate) made: u64,
    pub(crate) acknowledged: u64,
    pub(crate) lost: u64,
}

/// Reads the lines of a check. Those of the writer and the witness say nothing of a result.
pub(super) fn read(lines: &mut OutputLines<impl BufRead>) -> Result<PowerCut, ReadError> {
    let mut run = PowerCut::default();
    while let Some(line) = lines.take()? {
        match line.kind() {
            "method" => run.methods.push(line.read()?),
            "summary" => run.summary = Some(line.read()?),
            "run" | "cutting" | "written" => return Err(other("powercut write")),
            "listening" | "writer" | "silence" | "asked" => return Err(other("powercut witness")),
            _ => lines.pass_over(),
        }
    }
    Ok(run)
}

/// The error of the two other roles of a test.
fn other(command: &str) -> ReadError {
    ReadError::OtherCommand(command.to_owned())
}
