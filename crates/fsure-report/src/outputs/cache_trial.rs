//! The result of `bench/uncached.py`: programs that read and write much, each run in several
//! ways, and what was in memory afterwards.

use std::io::BufRead;

use serde::Deserialize;

use super::lines::OutputLines;
use fsure_measure::results::ReadError;

/// Trials that are kept.
const TRIALS_MAX: usize = 200;

/// Programs in several ways.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CacheTrialRun {
    /// The trials in their order.
    pub(crate) trials: Vec<CacheTrial>,
    /// The last line; `None` if the run was cut off.
    pub(crate) summary: Option<CacheTrialTotals>,
}

/// A program in one way.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct CacheTrial {
    pub(crate) program: String,
    pub(crate) way: String,
    /// Runs of which the figures are the medians: half of them with the other program's file read
    /// once before, and half with it read three times.
    pub(crate) runs: u64,
    /// Runs in which the system killed the program; 0 in older results. If there are any, the
    /// result leaves out the figures of the runs.
    pub(crate) killed_runs: u64,
    /// A sentence on the machine.
    pub(crate) note: Option<String>,
    /// The kernel; empty in older results.
    pub(crate) kernel: String,
    /// Time until all was on storage.
    pub(crate) seconds: f64,
    /// This time beside that of the plain way in the same round, with its 95 % interval.
    pub(crate) beside_plain: Option<f64>,
    pub(crate) beside_plain_low: Option<f64>,
    pub(crate) beside_plain_high: Option<f64>,
    /// Memory that all had together.
    pub(crate) memory_bytes: u64,
    /// Bytes of its own files that were in memory afterwards.
    pub(crate) left_bytes: u64,
    /// Bytes of the other program's file, all in memory before.
    pub(crate) others_bytes: u64,
    /// Bytes of them that were in memory afterwards, if that program had read them once.
    pub(crate) others_kept_bytes: u64,
    pub(crate) others_kept_low_bytes: u64,
    pub(crate) others_kept_high_bytes: u64,
    /// The same, if it had read them three times.
    pub(crate) others_thrice_kept_bytes: u64,
    pub(crate) others_thrice_kept_low_bytes: u64,
    pub(crate) others_thrice_kept_high_bytes: u64,
    /// Time in which the other program read its file again, if it had read it once, or three times;
    /// `None` in older results.
    pub(crate) others_again_seconds: Option<f64>,
    pub(crate) others_again_low_seconds: Option<f64>,
    pub(crate) others_again_high_seconds: Option<f64>,
    pub(crate) others_thrice_again_seconds: Option<f64>,
    pub(crate) others_thrice_again_low_seconds: Option<f64>,
    pub(crate) others_thrice_again_high_seconds: Option<f64>,
}

/// The share of a file that was kept in memory, from 0 to 1: the median of some runs, and the least
/// and the most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct KeptShare {
    pub(crate) median: f64,
    pub(crate) range: (f64, f64),
}

impl CacheTrial {
    /// True if the program was run, and not killed.
    pub(crate) fn has_figures(&self) -> bool {
        self.runs > 0 && self.killed_runs == 0
    }

    /// The share of the other program's file that was kept, if that had been read once; `None` if
    /// the program was killed, or not run.
    pub(crate) fn kept(&self) -> Option<KeptShare> {
        self.share([
            self.others_kept_bytes,
            self.others_kept_low_bytes,
            self.others_kept_high_bytes,
        ])
    }

    /// The same, if it had been read three times.
    pub(crate) fn thrice_kept(&self) -> Option<KeptShare> {
        self.share([
            self.others_thrice_kept_bytes,
            self.others_thrice_kept_low_bytes,
            self.others_thrice_kept_high_bytes,
        ])
    }

    /// Least and most of the times to read the file again, if that had been read once.
    pub(crate) fn again_range(&self) -> Option<(f64, f64)> {
        self.others_again_low_seconds.zip(self.others_again_high_seconds)
    }

    /// The same, if it had been read three times.
    pub(crate) fn thrice_again_range(&self) -> Option<(f64, f64)> {
        self.others_thrice_again_low_seconds.zip(self.others_thrice_again_high_seconds)
    }

    fn share(&self, bytes: [u64; 3]) -> Option<KeptShare> {
        let share = |kept: u64| match self.others_bytes {
            0 => 0.0,
            bytes => kept as f64 / bytes as f64,
        };
        let [median, low, high] = bytes.map(share);
        self.has_figures().then_some(KeptShare { median, range: (low, high) })
    }
}

/// The last line.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct CacheTrialTotals {
    pub(crate) trials: u64,
    pub(crate) seconds: f64,
    pub(crate) exit_code: u8,
}

/// Reads the lines of a run.
pub(super) fn read(lines: &mut OutputLines<impl BufRead>) -> Result<CacheTrialRun, ReadError> {
    let mut run = CacheTrialRun::default();
    while let Some(line) = lines.take()? {
        match line.kind() {
            "cache-trial" if run.trials.len() < TRIALS_MAX => run.trials.push(line.read()?),
            "cache-trial" => {}
            "summary" => run.summary = Some(line.read()?),
            _ => lines.pass_over(),
        }
    }
    Ok(run)
}
