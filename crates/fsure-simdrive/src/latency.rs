//! Time that requests to a simulated drive take: from figures that were measured on real
//! drives, so that statements about the speed of a drive can be tested on known ones.

use std::time::Duration;

/// The time that requests take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// Time of a write until it is acknowledged.
    pub write: Duration,
    /// Time of a flush of nothing.
    pub flush: Duration,
    /// Bytes per second at which a flush empties the cache; 0: at once.
    pub bytes_per_s: u64,
}

impl Latency {
    /// No time at all.
    pub const NONE: Self = Self { write: Duration::ZERO, flush: Duration::ZERO, bytes_per_s: 0 };

    /// A disk of 7200 revolutions per minute: a flush waits for half of one and
    /// a seek.
    pub const DISK_7200: Self = Self {
        write: Duration::from_micros(60),
        flush: Duration::from_micros(4_170 + 8_500),
        bytes_per_s: 180_000_000,
    };

    /// A consumer's NVMe drive: 0.9 to 5.6 ms were measured (T. Poder, 990 Pro).
    pub const CONSUMER_NVME: Self = Self {
        write: Duration::from_micros(15),
        flush: Duration::from_micros(1_600),
        bytes_per_s: 1_500_000_000,
    };

    /// Apple's drive: 46 flushed writes per second (H. Martin, 2022).
    pub const APPLE: Self = Self {
        write: Duration::from_micros(17),
        flush: Duration::from_micros(21_700),
        bytes_per_s: 1_500_000_000,
    };

    pub(super) fn of_flush(self, bytes: u64) -> Duration {
        let emptying = match self.bytes_per_s {
            0 => Duration::ZERO,
            rate => Duration::from_secs_f64(bytes as f64 / rate as f64),
        };
        self.flush + emptying
    }
}
