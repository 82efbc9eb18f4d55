//! The lines of the price of a flush.

use serde::{Deserialize, Serialize};

use super::P99_COUNT_MIN;
use crate::flush_verdict::FlushFindingId;

/// One layer of the storage below a path. What could not be known says so in
/// its facts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayerLine {
    /// The path measured.
    pub target: String,
    /// `file system`, `partition`, `loop`, `md`, `dm`, `disk`.
    pub layer: String,
    /// `ext4`, `vda1`, `nvme0n1`.
    pub name: String,
    /// Name and value, in the order in which to show them: `mount options`,
    /// `model`, `write cache`, `FUA`, `rotational`, `transport`.
    pub facts: Vec<(String, String)>,
}

/// Cost of one way to make a write durable, and what it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MethodLine {
    /// `write only`, `fsync`, `fdatasync`, `O_DSYNC`, ...
    pub name: String,
    /// The path measured.
    pub target: String,
    /// Operations per second.
    pub ops: f64,
    /// Median latency of one operation, write and flush together, in
    /// microseconds.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// The longest.
    pub max_us: f64,
    /// 10th percentile.
    pub p10_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// Operations measured.
    pub count: u64,
    /// KiB written to the device per operation, by the device's own counter;
    /// `null` where there is none.
    pub device_kib_per_op: Option<f64>,
    /// Flushes sent to the device per operation, by its counter.
    pub flushes_per_op: Option<f64>,
    /// Operations that really reached the device, in words: `data and a flush`.
    pub reached: String,
    /// The histogram: upper end of each bucket in microseconds, and how many
    /// operations fell into it; buckets without any are left out.
    pub histogram: Vec<(f64, u64)>,
    /// The mean time of an operation in each turn, in the order made, in microseconds: ratios
    /// to other results, and how sure these are, follow from them. Empty in results that an
    /// older program has stored.
    #[serde(default)]
    pub turns_us: Vec<f64>,
}

impl MethodLine {
    /// Returns the 99th percentile in microseconds, if there are enough operations for one.
    pub fn known_p99_us(&self) -> Option<f64> {
        (self.count >= P99_COUNT_MIN).then_some(self.p99_us)
    }
}

/// One quantity over another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// `commits per flush`, `threads`, `flush after dirty bytes`.
    pub name: String,
    /// The path measured.
    pub target: String,
    /// The quantity `x`: `commits per flush`.
    pub x: String,
    /// The quantity `y`, with its unit: `commits/s`, `us`.
    pub y: String,
    /// In the order of `x`.
    pub points: Vec<Point>,
    /// One line on what was truly measured.
    pub measured: String,
}

/// A point of a curve: the median, and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// In the unit of the curve's `x`.
    pub x: f64,
    /// Median, in the unit of `y`.
    pub y: f64,
    /// Lower end of the 95 % confidence interval of the median.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Flushes sent to the device per operation, by its counter.
    pub flushes_per_op: Option<f64>,
}

/// Result of a measurement against a database's own mark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// `etcd`, `postgres`, `sqlite`.
    pub name: String,
    /// The path measured.
    pub target: String,
    /// `None` where the source gives no mark.
    pub passed: Option<bool>,
    /// Description of what was done, the result, and the mark with its source.
    pub words: String,
    /// Name and value of each figure.
    pub figures: Vec<(String, f64)>,
}

/// Verdict on whether to believe the flush.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// The path measured.
    pub target: String,
    /// `FREE_FLUSH`, `PLAUSIBLE`, ...
    pub id: String,
    /// `ok`, `suspicious`, `bad`, `not measured`.
    pub grade: String,
    /// Meaning of the verdict, and what to do now.
    pub words: String,
}

impl Claim {
    /// The verdict and its grade: `FREE_FLUSH (suspicious)`. What was not measured has one name
    /// for both.
    pub fn title(&self) -> String {
        match self.id == FlushFindingId::NotMeasured.name() {
            true => self.id.clone(),
            false => format!("{} ({})", self.id, self.grade),
        }
    }
}
