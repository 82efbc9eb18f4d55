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
    /// Runs of which the figures are the medians.
    pub(crate) runs: u64,
    /// Time until all was on storage.
    pub(crate) seconds: f64,
    /// Shortest and longest of these times; `None` in older results.
    pub(crate) seconds_low: Option<f64>,
    pub(crate) seconds_high: Option<f64>,
    /// Memory that all had together.
    pub(crate) memory_bytes: u64,
    /// Bytes of its own files that were in memory afterwards.
    pub(crate) left_bytes: u64,
    /// Bytes of the other program's file, all in memory before.
    pub(crate) others_bytes: u64,
    /// Bytes of them that were in memory afterwards.
    pub(crate) others_kept_bytes: u64,
    /// Least and most of these bytes; `None` in older results.
    pub(crate) others_kept_low_bytes: Option<u64>,
    pub(crate) others_kept_high_bytes: Option<u64>,
    /// Time in which that file was read again; `None` in older results.
    pub(crate) others_seconds: Option<f64>,
    /// Shortest and longest of these times.
    pub(crate) others_seconds_low: Option<f64>,
    pub(crate) others_seconds_high: Option<f64>,
}

impl CacheTrial {
    /// Share of the other program's file that was kept, from 0 to 1.
    pub(crate) fn kept_share(&self) -> f64 {
        self.share(self.others_kept_bytes)
    }

    /// Least and largest share that was kept in a run; `None` in older results.
    pub(crate) fn kept_range(&self) -> Option<(f64, f64)> {
        let bytes = self.others_kept_low_bytes.zip(self.others_kept_high_bytes);
        bytes.map(|(low, high)| (self.share(low), self.share(high)))
    }

    fn share(&self, kept: u64) -> f64 {
        match self.others_bytes {
            0 => 0.0,
            bytes => kept as f64 / bytes as f64,
        }
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
