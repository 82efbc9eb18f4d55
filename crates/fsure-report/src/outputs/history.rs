//! The output of `log` and of `seal`: what was recorded, verified and signed, and when.

use std::io::BufRead;

use serde::Deserialize;

use super::checked::{KnownDamage, Signed};
use super::lines::OutputLines;
use fsure_measure::results::ReadError;

/// Lines of a kind that are kept, the last ones.
const ROWS_MAX: usize = 10_000;

/// History of a record.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct History {
    /// Runs that changed the record.
    pub(crate) generations: Vec<GenerationRow>,
    /// Runs that read files.
    pub(crate) verifications: Vec<VerificationRow>,
    /// Files with known damage.
    pub(crate) damaged: Vec<DamageRow>,
    /// The last line; `None` if the run was cut off.
    pub(crate) summary: Option<HistoryTotals>,
}

/// A run that changed the record.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct GenerationRow {
    /// Number of the generation.
    pub(crate) generation: u64,
    /// Time, RFC 3339.
    pub(crate) time: String,
    /// The command.
    pub(crate) command: String,
    /// Changes.
    pub(crate) changes: ChangeCounts,
    /// Key that it is signed with.
    pub(crate) signed_with: Option<String>,
    /// Files at that time, if it is signed.
    pub(crate) files: Option<u64>,
    /// Their bytes.
    pub(crate) bytes: Option<u64>,
}

/// Files that a run recorded anew.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct ChangeCounts {
    pub(crate) new: u64,
    pub(crate) modified: u64,
    pub(crate) touched: u64,
    pub(crate) missing: u64,
    pub(crate) moved: u64,
    pub(crate) accepted: u64,
}

/// A run that read files.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct VerificationRow {
    /// Generation of the record.
    pub(crate) generation: u64,
    /// Time, RFC 3339.
    pub(crate) time: String,
    /// The command.
    pub(crate) command: String,
    /// Files that were read.
    pub(crate) files: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// The exit code of the run.
    pub(crate) exit_code: u8,
}

/// A file with known damage.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct DamageRow {
    /// Its path, as text.
    pub(crate) path: String,
    /// Its bytes in base64, if they are not valid UTF-8.
    pub(crate) path_bytes: Option<String>,
    /// Verdict, and since when.
    pub(crate) known: KnownDamage,
}

/// The last line.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct HistoryTotals {
    pub(crate) command: String,
    pub(crate) root: String,
    pub(crate) known_damage: u64,
    pub(crate) generations: u64,
    pub(crate) verifications: u64,
    pub(crate) signed: Option<Signed>,
    pub(crate) record_untrusted: Option<String>,
    pub(crate) files: Option<u64>,
    pub(crate) bytes: Option<u64>,
    pub(crate) exit_code: u8,
}

/// Reads the lines of a history.
pub(super) fn read(lines: &mut OutputLines<impl BufRead>) -> Result<History, ReadError> {
    let mut history = History::default();
    while let Some(line) = lines.take()? {
        match line.kind() {
            "generation" => keep(&mut history.generations, line.read()?),
            "verification" => keep(&mut history.verifications, line.read()?),
            "known-damage" => keep(&mut history.damaged, line.read()?),
            "summary" => history.summary = Some(line.read()?),
            _ => lines.pass_over(),
        }
    }
    Ok(history)
}

/// Keeps the latest: twice as many at most, so that each is moved once.
fn keep<T>(rows: &mut Vec<T>, row: T) {
    if rows.len() == 2 * ROWS_MAX {
        rows.drain(..ROWS_MAX);
    }
    rows.push(row);
}
