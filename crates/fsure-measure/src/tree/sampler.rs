//! Samples a run while it goes on: bytes read so far, and how full the page cache is. The
//! samples are thinned out as the run gets longer, so that one of a day has as many as one of a
//! second.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use fsure_core::units;
use fsure_os::memory_info::{CacheFill, CacheGauge};

/// Pause between two samples at the beginning.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(20);
/// Samples from which on every second one is left out, and the pause is doubled.
const SAMPLES_MAX: usize = 400;
/// Pause between two reports of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// Memory is full if less than this share of it is free: what Linux keeps free for itself is
/// about one percent of it.
const FREE_SHARE_MIN: f64 = 0.03;

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample {
    at: Duration,
    bytes: u64,
    fill: Option<CacheFill>,
}

/// The samples of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Samples {
    kept: Vec<Sample>,
    full_at: Option<Duration>,
}

impl Samples {
    /// Seconds, MiB/s since the point before, and bytes in the page cache.
    pub(super) fn points(&self) -> Vec<(f64, f64, Option<u64>)> {
        let steps = self.kept.iter().zip(self.kept.iter().skip(1));
        let point = |(before, now): (&Sample, &Sample)| {
            let seconds = (now.at - before.at).as_secs_f64();
            let rate = units::mib_per_second(now.bytes - before.bytes, seconds.max(1e-9));
            (now.at.as_secs_f64(), rate, now.fill.map(|fill| fill.cached))
        };
        steps.map(point).collect()
    }

    /// Time at which next to no memory was free; `None` if there always was.
    pub(super) fn full_at(&self) -> Option<Duration> {
        self.full_at
    }

    /// Bytes of memory that there were for the page cache.
    pub(super) fn memory_bytes(&self) -> Option<u64> {
        self.kept.first()?.fill.map(|fill| fill.total)
    }

    fn take(&mut self, sample: Sample) {
        if self.full_at.is_none() && sample.fill.is_some_and(is_full) {
            self.full_at = Some(sample.at);
        }
        self.kept.push(sample);
    }

    /// Leaves out every second sample; true if there were too many.
    fn thin_out(&mut self) -> bool {
        let is_due = self.kept.len() >= SAMPLES_MAX;
        if is_due {
            let mut place = 0;
            self.kept.retain(|_| {
                place += 1;
                place % 2 == 1
            });
        }
        is_due
    }
}

fn is_full(fill: CacheFill) -> bool {
    (fill.free as f64) < fill.total as f64 * FREE_SHARE_MIN
}

/// Samples the sum of `counts` until `stop` is closed. `progress` receives the sum about once a
/// second.
pub(super) fn sample(
    counts: &[AtomicU64],
    gauge: &CacheGauge,
    stop: &Receiver<()>,
    progress: &dyn Fn(u64),
) -> Samples {
    let began = Instant::now();
    let (mut samples, mut interval) = (Samples::default(), SAMPLE_INTERVAL);
    let mut reported = Duration::ZERO;
    loop {
        let bytes = counts.iter().map(|count| count.load(Ordering::Relaxed)).sum();
        let at = began.elapsed();
        samples.take(Sample { at, bytes, fill: gauge.read() });
        if at - reported >= PROGRESS_INTERVAL {
            reported = at;
            progress(bytes);
        }
        if samples.thin_out() {
            interval *= 2;
        }
        if stop.recv_timeout(interval) == Err(RecvTimeoutError::Disconnected) {
            let bytes = counts.iter().map(|count| count.load(Ordering::Relaxed)).sum();
            samples.take(Sample { at: began.elapsed(), bytes, fill: gauge.read() });
            return samples;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_at(seconds: u64, mib: u64, free: u64) -> Sample {
        let fill = Some(CacheFill { cached: mib << 20, free, total: 1000 });
        Sample { at: Duration::from_secs(seconds), bytes: mib << 20, fill }
    }

    #[test]
    fn rates_are_those_between_two_samples() {
        let mut samples = Samples::default();
        for sample in [sample_at(0, 0, 500), sample_at(1, 10, 31), sample_at(3, 50, 29)] {
            samples.take(sample);
        }
        let points = samples.points();
        assert_eq!(points, [(1.0, 10.0, Some(10 << 20)), (3.0, 20.0, Some(50 << 20))]);
        assert_eq!(samples.full_at(), Some(Duration::from_secs(3)));
        assert_eq!(samples.memory_bytes(), Some(1000));
    }

    #[test]
    fn a_long_run_has_no_more_samples_and_all_of_its_bytes() {
        let mut samples = Samples::default();
        for second in 0..100_000 {
            samples.take(sample_at(second, second, 500));
            samples.thin_out();
            assert!(samples.kept.len() < SAMPLES_MAX);
        }
        assert!(samples.points().iter().all(|point| (point.1 - 1.0).abs() < 1e-9));
        assert_eq!(samples.full_at(), None);
    }
}
