//! The lines of `speed --tree`.

use serde::{Deserialize, Serialize};

use super::P99_COUNT_MIN;

/// One way of reading the files of volumes, as it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TreeWay {
    /// In words: `past the cache`, `through the cache`, `from the cache`,
    /// `through a purged cache`.
    pub name: String,
    /// Bytes that were asked for of each volume.
    pub wanted_bytes: u64,
    /// Readers that were asked for; `None` for the number that suits each device.
    pub wanted_readers: Option<usize>,
    /// One line on what was truly measured.
    pub measured: String,
    /// Median rate over the runs, of all volumes together, in MiB/s.
    pub median: f64,
    /// Lower end of the 95 % confidence interval of the median.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Every counted run, in the order made, in MiB/s.
    pub samples: Vec<f64>,
    /// The run that went before and is not counted, in MiB/s.
    pub warm_up: Vec<f64>,
    /// Bytes read per run, of all volumes together.
    pub bytes: u64,
    /// Processor seconds of this process in the program itself, per GiB.
    pub user_s_per_gib: Option<f64>,
    /// Processor seconds that the kernel spent for it, per GiB.
    pub system_s_per_gib: Option<f64>,
    /// Bytes that the devices were asked to read in the counted runs, by their own counters.
    pub device_read_bytes: Option<u64>,
    /// The volumes, read at the same time.
    pub volumes: Vec<TreeVolume>,
    /// Time of one run: seconds since its beginning, MiB/s since the point before, and bytes
    /// of files in the page cache then, if the system reports them.
    pub points: Vec<(f64, f64, Option<u64>)>,
    /// Bytes of memory that the page cache could have at most.
    pub memory_bytes: Option<u64>,
    /// Seconds after which next to no memory was free in that run; `None` if there always was.
    pub full_at_s: Option<f64>,
    /// Bytes of the files that were in the page cache after the last run.
    pub left_bytes: Option<u64>,
    /// Times that the page cache was emptied in the counted runs; `None` if it was left alone.
    pub purges: Option<u64>,
    /// Seconds that emptying it took in the counted runs.
    pub purge_seconds: Option<f64>,
    /// The program that read its own files meanwhile.
    pub bystander: Option<Bystander>,
}

/// One of the volumes that were read at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TreeVolume {
    /// Its path as text.
    pub target: String,
    /// True if the files are those of its record, false if they are those of a walk.
    pub is_recorded: bool,
    /// Files read per run.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Readers that it had.
    pub readers: usize,
    /// Median rate over the runs, in MiB/s.
    pub mib_per_s: f64,
}

/// A program that reads its own files again and again while a volume is read.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bystander {
    /// Bytes of its files, all of them in memory at the beginning of each run.
    pub hot_bytes: u64,
    /// Bytes of them that were no longer in memory at the end of the last run.
    pub evicted_bytes: Option<u64>,
    /// Reads in the counted runs.
    pub reads: u64,
    /// Bytes of each read.
    pub read_bytes: u64,
    /// Median time of a read, in microseconds.
    pub median_us: f64,
    /// Time that 99 of 100 reads did not exceed, in microseconds.
    pub p99_us: f64,
    /// The longest, in microseconds.
    pub max_us: f64,
}

impl Bystander {
    /// Returns the time that 99 of 100 reads did not exceed, in microseconds, if there are
    /// enough reads for one.
    pub fn known_p99_us(&self) -> Option<f64> {
        (self.reads >= P99_COUNT_MIN).then_some(self.p99_us)
    }
}

/// The price of reading through the page cache in place of past it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CacheCost {
    /// Bytes that were asked for of each volume.
    pub wanted_bytes: u64,
    /// Readers that were asked for; `None` for the number that suits each device.
    pub wanted_readers: Option<usize>,
    /// Median rate past the page cache, in MiB/s.
    pub potential_mib_s: f64,
    /// Median rate through it, in MiB/s.
    pub actual_mib_s: f64,
    /// Loss of the rate, in percent; negative if the page cache is faster. Median of the losses
    /// of each round.
    pub loss_percent: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Rounds.
    pub runs: usize,
    /// Seconds of the shorter of the two, as the median of its runs.
    pub run_seconds: f64,
    /// Processor time through the page cache over that past it.
    pub cpu_ratio: Option<f64>,
    /// The answer.
    pub verdict: CacheVerdict,
}

/// The answer to the question if it matters on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheVerdict {
    /// Reading through the page cache is slower.
    Matters,
    /// No difference was seen.
    NoDifference,
    /// Reading through the page cache is faster.
    Faster,
    /// There were too few runs for an answer, or they were too short or differed too much.
    Unsure,
}
