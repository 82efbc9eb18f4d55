//! The output of `crash`: cuts, and what each left.

use std::io::BufRead;

use serde::Deserialize;

use super::lines::OutputLines;
use fsure_measure::results::ReadError;

/// Cuts with a loss that are kept; all are counted.
const LOSSES_MAX: usize = 1_000;

/// Cuts that are kept for the picture.
const CUTS_MAX: usize = 1_000;

/// Cuts of one or more programs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CrashRun {
    /// Cuts, without those of twins.
    pub(crate) cuts: Vec<CutRow>,
    /// Those of them that have shown a loss.
    pub(crate) losses: Vec<CutRow>,
    /// Results of each drive, or of each cell of the matrix.
    pub(crate) drives: Vec<DriveResult>,
    /// Behaviour of file systems after a write that failed.
    pub(crate) after_errors: Vec<AfterErrorRow>,
    /// The last line; `None` if the run was cut off.
    pub(crate) summary: Option<CrashTotals>,
}

/// One cut.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct CutRow {
    /// The workload, if it is a built-in one.
    pub(crate) workload: Option<String>,
    /// Its number on this drive.
    pub(crate) n: u64,
    /// The drive.
    pub(crate) drive: String,
    /// The file system, or `folder`.
    pub(crate) fs: String,
    /// The variant of the cut.
    pub(crate) variant: String,
    /// Acknowledged and not there.
    pub(crate) lost: Option<u64>,
    /// Age of the oldest acknowledgement that was lost, in milliseconds.
    pub(crate) oldest_lost_ms: Option<u64>,
    /// `survived`, `lost`, `corrupt`, `unmountable`, `harness-broken`.
    pub(crate) state: String,
    /// True if it is one of the twin's cuts.
    pub(crate) twin: bool,
    /// Message of the check or of `mount`.
    pub(crate) detail: Option<String>,
    /// The fewest syncs with which nothing would have been lost.
    pub(crate) missing_syncs: Vec<SyncRow>,
}

/// A sync that a program left out.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct SyncRow {
    /// `folder` or `file`.
    pub(crate) of: String,
    /// Its path.
    pub(crate) path: String,
}

/// All cuts of a program on a drive.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct DriveResult {
    /// The workload; empty outside the matrix.
    pub(crate) workload: String,
    /// The drive.
    pub(crate) drive: String,
    /// The file system, or `folder`.
    pub(crate) fs: String,
    /// Options with which it is mounted; empty for none.
    pub(crate) mount_options: String,
    /// Time of a flush of nothing, in milliseconds; `None` if it takes none or is not known.
    pub(crate) flush_ms: Option<f64>,
    /// Longest time from the first acknowledgement after a check to the next cut, in milliseconds;
    /// `None` in older results, and if each flush is checked.
    pub(crate) pause_max_ms: Option<f64>,
    pub(crate) cuts: u64,
    pub(crate) survived: u64,
    pub(crate) lost: u64,
    pub(crate) corrupt: u64,
    pub(crate) unmountable: u64,
    pub(crate) harness_broken: u64,
    /// The most that was acknowledged before a cut and not there.
    pub(crate) most_lost: u64,
    /// The greatest age of a lost acknowledgement, in milliseconds.
    pub(crate) oldest_lost_ms: Option<u64>,
    /// The acknowledgements a second until the cut before which most was acknowledged.
    pub(crate) acked_per_second: Option<f64>,
    /// True if the same run on a lying drive showed a loss.
    pub(crate) twin_lost: Option<bool>,
    /// The expected result, in words.
    pub(crate) expected: String,
    /// True if the result is the expected one.
    pub(crate) as_expected: Option<bool>,
}

impl DriveResult {
    /// Cuts that have shown a loss.
    pub(crate) fn losses(&self) -> u64 {
        self.lost + self.corrupt + self.unmountable
    }
}

/// Behaviour of a file system after a write that failed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct AfterErrorRow {
    /// The file system.
    pub(crate) fs: String,
    /// True if a flush reported success although the content is not on the medium.
    pub(crate) forgets: bool,
    /// True if any flush reported the failure.
    pub(crate) reported: bool,
}

/// The last line.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct CrashTotals {
    pub(crate) seed: u64,
    pub(crate) cuts: u64,
    pub(crate) losses: u64,
    pub(crate) harness_broken: u64,
    pub(crate) seconds: f64,
    pub(crate) unexpected: Option<u64>,
    pub(crate) exit_code: u8,
}

/// Reads the lines of a run.
pub(super) fn read(lines: &mut OutputLines<impl BufRead>) -> Result<CrashRun, ReadError> {
    let mut run = CrashRun::default();
    while let Some(line) = lines.take()? {
        match line.kind() {
            "cut" => {
                let cut: CutRow = line.read()?;
                if cut.twin {
                    continue;
                }
                if run.cuts.len() < CUTS_MAX {
                    run.cuts.push(cut.clone());
                }
                if cut.state != "survived" && run.losses.len() < LOSSES_MAX {
                    run.losses.push(cut);
                }
            }
            "drive" | "cell" => run.drives.push(line.read()?),
            "flush-after-error" => run.after_errors.push(line.read()?),
            "summary" => run.summary = Some(line.read()?),
            _ => lines.pass_over(),
        }
    }
    Ok(run)
}
