//! The output of `dupes`.

use std::io::BufRead;

use serde::Deserialize;

use super::lines::OutputLines;
use fsure_measure::results::ReadError;

/// Files that are kept; all are counted.
const FILES_MAX: usize = 10_000;

/// Files with equal content.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Duplicates {
    /// The files, group by group.
    pub(crate) files: Vec<DuplicateRow>,
    /// Number of all of them.
    pub(crate) files_total: u64,
    /// Totals of each root.
    pub(crate) roots: Vec<DuplicateTotals>,
    /// The last line; `None` if the run was cut off.
    pub(crate) summary: Option<DuplicateTotals>,
}

/// A file of which another one has the content.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct DuplicateRow {
    /// The root, as text.
    pub(crate) root: String,
    /// Number of the group.
    pub(crate) group: u64,
    /// The path, as text.
    pub(crate) path: String,
    /// Its bytes in base64, if they are not valid UTF-8.
    pub(crate) path_bytes: Option<String>,
    /// Bytes.
    pub(crate) size: u64,
    /// True if it is another name of the file before it.
    pub(crate) is_link: bool,
}

/// Counts of a root, or of all.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct DuplicateTotals {
    pub(crate) root: Option<String>,
    pub(crate) groups: u64,
    pub(crate) files: u64,
    pub(crate) links: u64,
    pub(crate) bytes_saved: u64,
    pub(crate) files_read: u64,
    pub(crate) bytes_read: u64,
    pub(crate) unread: u64,
    pub(crate) changed: u64,
    pub(crate) bad_records: u64,
    pub(crate) known_damage: u64,
    pub(crate) is_offline: bool,
    pub(crate) was_stopped: bool,
    pub(crate) exit_code: u8,
}

/// Reads the lines of a run.
pub(super) fn read(lines: &mut OutputLines<impl BufRead>) -> Result<Duplicates, ReadError> {
    let mut found = Duplicates::default();
    while let Some(line) = lines.take()? {
        match line.kind() {
            "duplicate" => {
                found.files_total += 1;
                if found.files.len() < FILES_MAX {
                    found.files.push(line.read()?);
                }
            }
            "root" => found.roots.push(line.read()?),
            "summary" => found.summary = Some(line.read()?),
            _ => lines.pass_over(),
        }
    }
    Ok(found)
}
