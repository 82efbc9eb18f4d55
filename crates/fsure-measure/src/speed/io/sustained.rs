//! Writes a file until the drive's fast cache is used up, and reports the rate over time. A
//! drive of flash takes the first gigabytes into cells that it writes fast, and has to move
//! them while it takes the rest: what a copy of a large folder gets is the rate behind that.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fsure_os::block_stats::DeviceCounters;
use fsure_os::filesystem_id;
use fsure_os::machine;
use fsure_os::path as os_path;
use fsure_os::request_queue::{Access, DirectFile, Engine, QueueShape, Requests};
use fsure_os::root_dir::Root;
use fsure_os::scratch_dir::Scratch;

use super::fast_cache::{Drop, find_drop};
use super::{Experiment, Outcome, proof};
use crate::results::{ResultLine, SustainedEnd, SustainedLine};
use crate::speed::data_pool;
use crate::speed::rung::{RunResult, RungUnavailable, Stopwatch};
use crate::speed_run::warn;
use crate::stats::median;
use fsure_core::{Step, units};

/// The name of the result.
pub(super) const NAME: &str = "sustained write";

/// Bytes of a request, and requests at a time: KDiskMark's `SEQ1M Q8`.
const BLOCK: usize = 1 << 20;
const DEPTH: usize = 8;
/// Points of the curve at most, and the shortest time between two.
const POINTS_MAX: u32 = 400;
const POINT_MIN: Duration = Duration::from_millis(100);
/// Below this there is no curve.
const BYTES_MIN: u64 = 64 << 20;
/// Space is reserved so much at a time, so that other programs find the rest while it is not
/// used yet.
const RESERVED_STEP: u64 = 1 << 30;

/// Measures a folder.
pub(super) fn measure(experiment: &Experiment<'_>, scratch: &Scratch) -> RunResult<Outcome> {
    let Experiment { options, target, share, go, listener } = experiment;
    refuse_memory(scratch)?;
    let free = machine::free_bytes(scratch.path())?;
    let limit = options.sustained_bytes(free, options.may_fill) / BLOCK as u64 * BLOCK as u64;
    if limit < BYTES_MIN {
        return Err(RungUnavailable::NotHere(format!(
            "too little space: {} may be used of the {} that are free, and {} are needed",
            units::size(limit),
            units::size(free),
            units::size(BYTES_MIN)
        )));
    }
    let path = scratch.path().join("sustained");
    let file = DirectFile::create(&path).map_err(super::random::refused)?;
    let mut data = data_pool::filled(options.data)?;
    let meter = DeviceCounters::of(scratch.path()).ok().flatten();
    let writes = SustainedWrites {
        experiment,
        file: &file,
        limit,
        point: (*share / POINTS_MAX).max(POINT_MIN),
        began: Instant::now(),
        progress: Mutex::default(),
    };
    let shape =
        QueueShape { access: Access::Write, depth: DEPTH, block: BLOCK, engine: Engine::best() };
    let watch = Stopwatch::start(meter.as_ref());
    let ended = file.run(&shape, &mut data, &writes);
    let seconds = writes.began.elapsed().as_secs_f64();
    let point = writes.point.as_secs_f64();
    let mut progress = writes.progress.into_inner().unwrap_or_else(PoisonError::into_inner);
    progress.close(seconds, point);
    let run = watch.stop(progress.done);
    os_path::remove(&path, false);
    if let Err(error) = &ended {
        if progress.points.is_empty() {
            return Err(RungUnavailable::NotHere(format!("it cannot be written: {error}")));
        }
        let done = units::size(progress.done);
        let target = &target.text;
        warn(*listener, format!("{target}: a write failed after {done}: {error}"));
    }
    if progress.points.is_empty() {
        go.check()?;
        return Err(RungUnavailable::NoTime);
    }
    let ended_by_error = ended.is_err();
    let end = match ended {
        Err(_) => SustainedEnd::Failed,
        Ok(()) => progress.end.unwrap_or(SustainedEnd::Space),
    };
    advise(experiment, end, free);
    let proof = proof(run.device, Access::Write, run.amount);
    let measured = format!(
        "a new file of {}, 1 MiB at a time, {DEPTH} at once past the page cache (direct, {}), not \
         flushed; {proof}",
        units::size(run.amount),
        shape.engine.name()
    );
    let device_written_bytes = run.device.map(|device| device.written_bytes);
    let line = line(&target.text, progress, end, measured);
    let line = SustainedLine {
        mib_per_s: units::mib_per_second(run.amount, run.seconds),
        device_written_bytes,
        ..line
    };
    listener.measured(&ResultLine::Sustained(line));
    Ok(Outcome { measured: 1, cut_short: u64::from(ended_by_error), ..Outcome::default() })
}

/// Says how to see more of a drive that did not become slower.
fn advise(experiment: &Experiment<'_>, end: SustainedEnd, free: u64) {
    let Experiment { options, target, listener, .. } = experiment;
    let most = options.sustained_bytes(free, true);
    let has_more = most > options.sustained_bytes(free, false);
    let most = units::size(most);
    let longer = options.budget.as_secs() * 3;
    let target = &target.text;
    match end {
        SustainedEnd::Space if !options.may_fill && has_more => warn(
            *listener,
            format!("{target}: a quarter of the free space was written; '-y' writes up to {most}"),
        ),
        SustainedEnd::Budget => warn(
            *listener,
            format!(
                "{target}: the budget was spent before the drive became slower; '--budget \
                 {longer}s' writes for longer"
            ),
        ),
        _ => {}
    }
}

/// Memory has no fast cache in front of it.
fn refuse_memory(scratch: &Scratch) -> RunResult<()> {
    let kind = filesystem_id::of(&Root::open(scratch.path())?, b"")?.kind;
    match ["tmpfs", "ramfs"].contains(&&*kind) {
        true => Err(RungUnavailable::NotHere(format!("{kind} is in memory: there is no drive"))),
        false => Ok(()),
    }
}

fn line(target: &str, progress: Progress, end: SustainedEnd, measured: String) -> SustainedLine {
    let points = progress.points;
    let rates: Vec<_> = points.iter().map(|point| point.1).collect();
    // The last point, which comes behind the drop that ended the run, does not take it back.
    let drop = progress.drop.or_else(|| find_drop(&points));
    let seconds = |drop: Drop| points[drop.point - 1].0;
    SustainedLine {
        name: NAME.to_owned(),
        target: target.to_owned(),
        bytes: progress.done,
        mib_per_s: 0.0,
        before_mib_s: drop.map_or_else(|| median(&rates), |drop| drop.before),
        after_mib_s: drop.map(|drop| drop.after),
        fast_cache_bytes: drop.map(|drop| bytes(&points[..drop.point])),
        drop_s: drop.map(seconds),
        slowest_mib_s: rates.iter().copied().fold(f64::INFINITY, f64::min),
        end,
        device_written_bytes: None,
        measured,
        points,
    }
}

/// Returns the bytes that were written up to the last of these points.
fn bytes(points: &[(f64, f64)]) -> u64 {
    let (mut since, mut mib) = (0.0, 0.0);
    for (seconds, rate) in points {
        mib += rate * (seconds - since);
        since = *seconds;
    }
    (mib * units::MIB as f64).round() as u64
}

/// The state of the writes so far.
#[derive(Default)]
struct Progress {
    /// Bytes that were sent, complete or not.
    sent: u64,
    /// Bytes for which the file system has space.
    reserved: u64,
    done: u64,
    points: Vec<(f64, f64)>,
    /// Bytes and seconds at the last point.
    last: (u64, f64),
    end: Option<SustainedEnd>,
    /// The drop that ended it.
    drop: Option<Drop>,
}

impl Progress {
    /// Adds a point for what came behind the last one, unless that is too little to be
    /// compared with the others.
    fn close(&mut self, now: f64, point: f64) {
        let (bytes, seconds) = self.last;
        let is_enough = self.points.is_empty() || now - seconds >= point / 2.0;
        if self.done > bytes && now > seconds && is_enough {
            let rate = units::mib_per_second(self.done - bytes, now - seconds);
            self.points.push((now, rate));
        }
    }
}

/// The source of the writes: from the beginning of the file on.
struct SustainedWrites<'a> {
    experiment: &'a Experiment<'a>,
    file: &'a DirectFile,
    limit: u64,
    /// Time between two points.
    point: Duration,
    began: Instant,
    progress: Mutex<Progress>,
}

impl SustainedWrites<'_> {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the reason to send no more.
    fn end(&self, progress: &Progress) -> Option<SustainedEnd> {
        match self.experiment.go.check() {
            Err(RungUnavailable::Stopped) => Some(SustainedEnd::Interrupted),
            Err(_) => Some(SustainedEnd::Budget),
            Ok(()) if progress.sent >= self.limit => Some(SustainedEnd::Space),
            Ok(()) => None,
        }
    }

    fn show(&self, progress: &Progress) {
        let Experiment { go, options, target, listener, .. } = self.experiment;
        let time = (go.now)().as_secs_f64() / options.budget.as_secs_f64();
        let space = progress.done as f64 / self.limit as f64;
        let rate = progress.points.last().map_or(0.0, |point| point.1);
        let done = units::size(progress.done);
        let what = format!("{NAME}, {}: {done}, {rate:.0} MiB/s", target.text);
        listener.under_way(&Step { what: &what, share: time.max(space).min(1.0) });
    }
}

impl Requests for SustainedWrites<'_> {
    fn next(&self) -> Option<u64> {
        let mut progress = self.progress();
        if progress.end.is_none() {
            progress.end = self.end(&progress);
        }
        if progress.end.is_some() {
            return None;
        }
        let at = progress.sent;
        progress.sent += BLOCK as u64;
        if progress.sent > progress.reserved {
            let to = (at + RESERVED_STEP).min(self.limit);
            // Without it the writes wait for each other; if there is no space, they say so.
            let _ = self.file.reserve(at, to);
            progress.reserved = to;
        }
        Some(at)
    }

    fn complete(&self, _latency: Duration) {
        let now = self.began.elapsed().as_secs_f64();
        let mut progress = self.progress();
        progress.done += BLOCK as u64;
        let (bytes, seconds) = progress.last;
        if now - seconds < self.point.as_secs_f64() {
            return;
        }
        let rate = units::mib_per_second(progress.done - bytes, now - seconds);
        progress.last = (progress.done, now);
        progress.points.push((now, rate));
        self.show(&progress);
        if progress.end.is_none() {
            progress.drop = find_drop(&progress.points);
            progress.end = progress.drop.map(|_| SustainedEnd::Drop);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_cache_has_what_was_written_before_the_drop() {
        let rates = std::iter::repeat_n(1000.0, 40).chain(std::iter::repeat_n(100.0, 20));
        let points = rates.enumerate().map(|(n, rate)| ((n + 1) as f64 * 0.25, rate)).collect();
        let progress = Progress { points, done: 10_500 << 20, ..Progress::default() };
        let line = line("/a", progress, SustainedEnd::Drop, String::new());
        assert_eq!(line.fast_cache_bytes, Some(10_000 << 20));
        assert_eq!((line.drop_s, line.after_mib_s), (Some(10.0), Some(100.0)));
        assert_eq!((line.before_mib_s, line.slowest_mib_s), (1000.0, 100.0));
    }

    /// A drive that is fast again just then: what ended the run is still what is reported.
    #[test]
    fn the_drop_that_ended_it_is_the_one_that_is_reported() {
        let rates = std::iter::repeat_n(1000.0, 40).chain(std::iter::repeat_n(500.0, 12));
        let point = |(n, rate)| ((n + 1) as f64 * 0.25, rate);
        let mut points: Vec<_> = rates.enumerate().map(point).collect();
        let drop = find_drop(&points);
        points.extend((53..57).map(|n| (f64::from(n) * 0.25, 1000.0)));
        assert!(drop.is_some() && find_drop(&points).is_none());
        let progress = Progress { points, drop, ..Progress::default() };
        let line = line("/a", progress, SustainedEnd::Drop, String::new());
        assert_eq!((line.drop_s, line.after_mib_s), (Some(10.0), Some(500.0)));
    }

    #[test]
    fn without_a_drop_there_is_no_cache() {
        let points = (1..=40).map(|n| (f64::from(n) * 0.25, 300.0)).collect();
        let progress = Progress { points, done: 3000 << 20, ..Progress::default() };
        let line = line("/a", progress, SustainedEnd::Space, String::new());
        assert_eq!((line.fast_cache_bytes, line.after_mib_s, line.drop_s), (None, None, None));
        assert_eq!(line.before_mib_s, 300.0);
    }
}
