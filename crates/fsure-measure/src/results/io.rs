//! The lines of `fsure speed --io`: random requests, writes until a drive's fast cache is
//! used up, and reads over the area of a device.

use serde::{Deserialize, Serialize};

/// Random requests of one size and one direction, so many at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RandomLine {
    /// `random read`, `random write`.
    pub name: String,
    /// The folder.
    pub target: String,
    /// Requests at a time.
    pub queue_depth: usize,
    /// Bytes of each.
    pub block_bytes: u64,
    /// Median over the turns, in requests per second.
    pub iops: f64,
    /// Lower end of the 95 % confidence interval of the median.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The same median in MiB per second.
    pub mib_per_s: f64,
    /// Median time of a request, in microseconds.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
    /// Requests in the counted turns.
    pub count: u64,
    /// Requests per second in each counted turn, in the order made.
    pub samples: Vec<f64>,
    /// The same of the turn that went before and is not counted.
    pub warm_up: Vec<f64>,
    /// Upper end of each bucket in microseconds, and the requests in it; buckets without any
    /// are left out.
    pub histogram: Vec<(f64, u64)>,
    /// Bytes that the device was asked to read in the counted turns, by its own counter;
    /// `None` where there is none.
    pub device_read_bytes: Option<u64>,
    /// Bytes written to the device in the counted turns.
    pub device_written_bytes: Option<u64>,
    /// One line on what was truly measured.
    pub measured: String,
}

/// The reason why a sustained write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SustainedEnd {
    /// The rate dropped, and was measured for long enough afterwards.
    Drop,
    /// All space that might be used was.
    Space,
    /// The budget was spent.
    Budget,
    /// The user stopped it.
    Interrupted,
    /// A request failed; a warning has the reason.
    Failed,
}

/// Writes over time, until the drive's fast cache is used up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SustainedLine {
    /// `sustained write`.
    pub name: String,
    /// The folder.
    pub target: String,
    /// Seconds since the beginning, and MiB/s since the point before.
    pub points: Vec<(f64, f64)>,
    /// Bytes written.
    pub bytes: u64,
    /// MiB/s over all of it.
    pub mib_per_s: f64,
    /// Median of the points before the drop, in MiB/s; of all points without a drop.
    pub before_mib_s: f64,
    /// Median of the points behind the drop; `None` without one.
    pub after_mib_s: Option<f64>,
    /// Bytes written before the drop, which is what the fast cache took; `None` without one.
    pub fast_cache_bytes: Option<u64>,
    /// Seconds at which the rate dropped.
    pub drop_s: Option<f64>,
    /// The lowest point, in MiB/s.
    pub slowest_mib_s: f64,
    /// Reason for the end.
    pub end: SustainedEnd,
    /// Bytes written to the device, by its own counter; `None` where there is none.
    pub device_written_bytes: Option<u64>,
    /// One line on what was truly measured.
    pub measured: String,
}

/// The speed at one place of a device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AreaPoint {
    /// Bytes from the beginning of the device.
    pub at_bytes: u64,
    /// Median over the passes, in MiB/s; `None` if the place could not be read in some pass.
    pub mib_per_s: Option<f64>,
    /// The slowest pass.
    pub low: Option<f64>,
    /// The fastest pass.
    pub high: Option<f64>,
}

/// Reads over the area of a device, from its beginning to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AreaLine {
    /// `area read`.
    pub name: String,
    /// The folder or device that was named.
    pub target: String,
    /// The device.
    pub device: String,
    /// Its size.
    pub device_bytes: u64,
    /// Bytes that are read at each place in each pass.
    pub place_bytes: u64,
    /// Passes over all places.
    pub passes: usize,
    /// The places, in their order on the device.
    pub points: Vec<AreaPoint>,
    /// Median over all places, in MiB/s.
    pub median_mib_s: f64,
    /// The slowest place.
    pub slowest_mib_s: f64,
    /// The fastest place.
    pub fastest_mib_s: f64,
    /// Median of the first tenth of the device, in MiB/s.
    pub first_tenth_mib_s: f64,
    /// Median of its last tenth. A disk with heads is slower there.
    pub last_tenth_mib_s: f64,
    /// Places that could not be read.
    pub unreadable: u64,
    /// Bytes that the device was asked to read, by its own counter; `None` where there is
    /// none.
    pub device_read_bytes: Option<u64>,
    /// One line on what was truly measured.
    pub measured: String,
}
