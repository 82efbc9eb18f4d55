//! The output of `recover`.

use std::io::BufRead;

use serde::Deserialize;

use super::lines::OutputLines;
use fsure_measure::results::ReadError;

/// A record that was put together again.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Recovered {
    /// The last line; `None` if the run was cut off.
    pub(crate) summary: Option<RecoveredTotals>,
}

/// The last line.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RecoveredTotals {
    pub(crate) root: String,
    pub(crate) damage: Option<String>,
    pub(crate) rows: u64,
    pub(crate) from_catalog: u64,
    pub(crate) from_backup: u64,
    pub(crate) from_sidecars: u64,
    pub(crate) lost: u64,
    pub(crate) without_blocks: u64,
    pub(crate) is_whole: bool,
    pub(crate) lost_tables: Vec<String>,
    pub(crate) bytes_unreadable: u64,
    pub(crate) is_dry_run: bool,
    pub(crate) kept_as: Option<String>,
    pub(crate) exit_code: u8,
}

/// Reads the lines of a run.
pub(super) fn read(lines: &mut OutputLines<impl BufRead>) -> Result<Recovered, ReadError> {
    let mut run = Recovered::default();
    while let Some(line) = lines.take()? {
        match line.kind() {
            "summary" => run.summary = Some(line.read()?),
            _ => lines.pass_over(),
        }
    }
    Ok(run)
}
