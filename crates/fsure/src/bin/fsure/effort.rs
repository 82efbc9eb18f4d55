//! How hard to read, on the command line.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use fsure::scan::{DEPTH_MAX, Effort, Rate, THREADS_MAX};
use fsure::words::units;

/// How hard to read.
#[derive(Args)]
#[command(next_help_heading = "Reading")]
pub(crate) struct EffortArgs {
    /// Readers for each device [default: what suits it: one at a time on a
    /// disk with heads, twice the cores on one without, 32 over a network]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=THREADS_MAX as i64))]
    threads: Option<u16>,
    /// Small files that each reader reads with one call [default: as many as fit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=DEPTH_MAX as i64))]
    depth: Option<u16>,
    /// Read no more than this in a second, such as 200MiB/s [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = rate)]
    rate: Option<u64>,
    /// Give a file up when the storage does not answer for so long, such as
    /// 90s or 5m [default: 2m]
    #[arg(long, value_name = "TIME", value_parser = time)]
    timeout: Option<Duration>,
}

impl EffortArgs {
    /// The same as plain data.
    pub(crate) fn effort(&self) -> Effort {
        Effort {
            threads: self.threads.map(usize::from),
            depth: self.depth.map(usize::from),
            rate: Arc::new(Rate::new(self.rate)),
            patience: self.timeout.unwrap_or(Effort::default().patience),
        }
    }
}

fn rate(text: &str) -> Result<u64, String> {
    let size = units::parse_size(text.strip_suffix("/s").unwrap_or(text));
    size.filter(|size| *size > 0).ok_or_else(|| "a size such as 200MiB/s or 50MB/s".to_owned())
}

fn time(text: &str) -> Result<Duration, String> {
    let time = units::parse_span(text).filter(|time| *time >= Duration::from_secs(1));
    time.ok_or_else(|| "a time of at least 1s, such as 90s, 5m or 1h".to_owned())
}
