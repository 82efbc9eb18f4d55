//! A place under measurement: a folder of fsure's own in the requested one, the
//! counters of what that lies on, and the listener.

use std::cell::Cell;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fsure_os::block_stats::DeviceCounters;
use fsure_os::buffer::Buffer;
use fsure_os::durable_write::{self, DurableFolder, Method, Writer};
use fsure_os::filesystem_id;
use fsure_os::machine;
use fsure_os::root_dir::Root;
use fsure_os::scratch_dir::Scratch;

use super::FlushOptions;
use super::time_slice::{Operation, Pace, SliceStats};
use crate::results::{MeasurementMonitor, NotRun, ResultLine};
use fsure_core::{Error, IoContext as _, Result, Step, units};

/// Turns that each operation has, beside the first, which warms up and is not
/// counted.
const ROUNDS: u32 = 8;
/// Latencies below which a 99th percentile means nothing: what is slow gets
/// further turns for them.
const SAMPLES_MIN: u64 = 100;
/// Turns that it may take to get them: a flush of 25 ms has them by then in the
/// default second.
const ROUNDS_MAX: u32 = 4 * ROUNDS;

/// A place under measurement.
pub(super) struct FlushWorkspace<'a> {
    /// As the lines of the result name it.
    pub(super) target: String,
    /// As it was given.
    folder: PathBuf,
    /// Goes before what it lies in.
    made: DurableFolder,
    _scratch: Scratch,
    meter: Option<DeviceCounters>,
    /// The file system's type.
    pub(super) file_system: String,
    pub(super) options: &'a FlushOptions,
    pub(super) listener: &'a dyn MeasurementMonitor,
    files: Cell<u64>,
    rows: Cell<u64>,
    not_run_rows: Cell<u64>,
    /// Part of the run's time that has been used.
    used: Cell<Duration>,
    whole: Duration,
}

/// Something to be measured, and its result.
pub(super) struct MeasuredOperation<'a> {
    pub(super) name: String,
    pub(super) operation: Box<dyn Operation + 'a>,
    pub(super) tally: SliceStats,
    /// Operations for which it gets further turns.
    least: u64,
    /// The rate that it is held at.
    pace: Option<Pace>,
}

impl<'a> MeasuredOperation<'a> {
    pub(super) fn new(name: impl Into<String>, operation: impl Operation + 'a) -> Self {
        let (name, operation) = (name.into(), Box::new(operation));
        Self { name, operation, tally: SliceStats::default(), least: 0, pace: None }
    }

    /// One whose tail is measured, at the rate that was asked for: it gets further turns until
    /// it has enough samples.
    pub(super) fn with_tail(
        site: &FlushWorkspace<'_>,
        name: impl Into<String>,
        operation: impl Operation + 'a,
    ) -> Self {
        let pace = site.options.rate.map(Pace);
        Self { least: SAMPLES_MIN, pace, ..Self::new(name, operation) }
    }

    fn planned_rounds(&self, turn: Duration) -> u32 {
        rounds_with_tail(turn, self.pace.as_ref().map(|pace| pace.0))
    }
}

impl<'a> FlushWorkspace<'a> {
    /// Makes a folder of fsure's own in `folder`; `used` of the run's `whole` time is
    /// over.
    pub(super) fn new(
        folder: &Path,
        options: &'a FlushOptions,
        listener: &'a dyn MeasurementMonitor,
        used: Duration,
        whole: Duration,
    ) -> Result<Self> {
        let root = Root::open(folder).context("open the folder", folder)?;
        let scratch = Scratch::create(folder, options.guard.as_deref());
        let scratch = scratch.context("make a work folder in", folder)?;
        let files = scratch.path().join("files");
        let files = DurableFolder::create(&files).context("make", &files)?;
        // Last: a folder that does not exist or that this user cannot open has no
        // counters either, and that error would show less.
        let meter =
            DeviceCounters::of(folder).context("find the counters of the device below", folder)?;
        let file_system = filesystem_id::of(&root, b"").map(|volume| volume.kind);
        Ok(Self {
            target: folder.display().to_string(),
            folder: folder.to_owned(),
            made: files,
            _scratch: scratch,
            meter,
            file_system: file_system.unwrap_or_else(|_| "an unknown file system".to_owned()),
            options,
            listener,
            files: Cell::new(0),
            rows: Cell::new(0),
            not_run_rows: Cell::new(0),
            used: Cell::new(used),
            whole,
        })
    }

    /// The folder that was requested.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A name for a file that nothing has yet.
    pub(super) fn path(&self) -> PathBuf {
        self.files.set(self.files.get() + 1);
        self.made.path().join(self.files.get().to_string())
    }

    /// Waits until the names in the folder of the files are on the medium.
    pub(super) fn flush_names(&self) -> io::Result<()> {
        self.made.flush()
    }

    /// Removes what has been measured.
    pub(super) fn clear(&self) -> Result<()> {
        self.made.clear().context("empty", self.made.path())
    }

    /// A file of `length` bytes that are all on the medium, so that to write over
    /// them changes nothing else.
    pub(super) fn filled(&self, method: Method, data: &[u8], length: u64) -> io::Result<Writer> {
        let writer = Writer::create(&self.path(), method)?;
        let mut at = 0;
        while at < length {
            let part = data.len().min((length - at) as usize);
            writer.write(&data[..part], at)?;
            at += part as u64;
        }
        writer.flush_to_medium()?;
        Ok(writer)
    }

    /// Fails if there is less space than will be needed.
    pub(super) fn need(&self, bytes: u64) -> Result<()> {
        let free = self.free_bytes()?;
        if free >= bytes {
            return Ok(());
        }
        let [needed, free] = [bytes, free].map(units::size);
        let why = format!("{needed} are needed, {free} are free");
        let error = io::Error::new(io::ErrorKind::StorageFull, why);
        Err(error).context("measure in", &self.folder)
    }

    /// Bytes that may still be written here.
    pub(super) fn free_bytes(&self) -> Result<u64> {
        machine::free_bytes(self.made.path()).context("ask for the free space of", &self.folder)
    }

    /// Fails if the user wants to stop.
    pub(super) fn check(&self) -> Result<()> {
        self.listener.stop_requested().map_or(Ok(()), |code| Err(Error::Interrupted(code)))
    }

    /// Reports what was measured, or was not.
    pub(super) fn report(&self, line: &ResultLine) {
        let row = match line {
            ResultLine::NotRun(_) => &self.not_run_rows,
            _ => &self.rows,
        };
        row.set(row.get() + 1);
        self.emit(line);
    }

    /// Reports what is known without measuring, or follows from it.
    pub(super) fn emit(&self, line: &ResultLine) {
        self.listener.measured(line);
    }

    /// Number of lines on what was measured.
    pub(super) fn rows(&self) -> u64 {
        self.rows.get()
    }

    /// Number of lines on what was not measured.
    pub(super) fn not_run_rows(&self) -> u64 {
        self.not_run_rows.get()
    }

    /// Reports a warning for a person, now and in the result.
    pub(super) fn warn(&self, words: String) {
        self.listener.warn(&words);
        self.emit(&ResultLine::Warning { words });
    }

    /// Returns true if the device may be requested to force single writes through its
    /// cache.
    pub(super) fn takes_forced(&self) -> bool {
        self.meter.as_ref().is_some_and(DeviceCounters::takes_forced)
    }

    /// Returns a line on what could not be measured.
    pub(super) fn not_run(&self, name: &str, why: &io::Error) -> ResultLine {
        ResultLine::NotRun(NotRun {
            name: name.to_owned(),
            target: self.target.clone(),
            why: format!("not available here: {why}"),
        })
    }

    /// Returns what was made; `None` if the system does not support it, which is
    /// reported.
    pub(super) fn or_not_run<T>(&self, name: &str, made: io::Result<T>) -> Result<Option<T>> {
        match made {
            Ok(made) => Ok(Some(made)),
            Err(error) if durable_write::is_refusal(&error) => {
                self.report(&self.not_run(name, &error));
                Ok(None)
            }
            Err(error) => Err(error).context("measure in", &self.folder),
        }
    }

    /// Gives each of them turns, `span` in all, and more to those that are too slow
    /// for enough samples. Those that the system does not support are reported and
    /// left out.
    pub(super) fn measure(
        &self,
        contenders: &mut Vec<MeasuredOperation<'_>>,
        span: Duration,
    ) -> Result<()> {
        let turn = span / ROUNDS;
        for round in 0..=ROUNDS_MAX {
            let mut place = 0;
            while let Some(contender) = contenders.get_mut(place) {
                let is_short = contender.tally.latency.count() < contender.least;
                if round <= ROUNDS || is_short {
                    // Further rounds were not planned.
                    let planned = contender.planned_rounds(turn);
                    let takes = if round <= planned { turn } else { Duration::ZERO };
                    self.step(&contender.name, takes);
                    self.check()?;
                    let turned = self.turn(contender, turn, round == 0);
                    if self.or_not_run(&contender.name.clone(), turned)?.is_none() {
                        contenders.remove(place);
                        continue;
                    }
                }
                place += 1;
            }
        }
        self.check()
    }

    fn turn(
        &self,
        contender: &mut MeasuredOperation<'_>,
        span: Duration,
        is_warm_up: bool,
    ) -> io::Result<()> {
        let stop = || self.listener.stop_requested().is_some();
        let meter = self.meter.as_ref();
        let turn = (span, contender.pace);
        contender.tally.turn(&mut *contender.operation, turn, meter, &stop)?;
        if is_warm_up {
            contender.tally = SliceStats::default();
        }
        Ok(())
    }

    /// Reports what comes next, before it does.
    fn step(&self, what: &str, takes: Duration) {
        let whole = self.whole.as_secs_f64().max(f64::MIN_POSITIVE);
        let share = (self.used.get().as_secs_f64() / whole).min(1.0);
        self.listener.under_way(&Step { what, share });
        self.used.set(self.used.get() + takes);
    }
}

/// The rounds' time of one operation, the one that warms up included.
pub(super) fn time(span: Duration) -> Duration {
    span / ROUNDS * (ROUNDS + 1)
}

/// The same of an operation whose tail is measured, at the rate that was asked for.
pub(super) fn time_with_tail(span: Duration, rate: Option<u32>) -> Duration {
    let turn = span / ROUNDS;
    turn * (rounds_with_tail(turn, rate) + 1)
}

/// Rounds in which there are enough samples at a rate, if nothing is slow. How many it takes
/// without one is not known before.
fn rounds_with_tail(turn: Duration, rate: Option<u32>) -> u32 {
    let Some(rate) = rate else { return ROUNDS };
    let in_a_turn = f64::from(rate) * turn.as_secs_f64();
    let rounds = (SAMPLES_MIN as f64 / in_a_turn).ceil() as u32;
    rounds.clamp(ROUNDS, ROUNDS_MAX)
}

/// Memory with content that no device can compress.
pub(super) fn noise() -> io::Result<Buffer> {
    let mut data = Buffer::new(1)?;
    blake3::Hasher::new().finalize_xof().fill(&mut data);
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_takes_the_rounds_that_its_samples_take() {
        let second = Duration::from_secs(1);
        assert_eq!(time_with_tail(second, None), time(second));
        // 100 samples of 30 a second take 27 rounds of an eighth of a second.
        assert_eq!(time_with_tail(second, Some(30)), second / ROUNDS * 28);
        assert_eq!(time_with_tail(second, Some(1000)), time(second), "as many as without");
        assert_eq!(time_with_tail(second, Some(1)), second / ROUNDS * (ROUNDS_MAX + 1));
    }
}
