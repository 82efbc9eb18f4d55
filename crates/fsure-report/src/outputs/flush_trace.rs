//! The output of `flush trace`: the flushes of a command, by kind and by file.

use std::io::BufRead;

use serde::Deserialize;

use super::lines::OutputLines;
use fsure_measure::results::ReadError;

/// Rows of files that are kept, the costliest first.
const FILES_MAX: usize = 5_000;

/// A command whose flushes were traced.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FlushTraceRun {
    /// Kinds of flushes, the costliest first.
    pub(crate) kinds: Vec<FlushedKind>,
    /// Kinds by file.
    pub(crate) files: Vec<FlushedKind>,
    /// The last line; `None` if the run was cut off.
    pub(crate) summary: Option<FlushTraceTotals>,
}

/// Flushes of one kind, of all files or of one.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct FlushedKind {
    /// Its name.
    pub(crate) kind: String,
    /// Path of the file, as text.
    pub(crate) path: Option<String>,
    /// Its bytes in base64, if they are not valid UTF-8.
    pub(crate) path_bytes: Option<String>,
    /// True if the path led to the file at the end.
    pub(crate) is_there: bool,
    #[serde(flatten)]
    pub(crate) cost: TracedCost,
}

/// Figures of some flushes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct TracedCost {
    pub(crate) count: u64,
    pub(crate) failed: u64,
    pub(crate) total_ms: f64,
    pub(crate) waited_ms: f64,
    pub(crate) share: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) max_us: f64,
}

/// The last line.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct FlushTraceTotals {
    pub(crate) seconds: f64,
    #[serde(flatten)]
    pub(crate) all: TracedCost,
    pub(crate) deferrable_ms: f64,
    pub(crate) deferrable_share: f64,
    pub(crate) processes_left: u64,
    pub(crate) not_seen: Vec<String>,
    pub(crate) lost: Vec<LostEvents>,
    pub(crate) exit_code: u8,
}

/// Events that were lost.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct LostEvents {
    /// Kind of the events.
    pub(crate) what: String,
    pub(crate) count: u64,
}

/// Reads the lines of a run.
pub(super) fn read(lines: &mut OutputLines<impl BufRead>) -> Result<FlushTraceRun, ReadError> {
    let mut run = FlushTraceRun::default();
    while let Some(line) = lines.take()? {
        match line.kind() {
            "flushes" => run.kinds.push(line.read()?),
            "flushed-file" if run.files.len() < FILES_MAX => run.files.push(line.read()?),
            "flushed-file" => {}
            "summary" => run.summary = Some(line.read()?),
            _ => lines.pass_over(),
        }
    }
    Ok(run)
}
