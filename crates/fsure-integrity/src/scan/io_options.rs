//! Settings for the load of reading: number of readers, requests in flight, rate,
//! and timeout. A setting that is not given is chosen by the kind of storage.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fsure_os::batch_read::RING_READS_MAX;
use fsure_os::device::DeviceClass;

use fsure_core::{DeviceReaders, units};

use fsure_core::block_hash::BLOCK;

/// Settings for the load that reading puts on the storage.
#[derive(Clone, Debug)]
pub struct IoOptions {
    /// Readers for each device, 1 to [`THREADS_MAX`]; `None` for the number
    /// that suits the device.
    pub threads: Option<usize>,
    /// Small files that each reader reads with one call, 1 to [`DEPTH_MAX`];
    /// `None` for as many as fit.
    pub depth: Option<usize>,
    /// Limit on the rate of all readers together; shared by the runs that go on
    /// at the same time.
    pub rate: Arc<RateLimiter>,
    /// Longest time that one response of the storage may take before the file
    /// is given up and the reader that waits for it is replaced.
    pub timeout: Duration,
}

/// Bytes asked for at once: what saturates a fast disk with one request in
/// flight, and what uncached reads need to come without reading twice.
pub(super) const CHUNK: u64 = 4 << 20;

/// The most readers for one device.
pub const THREADS_MAX: usize = 256;

/// The most files that one reader reads with one call.
pub const DEPTH_MAX: usize = RING_READS_MAX;

impl IoOptions {
    /// Parses a timeout as the user writes it. The error describes the valid form.
    pub fn parse_timeout(text: &str) -> Result<Duration, String> {
        const FORM: &str = "a time of at least 1s, such as 90s, 5m or 1h";
        let time = units::span_option(text, FORM)?;
        if time < Duration::from_secs(1) { Err(FORM.to_owned()) } else { Ok(time) }
    }
}

impl Default for IoOptions {
    /// A disk retries a bad sector for up to 30 s, and Linux a command that failed
    /// five times: storage that has not responded for two minutes is stuck.
    fn default() -> Self {
        let timeout = Duration::from_secs(120);
        Self { threads: None, depth: None, rate: Arc::new(RateLimiter::new(None)), timeout }
    }
}

/// Numbers of readers, and of files read at once, for one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeviceLimits {
    /// Readers.
    pub(crate) threads: usize,
    /// Small files read with one call.
    pub(crate) batch: usize,
    /// Readers that can be at work at once if none waits for a medium.
    pub(crate) cores: usize,
    /// Readers that may wait for the medium at once; the others hash, or read
    /// from memory.
    pub(crate) heads: usize,
}

impl IoOptions {
    /// Returns the share of a device of that class. `open_files` is the number
    /// of files that may be open, which several devices share.
    pub(crate) fn share(&self, class: DeviceClass, open_files: usize) -> DeviceLimits {
        let DeviceReaders { threads, heads, cores } = DeviceReaders::of(class);
        let threads = self.threads.unwrap_or(threads).clamp(1, THREADS_MAX);
        let batch_max = (open_files / 4 / threads).clamp(1, DEPTH_MAX);
        DeviceLimits {
            threads,
            batch: self.depth.unwrap_or(DEPTH_MAX).clamp(1, batch_max),
            cores,
            heads: self.threads.unwrap_or(heads),
        }
    }

    /// Bytes to request at once: a tenth of a second's worth at a limited rate,
    /// so that it is a steady one, but never less than a block.
    pub(super) fn chunk(&self) -> u64 {
        let steady = self.rate.bytes_per_second.unwrap_or(u64::MAX) / 10;
        (steady / BLOCK * BLOCK).clamp(BLOCK, CHUNK)
    }
}

/// Keeps all readers together below a rate.
#[derive(Debug)]
pub struct RateLimiter {
    bytes_per_second: Option<u64>,
    /// Time at which the bytes handed out so far will have been read at that rate.
    free_at: Mutex<Instant>,
}

impl RateLimiter {
    /// Parses bytes per second as the user writes them. The error describes the valid form.
    pub fn parse(text: &str) -> Result<u64, String> {
        let size = text.strip_suffix("/s").unwrap_or(text).trim();
        // 200 would be 200 bytes, at which a disk takes years.
        let unit = || format!("without a unit it would be bytes: say {size}MiB/s or {size}B/s");
        units::parse_size(size).ok_or_else(|| match units::is_bare_number(size) {
            true => unit(),
            false => "a size with its unit, such as 200MiB/s or 50MB/s, or 0".to_owned(),
        })
    }

    /// So many bytes in a second; `None` or 0 for no limit.
    pub fn new(bytes_per_second: Option<u64>) -> Self {
        let bytes_per_second = bytes_per_second.filter(|rate| *rate > 0);
        Self { bytes_per_second, free_at: Mutex::new(Instant::now()) }
    }

    /// Reserves so many bytes and returns the time at which their read may
    /// begin; `None` for at once.
    pub(super) fn begin_at(&self, bytes: u64) -> Option<Instant> {
        let rate = self.bytes_per_second?;
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = (*free_at).max(Instant::now());
        *free_at = begin + Duration::from_secs_f64(bytes as f64 / rate as f64);
        Some(begin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_reader_at_a_time_waits_for_a_head() {
        let share = IoOptions::default().share(DeviceClass::Rotational(1), 1 << 20);
        assert_eq!(share.heads, 1);
        assert!(share.threads > 1);
        let reported = IoOptions { threads: Some(3), depth: Some(1000), ..IoOptions::default() };
        let share = reported.share(DeviceClass::Rotational(1), 1 << 20);
        assert_eq!((share.threads, share.heads, share.batch), (3, 3, DEPTH_MAX));
        assert_eq!(reported.share(DeviceClass::Remote, 1024).batch, 85);
    }

    #[test]
    fn a_rate_has_a_unit() {
        for (text, rate) in [
            ("200MiB/s", Some(200 << 20)),
            ("50MB", Some(50_000_000)),
            ("1.5 M/s", Some(3 << 19)),
            ("200B/s", Some(200)),
            ("200", None),
            ("200/s", None),
            ("0.5", None),
            ("0MiB/s", Some(0)),
            ("0", Some(0)),
            ("/s", None),
            ("", None),
        ] {
            assert_eq!(RateLimiter::parse(text).ok(), rate, "{text}");
        }
        assert!(RateLimiter::parse("200").unwrap_err().contains("say 200MiB/s"));
    }

    #[test]
    fn a_slow_rate_is_steady() {
        let chunk = |rate| {
            IoOptions { rate: Arc::new(RateLimiter::new(rate)), ..IoOptions::default() }.chunk()
        };
        assert_eq!(chunk(None), CHUNK);
        assert_eq!(chunk(Some(1)), BLOCK);
        assert_eq!(chunk(Some(25 << 20)), 2 * BLOCK);
    }

    #[test]
    fn reads_begin_one_after_the_other() {
        let rate = RateLimiter::new(Some(1000));
        let first = rate.begin_at(500).unwrap();
        assert!(rate.begin_at(500).unwrap() >= first + Duration::from_millis(500));
        assert_eq!(RateLimiter::new(None).begin_at(1), None);
    }
}
