//! The lines of the ladder.

use serde::{Deserialize, Serialize};

/// One step of the ladder: its median over the runs, how sure that is, and
/// what was truly measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rung {
    /// In words: `void`, `memory copy`, `hash blake3`, `disk read direct`.
    pub name: String,
    /// The folder measured, as text; `memory` where there is none.
    pub target: String,
    /// `MiB/s`, `files/s`.
    pub unit: String,
    /// Median over the runs, in `unit`.
    pub median: f64,
    /// Lower end of the 95 % confidence interval of the median.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Runs counted.
    pub runs: usize,
    /// One line on what was truly measured.
    pub measured: String,
    /// Every counted run, in the order made, in `unit`.
    pub samples: Vec<f64>,
    /// The run or runs that went before and are not counted, in `unit`.
    pub warm_up: Vec<f64>,
    /// Places in `samples` that lie far from the others.
    pub outliers: Vec<usize>,
    /// Bytes moved per run; files for rungs in `files/s`.
    pub amount: u64,
    /// Processor seconds of this process per GiB, user and system; `None` for
    /// rungs that count files.
    pub cpu_s_per_gib: Option<f64>,
    /// Bytes the device was asked to read in the counted runs, by its own
    /// counter, and `None` where there is none.
    pub device_read_bytes: Option<u64>,
    /// Bytes written to the device in the counted runs.
    pub device_written_bytes: Option<u64>,
    /// Flushes sent to the device in the counted runs.
    pub device_flushes: Option<u64>,
}

/// A rung or method that could not be measured here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NotRun {
    /// The rung or method.
    pub name: String,
    /// The folder, or `memory`.
    pub target: String,
    /// Reason, and what would make the measurement possible.
    pub why: String,
}

/// Throughput over time while a set larger than the cache was read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// `read cached`, `read uncached`.
    pub name: String,
    /// The folder.
    pub target: String,
    /// One line on what was truly measured.
    pub measured: String,
    /// Seconds since the beginning, and MiB/s since the point before.
    pub points: Vec<(f64, f64)>,
    /// Bytes read.
    pub bytes: u64,
    /// Memory that the page cache could use, in bytes.
    pub cache_bytes: u64,
    /// MiB/s over all of it.
    pub mib_per_s: f64,
    /// Processor seconds of this process per GiB.
    pub cpu_s_per_gib: f64,
    /// Pages that the reading evicted from the page cache, if that could be measured.
    pub eviction: Option<Eviction>,
}

/// Effect of the reading on pages of other files in the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Eviction {
    /// Bytes that were in memory before.
    pub before_bytes: u64,
    /// Bytes of them that still were afterwards.
    pub after_bytes: u64,
    /// Bytes of what was read that were left in memory.
    pub left_bytes: u64,
}

/// Speed of `verify` relative to the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// The folder.
    pub target: String,
    /// Rate at which `verify` would read and hash, in MiB/s.
    pub verify_mib_s: f64,
    /// Rate of the device, in MiB/s.
    pub device_mib_s: f64,
    /// The one of the other.
    pub percent: f64,
    /// Limiting factor: `the device`, `the hash`, `the cores` or, if the file was too
    /// short to determine it, `its beginning and end`.
    pub limit: String,
}
