//! Format of stored measurements: one JSON object per line, the first with the version.
//! Each line is written as soon as it is known, so that a run that is killed keeps what
//! it had. `--json` prints the same lines, so there is one format and not two
//! (`docs/results.md`).
//!
//! These types are the format. They hold numbers and words and know nothing of
//! options, jobs or reports; those come and go.

mod bounded_lines;
mod file;
mod flush;
mod io;
mod machine;
mod monitor;
mod read_error;
mod speed;
mod tree;

use std::path::Path;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde::{Deserialize, Serialize};

pub use bounded_lines::{BoundedLine, BoundedLines, LINE_BYTES_MAX};
pub use file::{ResultWriter, StoredResult, read, read_on};
pub use flush::{Claim, Curve, LayerLine, MethodLine, Point, Profile};
pub use io::{AreaLine, AreaPoint, RandomLine, SustainedEnd, SustainedLine};
pub use machine::{Machine, Noise};
pub use monitor::MeasurementMonitor;
pub use read_error::ReadError;
pub use speed::{Eviction, Limit, NotRun, Rung, Series};
pub use tree::{Bystander, CacheCost, CacheVerdict, TreeVolume, TreeWay};

/// The version of the format. It grows when a line changes its meaning; a
/// reader passes over types of lines and fields that it does not know.
pub const VERSION: u32 = 1;

/// Stands in a result for a name that its user has left out of it.
pub const LEFT_OUT: &str = "(left out)";

/// Operations from which on there is a 99th percentile: of fewer it is the slowest of them.
pub const P99_COUNT_MIN: u64 = 100;

/// The command that measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measurement {
    /// `fsure speed`.
    Speed,
    /// `fsure flush`.
    Flush,
}

/// One line of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ResultLine {
    /// The first line.
    Result(ResultHeader),
    /// A step of the ladder.
    Rung(Rung),
    /// A step of the ladder, or a method, that could not be measured here.
    NotRun(NotRun),
    /// Throughput over time.
    Series(Series),
    /// Speed of `verify` relative to the device.
    Limit(Limit),
    /// One way of reading the files of volumes.
    TreeWay(TreeWay),
    /// The price of reading through the page cache.
    CacheCost(CacheCost),
    /// One layer of the storage below a path, from the file system down.
    Layer(LayerLine),
    /// Cost of one way to make a write durable.
    Method(MethodLine),
    /// One quantity over another: commits per flush, threads, dirty bytes.
    Curve(Curve),
    /// Result of a measurement against a database's own mark.
    Profile(Profile),
    /// Verdict on whether to believe the flush.
    Verdict(Claim),
    /// Random requests at one queue depth.
    Random(RandomLine),
    /// Writes over time, until the drive's fast cache is used up.
    Sustained(SustainedLine),
    /// Reads over the area of a device.
    Area(AreaLine),
    /// Something a person should know, with what to do now.
    Warning {
        /// The sentence.
        #[serde(alias = "message")]
        words: String,
    },
    /// The last line.
    Summary(ResultSummary),
}

/// The first line of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultHeader {
    /// The command that measured.
    pub kind: Measurement,
    /// [`VERSION`] of the program that wrote it.
    pub version: u32,
    /// The program, such as `fsure 0.1.0`.
    pub program: String,
    /// Time at which the run began, RFC 3339 in UTC.
    pub started: String,
    /// The machine on which it was measured.
    pub machine: Machine,
    /// The paths measured, as the other lines name them.
    pub targets: Vec<ResultTarget>,
    /// Options of the run, in words for the user: `size` to `450 MiB`.
    pub setup: Vec<(String, String)>,
}

/// A path that was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultTarget {
    /// As text.
    pub path: String,
    /// Its bytes in base64, if they are not valid UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_bytes: Option<String>,
}

impl ResultTarget {
    /// A path as the lines of a result name it.
    pub fn of(path: &Path) -> Self {
        let bytes = fsure_os::path::bytes(path);
        let path_bytes =
            std::str::from_utf8(&bytes).is_err().then(|| BASE64_STANDARD.encode(&bytes));
        Self { path: path.to_string_lossy().into_owned(), path_bytes }
    }
}

/// The last line of a result. A result without one was cut off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultSummary {
    /// Duration of the run, in seconds.
    pub seconds: f64,
    /// Other activity of the machine.
    pub noise: Noise,
    /// Rungs or methods measured.
    pub measured: u64,
    /// Rungs or methods left out.
    pub not_run: u64,
    /// The exit code that the run ended with.
    pub exit_code: u8,
}
