//! `hot record`: watches all programs for days, and stores the sums of each interval.
//!
//! Each interval has programs of its own in the kernel, and those of the next one are there before
//! those of this one are taken away. The kernel's tables have room for a bounded number of
//! folders and processes: those of days would not fit, those of one interval do.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fsure_core::{
    Clock, ElapsedTimer, Error, IoContext as _, NullMonitor, Result, Step, StepMonitor,
};
use fsure_os::io_trace::{TraceOptions, TraceSource, Tracer};

use super::interval::RecordedInterval;
use super::store::{Store, StoreLimits};

/// Longest delay before a request to stop is noticed.
const SLICE: Duration = Duration::from_millis(250);

/// Time after which another attempt is made to begin the next interval.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// Options of [`record`].
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// Folder of the store.
    pub store: PathBuf,
    /// Length of an interval.
    pub interval: Duration,
    /// Bounds of the store.
    pub limits: StoreLimits,
    /// Clock by which times are read.
    pub clock: Clock,
}

/// A listener to a recorder.
pub trait RecordMonitor: StepMonitor {
    /// Receives the file into which it records, once it watches.
    fn recording(&self, _file: &Path) {}

    /// Receives an interval when it is over, before it is stored.
    fn interval(&self, _interval: &RecordedInterval) {}
}

impl RecordMonitor for NullMonitor {}

/// Result of [`record`].
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The file that has the intervals.
    pub file: PathBuf,
    /// Number of intervals.
    pub intervals: u64,
    /// Seconds that were recorded.
    pub seconds: f64,
}

/// Records until the listener wants an end; the interval that was begun is stored then, too.
/// An interval that cannot be stored is kept, warned of, and stored with the next one. The error
/// is that of the last one.
pub fn record(options: &RecordOptions, listener: &dyn RecordMonitor) -> Result<Recorded> {
    let mut watch = Watch::begin(&options.clock).map_err(refused)?;
    let now_ns = options.clock.now_ns();
    let (store, damaged) = Store::open(&options.store, options.limits, now_ns)?;
    if damaged > 0 {
        listener.warn(&format!(
            "{} has damaged lines ({damaged}), whose intervals are lost; all others are kept",
            store.file().display()
        ));
    }
    listener.recording(store.file());
    let mut recorder = Recorder { options, listener, store, pending: None };
    let file = recorder.store.file().to_owned();
    let mut recorded = Recorded { file, intervals: 0, seconds: 0.0 };
    let (mut begins, mut stores) = (Trouble::default(), Trouble::default());
    let mut due = options.interval;
    loop {
        let is_last = watch.run(due, listener)?;
        let mut next = match if is_last { None } else { Some(Watch::begin(&options.clock)) } {
            None => None,
            Some(Ok(next)) => Some(next),
            Some(Err(error)) => {
                // A long interval is better than a gap.
                let words = format!("cannot begin the next interval, so this one goes on: {error}");
                begins.report(listener, &words);
                due = watch.began.elapsed() + RETRY_INTERVAL.min(options.interval);
                continue;
            }
        };
        begins.is_over(listener, "the next interval has begun");
        due = options.interval;
        let interval = watch.end(&options.clock, next.as_mut())?;
        recorded.intervals += 1;
        recorded.seconds += interval.seconds;
        listener.interval(&interval);
        let stored = recorder.keep(interval);
        let Some(next) = next else { return stored.map(|()| recorded) };
        watch = next;
        match stored {
            Ok(()) => stores.is_over(listener, "the history is stored again; nothing is missing"),
            Err(error) => {
                let words = format!(
                    "{error}; recording goes on; this interval is stored with the next one"
                );
                stores.report(listener, &words);
            }
        }
    }
}

/// A failure that is reported once, and not each time that it is met again.
#[derive(Default)]
struct Trouble(Option<String>);

impl Trouble {
    fn report(&mut self, listener: &dyn RecordMonitor, words: &str) {
        if self.0.as_deref() != Some(words) {
            listener.warn(words);
            self.0 = Some(words.to_owned());
        }
    }

    fn is_over(&mut self, listener: &dyn RecordMonitor, words: &str) {
        if self.0.take().is_some() {
            listener.warn(words);
        }
    }
}

/// The store, and what is not in it yet.
struct Recorder<'a> {
    options: &'a RecordOptions,
    listener: &'a dyn RecordMonitor,
    store: Store,
    /// Intervals that could not be stored, as one.
    pending: Option<RecordedInterval>,
}

impl Recorder<'_> {
    /// Stores an interval with those that are pending.
    fn keep(&mut self, interval: RecordedInterval) -> Result<()> {
        let whole = match self.pending.take() {
            Some(mut pending) => {
                pending.merge(interval);
                pending
            }
            None => interval,
        };
        let stored = self.store(&whole);
        if stored.is_err() {
            self.pending = Some(whole);
        }
        stored
    }

    fn store(&mut self, interval: &RecordedInterval) -> Result<()> {
        let now_ns = self.options.clock.now_ns();
        if !self.store.is_there() {
            self.store.restore(now_ns)?;
            let file = self.store.file().display();
            self.listener.warn(&format!("{file} was taken away, and is begun anew"));
        }
        self.store.append(interval, now_ns).context("store an interval in", self.store.file())
    }
}

/// The watch of one interval.
struct Watch {
    tracer: Tracer,
    began_ns: i64,
    began: ElapsedTimer,
}

impl Watch {
    fn begin(clock: &Clock) -> std::io::Result<Self> {
        let trace = TraceOptions {
            source: Some(TraceSource::Ebpf),
            has_intervals: true,
            ..TraceOptions::default()
        };
        let tracer = Tracer::begin(&trace)?;
        Ok(Self { tracer, began_ns: clock.now_ns(), began: clock.watch() })
    }

    /// Watches until it lasts as long as that, or an end is wanted, which is true then.
    fn run(&mut self, due: Duration, listener: &dyn RecordMonitor) -> Result<bool> {
        loop {
            if listener.stop_requested().is_some() {
                return Ok(true);
            }
            let left = due.saturating_sub(self.began.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            self.tracer.watch(left.min(SLICE)).context("watch", Path::new("/"))?;
            let share = (self.began.elapsed().as_secs_f64() / due.as_secs_f64()).min(1.0);
            listener.under_way(&Step { what: "this interval", share });
        }
    }

    /// Ends the watch, and lets the next one begin at the same moment.
    fn end(self, clock: &Clock, next: Option<&mut Self>) -> Result<RecordedInterval> {
        let (seconds, ended_ns) = (self.began.elapsed().as_secs_f64(), clock.now_ns());
        let report = match next {
            Some(next) => {
                (next.began_ns, next.began) = (ended_ns, clock.watch());
                self.tracer.end_before(&mut next.tracer)
            }
            None => self.tracer.end(),
        };
        let report = report.context("watch", Path::new("/"))?;
        Ok(RecordedInterval::of_trace(report, (self.began_ns, ended_ns), seconds))
    }
}

/// The error of a recorder that cannot watch.
fn refused(error: std::io::Error) -> Error {
    if error.kind() == ErrorKind::PermissionDenied {
        return Error::Usage {
            message: format!("'hot record' needs eBPF, which is for root: {error}"),
            hint: Some(
                "run it as root: 'sudo fsure hot record', or as a service: 'sudo systemctl enable \
                 --now fsure-hot.service'"
                    .to_owned(),
            ),
        };
    }
    let words = format!(
        "{error}; 'hot record' needs eBPF, for times; 'fsure hot --source fanotify' reports \
         without them"
    );
    let source = std::io::Error::new(error.kind(), words);
    Error::Io { doing: "watch", path: PathBuf::from("/"), source }
}
