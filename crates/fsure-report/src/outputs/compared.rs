//! The output of `compare`.

use std::io::BufRead;

use serde::Deserialize;

use super::lines::OutputLines;
use fsure_measure::results::ReadError;

/// Differences that are kept; all are counted.
const ROWS_MAX: usize = 10_000;

/// Two trees that were compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Compared {
    /// Paths that are not the same on both sides.
    pub(crate) rows: Vec<ComparedRow>,
    /// Number of all of them.
    pub(crate) rows_total: u64,
    /// The last line; `None` if the run was cut off.
    pub(crate) summary: Option<ComparedTotals>,
}

/// A path that is not the same on both sides.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct ComparedRow {
    /// `different`, `only-here`, ...
    pub(crate) result: String,
    /// The path, as text.
    pub(crate) path: String,
    /// Its bytes in base64, if they are not valid UTF-8.
    pub(crate) path_bytes: Option<String>,
    /// The path on the other side, if it is another one.
    pub(crate) there: Option<String>,
    /// Its bytes in base64, if they are not valid UTF-8.
    pub(crate) there_bytes: Option<String>,
    /// `file`, `folder`, `link`.
    pub(crate) kind: String,
}

/// Counts of all paths.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct ComparedTotals {
    pub(crate) same: u64,
    pub(crate) different: u64,
    pub(crate) only_here: u64,
    pub(crate) only_there: u64,
    pub(crate) moved: u64,
    pub(crate) unknown: u64,
    pub(crate) bad_records: u64,
    pub(crate) malformed: u64,
    pub(crate) unusable: u64,
    pub(crate) known_damage: u64,
    pub(crate) recorded_here: u64,
    pub(crate) recorded_there: u64,
    pub(crate) bytes_read: u64,
    pub(crate) exit_code: u8,
}

/// Reads the lines of a comparison.
pub(super) fn read(lines: &mut OutputLines<impl BufRead>) -> Result<Compared, ReadError> {
    let mut compared = Compared::default();
    while let Some(line) = lines.take()? {
        match line.kind() {
            "compared" => {
                compared.rows_total += 1;
                if compared.rows.len() < ROWS_MAX {
                    compared.rows.push(line.read()?);
                }
            }
            "summary" => compared.summary = Some(line.read()?),
            _ => lines.pass_over(),
        }
    }
    Ok(compared)
}
