//! Measuring by slices. Machines are never quiet, and what disturbs one method must
//! disturb all: so each has a short turn, again and again, and the reported figure is
//! the median of its turns. The device's counters are read around each turn; what a
//! method leaves behind is brought to the medium between turns, where it is neither
//! timed nor counted.

use std::io;
use std::time::{Duration, Instant};

use fsure_os::block_stats::{Counters, DeviceCounters};

use crate::stats::{Latency, Spread};

/// Something to be measured.
pub(super) trait Operation {
    /// Does it once; `None` if there is no more of it before [`Self::flush_to_medium`].
    fn operate(&mut self) -> io::Result<Option<SliceResult>>;

    /// Brings all of it to the medium, and makes space for more.
    fn flush_to_medium(&mut self) -> io::Result<()>;
}

/// The result of one operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct SliceResult {
    /// Duration of the operation.
    pub(super) took: Duration,
    /// Number of commits in the operation.
    pub(super) commits: u64,
}

impl SliceResult {
    /// One commit that began then.
    pub(super) fn since(begun: Instant) -> Self {
        Self { took: begun.elapsed(), commits: 1 }
    }
}

/// One turn.
#[derive(Clone, Copy, Debug)]
struct Slice {
    commits: u64,
    seconds: f64,
    p50_us: f64,
    mean_us: f64,
    counters: Option<Counters>,
}

/// A rate that operations do not exceed: so many of them in a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace(pub(super) u32);

impl Pace {
    /// Waits until it is time for the operation behind one that was due at `due`, and returns
    /// that time. One that was late is not made up for by quicker ones.
    fn wait(self, due: Instant, stop: &dyn Fn() -> bool) -> Instant {
        const PIECE: Duration = Duration::from_millis(50);
        let next = (due + Duration::from_secs(1) / self.0).max(Instant::now());
        loop {
            let left = next.saturating_duration_since(Instant::now());
            if left.is_zero() || stop() {
                return next;
            }
            std::thread::sleep(left.min(PIECE));
        }
    }
}

/// All turns of an operation.
#[derive(Clone, Debug, Default)]
pub(super) struct SliceStats {
    pub(super) latency: Latency,
    slices: Vec<Slice>,
}

impl SliceStats {
    /// Adds a turn of at least one operation, and of `span` unless there are no more
    /// of them or `stop` returns true.
    pub(super) fn turn(
        &mut self,
        operation: &mut dyn Operation,
        (span, pace): (Duration, Option<Pace>),
        meter: Option<&DeviceCounters>,
        stop: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        let (mut latency, mut commits) = (Latency::default(), 0);
        let before = meter.map(DeviceCounters::read).transpose()?;
        let begun = Instant::now();
        let mut due = begun;
        while let Some(done) = operation.operate()? {
            latency.record(done.took);
            commits += done.commits;
            // The wait behind the last one belongs to its time, too.
            if let Some(pace) = pace {
                due = pace.wait(due, stop);
            }
            if begun.elapsed() >= span || stop() {
                break;
            }
        }
        let seconds = begun.elapsed().as_secs_f64();
        let after = meter.map(DeviceCounters::read).transpose()?;
        operation.flush_to_medium()?;
        let counters = after.zip(before).map(|(after, before)| after.since(&before));
        if commits > 0 {
            let (p50_us, mean_us) = (latency.quantile_us(0.5), latency.mean_us());
            self.slices.push(Slice { commits, seconds, p50_us, mean_us, counters });
            self.latency.add(&latency);
        }
        Ok(())
    }

    /// Commits per second in the time of all turns; 0 without any.
    pub(super) fn per_second(&self) -> f64 {
        let seconds: f64 = self.slices.iter().map(|slice| slice.seconds).sum();
        let commits: u64 = self.slices.iter().map(|slice| slice.commits).sum();
        if seconds > 0.0 { commits as f64 / seconds } else { 0.0 }
    }

    /// Commits per second of each turn.
    pub(super) fn rates(&self) -> Option<Spread> {
        self.spread(|slice| Some(slice.commits as f64 / slice.seconds))
    }

    /// The median latency of each turn, in microseconds.
    pub(super) fn medians_us(&self) -> Option<Spread> {
        self.spread(|slice| Some(slice.p50_us))
    }

    /// The mean time of an operation in each turn, in the order made, in microseconds. A median
    /// would pass over a drive that stalls at every third one.
    pub(super) fn turns_us(&self) -> Vec<f64> {
        self.slices.iter().map(|slice| slice.mean_us).collect()
    }

    /// Bytes that the device was written per commit: the median of the turns, so that
    /// one in which other processes wrote a lot does not count for more.
    pub(super) fn device_bytes(&self) -> Option<f64> {
        self.per_commit(|counters| Some(counters.written_bytes))
    }

    /// Flushes that the device was sent per commit, likewise.
    pub(super) fn flushes(&self) -> Option<f64> {
        self.per_commit(|counters| counters.flushes)
    }

    /// Bytes per second that the device was written, likewise.
    pub(super) fn device_bytes_per_second(&self) -> Option<f64> {
        let rate = |slice: &Slice| Some(slice.counters?.written_bytes as f64 / slice.seconds);
        Some(self.spread(rate)?.median)
    }

    fn per_commit(&self, count: impl Fn(&Counters) -> Option<u64>) -> Option<f64> {
        let each = |slice: &Slice| Some(count(&slice.counters?)? as f64 / slice.commits as f64);
        Some(self.spread(each)?.median)
    }

    /// Returns the spread of a value over the turns; `None` without a turn, and if
    /// some have no such value.
    fn spread(&self, value: impl Fn(&Slice) -> Option<f64>) -> Option<Spread> {
        let values: Option<Vec<_>> = self.slices.iter().map(value).collect();
        Spread::of(&values?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three commits at a time, twice between settlings.
    #[derive(Default)]
    struct Triple {
        done: u32,
        flushes: u32,
    }

    impl Operation for Triple {
        fn operate(&mut self) -> io::Result<Option<SliceResult>> {
            self.done += 1;
            let done = SliceResult { took: Duration::from_micros(10), commits: 3 };
            Ok((!self.done.is_multiple_of(3)).then_some(done))
        }

        fn flush_to_medium(&mut self) -> io::Result<()> {
            self.flushes += 1;
            Ok(())
        }
    }

    /// Notes its times, and is held up once for longer than some operations take.
    #[derive(Default)]
    struct Stalled(Vec<Instant>);

    impl Operation for Stalled {
        fn operate(&mut self) -> io::Result<Option<SliceResult>> {
            let begun = Instant::now();
            self.0.push(begun);
            if self.0.len() == 2 {
                std::thread::sleep(Duration::from_millis(100));
            }
            Ok((self.0.len() < 8).then(|| SliceResult::since(begun)))
        }

        fn flush_to_medium(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_late_operation_is_not_made_up_for_by_quicker_ones() {
        let (mut tally, mut stalled) = (SliceStats::default(), Stalled::default());
        let length = (Duration::from_secs(3600), Some(Pace(50)));
        tally.turn(&mut stalled, length, None, &|| false).unwrap();
        assert_eq!(stalled.0.len(), 8);
        // The stall, and a period for each of the five behind the next one.
        let time = stalled.0[7] - stalled.0[1];
        assert!(time >= Duration::from_millis(100 + 5 * 20), "{time:?}");
    }

    #[test]
    fn a_time_slice_ends_with_its_last_operation_and_flushes() {
        let (mut tally, mut triple) = (SliceStats::default(), Triple::default());
        for _ in 0..3 {
            tally.turn(&mut triple, (Duration::from_secs(3600), None), None, &|| false).unwrap();
        }
        assert_eq!((triple.flushes, tally.latency.count(), tally.slices.len()), (3, 6, 3));
        assert!(tally.slices.iter().all(|slice| slice.commits == 6));
        assert_eq!((tally.device_bytes(), tally.flushes()), (None, None));
        let median = tally.medians_us().unwrap().median;
        assert!((median - 10.0).abs() < 0.1, "{median}");
        tally.turn(&mut triple, (Duration::from_secs(3600), None), None, &|| true).unwrap();
        assert_eq!(tally.latency.count(), 7, "one operation, and then the wish to stop");
        assert_eq!(SliceStats::default().rates(), None);
    }

    /// Every third one stalls.
    struct Stalling(u32);

    impl Operation for Stalling {
        fn operate(&mut self) -> io::Result<Option<SliceResult>> {
            self.0 += 1;
            let took = if self.0.is_multiple_of(3) { 30_000 } else { 100 };
            let done = SliceResult { took: Duration::from_micros(took), commits: 1 };
            Ok((self.0 < 300).then_some(done))
        }

        fn flush_to_medium(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_turn_does_not_hide_stalls() {
        let (mut tally, mut stalling) = (SliceStats::default(), Stalling(0));
        let turn = (Duration::from_secs(3600), None);
        tally.turn(&mut stalling, turn, None, &|| false).unwrap();
        assert!(tally.medians_us().unwrap().median < 110.0);
        assert!(tally.turns_us()[0] > 9_000.0, "{:?}", tally.turns_us());
    }

    #[test]
    fn a_pace_is_not_exceeded_and_a_wish_to_stop_ends_the_wait() {
        let (mut tally, mut triple) = (SliceStats::default(), Triple::default());
        let begun = Instant::now();
        let turn = (Duration::from_millis(1), Some(Pace(20)));
        tally.turn(&mut triple, turn, None, &|| false).unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(50), "{:?}", begun.elapsed());
        assert!(tally.per_second() <= 60.0, "three commits each: {}", tally.per_second());
        let turn = (Duration::from_secs(3600), Some(Pace(1)));
        let begun = Instant::now();
        tally.turn(&mut triple, turn, None, &|| true).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    }

    #[test]
    fn one_turn_in_which_others_wrote_does_not_count() {
        let slice = |written_bytes, flushes| Slice {
            commits: 2,
            seconds: 1.0,
            p50_us: 1.0,
            mean_us: 1.0,
            counters: Some(Counters { written_bytes, flushes, ..Counters::default() }),
        };
        let slices = vec![slice(8192, Some(2)), slice(1 << 30, Some(900)), slice(8192, Some(2))];
        let mut tally = SliceStats { slices, ..SliceStats::default() };
        assert_eq!((tally.device_bytes(), tally.flushes()), (Some(4096.0), Some(1.0)));
        assert_eq!(tally.device_bytes_per_second(), Some(8192.0));
        tally.slices.push(slice(0, None));
        assert_eq!(tally.flushes(), None);
    }
}
