//! The output of `protect`.

use std::io::BufRead;

use serde::Deserialize;

use super::lines::OutputLines;
use fsure_measure::results::ReadError;

/// Files that recovery data was made for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Protected {
    /// The last line of each root; empty if the run was cut off.
    pub(crate) roots: Vec<ProtectedTotals>,
}

/// The last line.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct ProtectedTotals {
    pub(crate) root: String,
    /// Share of the data, from 0 to 1.
    pub(crate) redundancy: f64,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// Bytes that the recovery data takes.
    pub(crate) room: u64,
    pub(crate) groups_kept: u64,
    pub(crate) groups_made: u64,
    pub(crate) groups_deleted: u64,
    pub(crate) groups_damaged: u64,
    pub(crate) left_out: u64,
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    /// True if nothing was written.
    pub(crate) dry_run: bool,
    pub(crate) exit_code: u8,
}

/// Reads the lines of a run.
pub(super) fn read(lines: &mut OutputLines<impl BufRead>) -> Result<Protected, ReadError> {
    let mut run = Protected::default();
    while let Some(line) = lines.take()? {
        match line.kind() {
            "summary" | "root" => run.roots.push(line.read()?),
            _ => lines.pass_over(),
        }
    }
    Ok(run)
}
