//! The output of `ram status`, and of the commands that change one RAM folder.

use std::io::BufRead;

use serde::Deserialize;

use super::lines::OutputLines;
use fsure_measure::results::ReadError;

/// RAM folders, and what was done with them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RamRun {
    /// State of each folder.
    pub(crate) folders: Vec<RamFolder>,
    /// Results of `sync`, `bind`, `unbind`, `verify`, `recover` by their type.
    pub(crate) done: Vec<(String, RamFolder)>,
    /// Messages that were reported while no command was there to show them.
    pub(crate) told: Vec<ToldRow>,
    /// The last line of `status`.
    pub(crate) summary: Option<RamTotals>,
}

/// A RAM folder, or what was done with it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RamFolder {
    /// Its path, as text.
    pub(crate) path: String,
    /// Its bytes in base64, if they are not valid UTF-8.
    pub(crate) path_bytes: Option<String>,
    /// Faults, in words.
    pub(crate) wrong: Vec<String>,
    /// Maximum age of a change that a crash loses, as agreed, in milliseconds.
    pub(crate) max_loss_ms: Option<u64>,
    /// Greatest possible age of a change that is not on the disk, in milliseconds.
    pub(crate) worst_loss_ms: Option<u64>,
    /// The last generation.
    pub(crate) generation: Option<u64>,
    /// Duration of the last generation, in milliseconds.
    pub(crate) took_ms: Option<f64>,
    /// Files in it.
    pub(crate) files: Option<u64>,
    /// Bytes in them.
    pub(crate) content: Option<u64>,
    /// Memory that is taken.
    pub(crate) used: Option<u64>,
    /// Memory that it may take.
    pub(crate) bytes: Option<u64>,
    /// Bytes written.
    pub(crate) written: Option<u64>,
    /// Files that are not brought to the disk.
    pub(crate) unsettled: Vec<String>,
    /// Names that differ between memory and disk.
    pub(crate) differences: Vec<RamDifference>,
    /// Result of `recover`.
    pub(crate) what: Option<String>,
}

/// A name that differs between memory and disk.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RamDifference {
    /// The name, as text.
    pub(crate) path: String,
    /// `only-in-ram`, `only-on-disk`, `content`, ...
    pub(crate) how: String,
}

/// A message that was reported earlier.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct ToldRow {
    /// Time, RFC 3339.
    pub(crate) at: String,
    /// The message.
    pub(crate) words: String,
}

/// The last line of `status`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RamTotals {
    pub(crate) exit_code: u8,
}

/// Reads the lines of a run.
pub(super) fn read(lines: &mut OutputLines<impl BufRead>) -> Result<RamRun, ReadError> {
    let mut run = RamRun::default();
    while let Some(line) = lines.take()? {
        match line.kind() {
            "folder" => run.folders.push(line.read()?),
            "told" => run.told.push(line.read()?),
            "summary" => run.summary = Some(line.read()?),
            "synced" | "bound" | "unbound" | "recovered" | "verified" => {
                let kind = line.kind().to_owned();
                run.done.push((kind, line.read()?));
            }
            "finding" => return Err(other("ram doctor")),
            "disk" | "created" | "destroyed" => return Err(other("ram disk")),
            "pinned" | "unpinned" => return Err(other("ram pin")),
            "plan" => return Err(other("ram bind --dry-run")),
            _ => lines.pass_over(),
        }
    }
    Ok(run)
}

/// The error of a command that reports something else than folders.
fn other(command: &str) -> ReadError {
    ReadError::OtherCommand(command.to_owned())
}
