//! Options for the load that reading puts on the storage: threads, depth, rate and
//! timeout.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use fsure_integrity::UserConfig;
use fsure_integrity::scan::{DEPTH_MAX, IoOptions, RateLimiter, THREADS_MAX};

use super::headings::HOW_TO_READ;

/// Options for the load that reading puts on the storage.
#[derive(Args)]
pub(crate) struct EffortArgs {
    /// Readers for each device [default: what suits it: one at a time on a
    /// disk with heads, twice the cores on one without, 32 over a network]
    #[arg(short = 'j', long, value_name = "N", help_heading = HOW_TO_READ,
          env = "FSURE_THREADS", hide_env_values = true,
          value_parser = clap::value_parser!(u16).range(1..=THREADS_MAX as i64))]
    threads: Option<u16>,
    /// Small files that each reader reads with one call [default: as many as fit]
    #[arg(long, alias = "depth", value_name = "N", help_heading = HOW_TO_READ,
          env = "FSURE_QUEUE_DEPTH", hide_env_values = true,
          value_parser = clap::value_parser!(u16).range(1..=DEPTH_MAX as i64))]
    queue_depth: Option<u16>,
    /// Read no more than this in a second, such as 200MiB/s; 0 for no limit [default: no
    /// limit]
    #[arg(long, visible_alias = "bwlimit", value_name = "SIZE", help_heading = HOW_TO_READ,
          env = "FSURE_RATE", hide_env_values = true, value_parser = RateLimiter::parse)]
    rate: Option<u64>,
    /// Give a file up when the storage does not answer for so long, such as
    /// 90s or 5m [default: 2m]
    #[arg(long, value_name = "TIME", help_heading = HOW_TO_READ,
          env = "FSURE_TIMEOUT", hide_env_values = true, value_parser = IoOptions::parse_timeout)]
    timeout: Option<Duration>,
}

impl EffortArgs {
    /// The same as plain data, with the user's own defaults.
    pub(crate) fn effort(&self, user: &UserConfig) -> IoOptions {
        IoOptions {
            threads: self.threads.or(user.threads).map(usize::from),
            depth: self.queue_depth.or(user.queue_depth).map(usize::from),
            rate: Arc::new(RateLimiter::new(self.rate.or(user.rate))),
            timeout: self.timeout.or(user.timeout).unwrap_or(IoOptions::default().timeout),
        }
    }
}
