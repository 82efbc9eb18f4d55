//! Random requests of 4 KiB, by direction and queue depth: KDiskMark's `RND4K` rows. All
//! take turns, round after round, each round in another order, as the rungs do.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fsure_os::block_stats::Counters;
use fsure_os::buffer::Buffer;
use fsure_os::request_queue::{Access, DIRECT_GRAIN, DirectFile, Engine, QueueShape, Requests};

use super::{Experiment, Outcome, proof};
use crate::results::{NotRun, RandomLine, ResultLine};
use crate::speed::data_pool;
use crate::speed::rung::{RunContext, RunResult, RungUnavailable, Stopwatch};
use crate::speed::schedule::shuffled;
use crate::speed::workspace::SpeedWorkspace;
use crate::speed_run::warn;
use crate::stats::{Latency, Spread};
use fsure_core::{Step, units};

/// Counted turns of each queue depth: as many as an interval of 95 % needs.
pub(super) const TURNS: usize = 6;
/// Queue depths: one request at a time, as most programs send them; a few; and the depth of
/// SATA's own queue, which benchmarks show first.
const DEPTHS: [usize; 3] = [1, 4, 32];
/// Shortest and longest turn.
const TURN_MIN: Duration = Duration::from_millis(50);
const TURN_MAX: Duration = Duration::from_secs(5);
/// Part of the time that turns have; the file has to be written before.
const TURNS_SHARE: f64 = 0.85;

/// Measures a folder.
pub(super) fn measure(
    experiment: &Experiment<'_>,
    site: &Arc<SpeedWorkspace>,
) -> RunResult<Outcome> {
    refuse_memory(site)?;
    let Experiment { go, listener, .. } = experiment;
    let under_way = |what: &str| listener.under_way(&Step { what, share: elapsed(experiment) });
    under_way(&format!("writing the file for random requests, {}", site.target));
    site.lay_out(go)?;
    let file = DirectFile::open_own(&site.stream_path()).map_err(refused)?;
    let turns = experiment.options.runs.unwrap_or(TURNS);
    let mut jobs: Vec<Job> = [Access::Read, Access::Write]
        .into_iter()
        .flat_map(|access| DEPTHS.map(|depth| Job::new(access, depth)))
        .collect();
    let data = data_pool::filled(experiment.options.data)?;
    let left = go.end.saturating_sub((go.now)()).mul_f64(TURNS_SHARE);
    let each = left.div_f64((jobs.len() * (turns + 1)) as f64).clamp(TURN_MIN, TURN_MAX);
    let mut bench = Bench {
        site,
        file,
        engine: Engine::best(),
        data,
        target: Buffer::new(DEPTHS[2] * DIRECT_GRAIN)?,
        turn: each,
    };
    let ended = take_turns(&mut jobs, turns, |job, _| {
        under_way(&format!("{}, {}", job.words(), site.target));
        bench.turn(job, go)
    });
    report(experiment, &bench, &jobs, ended)
}

/// Lets all jobs take turns, each round in another order, until all rounds are over or a turn
/// fails. The first round is the warm-up, and has the number 0.
pub(super) fn take_turns<J>(
    jobs: &mut [J],
    turns: usize,
    mut turn: impl FnMut(&mut J, u64) -> RunResult<()>,
) -> RunResult<()> {
    for round in 0..=turns as u64 {
        for place in shuffled((0..jobs.len()).collect(), round) {
            turn(&mut jobs[place], round)?;
        }
    }
    Ok(())
}

/// Refuses a folder in memory, below which there is no drive.
pub(super) fn refuse_memory(site: &SpeedWorkspace) -> RunResult<()> {
    match site.is_memory() {
        true => {
            let kind = &site.kind;
            Err(RungUnavailable::NotHere(format!("{kind} is in memory: there is no drive")))
        }
        false => Ok(()),
    }
}

/// Part of the budget that is over.
pub(super) fn elapsed(experiment: &Experiment<'_>) -> f64 {
    let budget = experiment.options.budget.as_secs_f64();
    ((experiment.go.now)().as_secs_f64() / budget).min(1.0)
}

fn report(
    experiment: &Experiment<'_>,
    bench: &Bench<'_>,
    jobs: &[Job],
    ended: RunResult<()>,
) -> RunResult<Outcome> {
    let Experiment { listener, target, .. } = experiment;
    let writes = jobs.iter().filter(|job| job.access == Access::Write);
    let written_bytes = writes.map(|job| job.moved_bytes).sum();
    let lines: Vec<_> = jobs.iter().map(|job| job.line(bench, written_bytes)).collect();
    if lines.iter().all(Option::is_none) {
        ended.clone()?;
    }
    let has_failed = matches!(ended, Err(RungUnavailable::NotHere(_)));
    let mut outcome = Outcome { cut_short: u64::from(has_failed), ..Outcome::default() };
    let why = ended.err().map(super::words).unwrap_or_default();
    for (job, line) in jobs.iter().zip(lines) {
        match line {
            Some(line) => {
                outcome.measured += 1;
                listener.measured(&ResultLine::Random(line));
            }
            None => {
                outcome.not_run += 1;
                let (name, target) = (job.words(), target.text.clone());
                let why = why.clone();
                listener.measured(&ResultLine::NotRun(NotRun { name, target, why }));
            }
        }
    }
    if outcome.not_run == 0 && !why.is_empty() && listener.stop_requested().is_none() {
        let words = format!("{}: random requests ended early: {why}", target.text);
        warn(*listener, words);
    }
    Ok(outcome)
}

/// A file system that has no direct requests says so when the file is opened.
pub(super) fn refused(error: std::io::Error) -> RungUnavailable {
    use std::io::ErrorKind::{InvalidInput, Unsupported};
    match error.kind() {
        InvalidInput | Unsupported => RungUnavailable::NotHere(
            "this system or file system has no direct requests, so that the page cache would be \
             measured: name a folder on a local disk, on Linux"
                .to_owned(),
        ),
        _ => error.into(),
    }
}

/// A direction and a queue depth, and its turns.
struct Job {
    access: Access,
    depth: usize,
    warm_up: Option<f64>,
    samples: Vec<f64>,
    latency: Latency,
    device: Option<Counters>,
    /// Bytes of all turns, the warm-up among them.
    moved_bytes: u64,
}

impl Job {
    fn new(access: Access, depth: usize) -> Self {
        Self {
            access,
            depth,
            warm_up: None,
            samples: Vec::new(),
            latency: Latency::default(),
            device: None,
            moved_bytes: 0,
        }
    }

    fn name(&self) -> &'static str {
        match self.access {
            Access::Read => "random read",
            Access::Write => "random write",
        }
    }

    fn words(&self) -> String {
        format!("{}, {} at a time", self.name(), self.depth)
    }

    /// The line of its counted turns; `None` without one. All jobs together wrote so many
    /// bytes.
    fn line(&self, bench: &Bench<'_>, written_bytes: u64) -> Option<RandomLine> {
        let spread = Spread::of(&self.samples)?;
        let block = DIRECT_GRAIN as f64;
        let [p50_us, p99_us, p999_us] =
            [0.5, 0.99, 0.999].map(|share| self.latency.quantile_us(share));
        Some(RandomLine {
            name: self.name().to_owned(),
            target: bench.site.target.clone(),
            queue_depth: self.depth,
            block_bytes: DIRECT_GRAIN as u64,
            iops: spread.median,
            low: spread.low,
            high: spread.high,
            mib_per_s: spread.median * block / units::MIB as f64,
            p50_us,
            p99_us,
            p999_us,
            max_us: self.latency.max_us(),
            count: self.latency.count(),
            samples: self.samples.clone(),
            warm_up: self.warm_up.into_iter().collect(),
            histogram: self.latency.buckets(),
            device_read_bytes: self.device.map(|device| device.read_bytes),
            device_written_bytes: self.device.map(|device| device.written_bytes),
            measured: self.measured(bench, written_bytes),
        })
    }

    fn measured(&self, bench: &Bench<'_>, written_bytes: u64) -> String {
        let wrote = match self.access {
            Access::Read => String::new(),
            Access::Write => format!(
                "; {} were written in all, which the drive's own cache may have",
                units::size(written_bytes)
            ),
        };
        format!(
            "4 KiB each at random places of a file of {}, past the page cache (direct, {}), {:.1} s a \
             turn; {}{wrote}",
            units::size(bench.site.size),
            bench.engine.name(),
            bench.turn.as_secs_f64(),
            proof(self.device, self.access, self.latency.count() * DIRECT_GRAIN as u64)
        )
    }
}

/// The file and the memory of all turns.
struct Bench<'a> {
    site: &'a SpeedWorkspace,
    file: DirectFile,
    engine: Engine,
    /// Data that are written.
    data: Buffer,
    /// Memory that is read into.
    target: Buffer,
    turn: Duration,
}

impl Bench<'_> {
    fn turn(&mut self, job: &mut Job, go: &RunContext<'_>) -> RunResult<()> {
        go.check()?;
        // Another turn has other places.
        let seed = (job.samples.len() as u64) << 32 | job.depth as u64;
        let requests =
            RandomTurn::new(go, (self.site.size, DIRECT_GRAIN), job.access, (self.turn, seed));
        let shape = QueueShape {
            access: job.access,
            depth: job.depth,
            block: DIRECT_GRAIN,
            engine: self.engine,
        };
        let memory = if job.access == Access::Write { &mut self.data } else { &mut self.target };
        let watch = Stopwatch::start(self.site.meter.as_ref());
        self.file.run(&shape, memory, &requests).map_err(refused)?;
        let latency = requests.into_latency();
        let run = watch.stop(latency.count());
        job.moved_bytes += latency.count() * DIRECT_GRAIN as u64;
        // A turn that was cut short had fewer requests, and of those many that came last.
        go.check()?;
        let iops = run.amount as f64 / run.seconds;
        if job.warm_up.is_none() {
            job.warm_up = Some(iops);
            return Ok(());
        }
        job.samples.push(iops);
        job.latency.add(&latency);
        job.device = match (job.device, run.device) {
            (Some(sum), Some(device)) => Some(sum.plus(&device)),
            (None, device) if job.samples.len() == 1 => device,
            _ => None,
        };
        Ok(())
    }
}

/// The requests of one turn.
pub(super) struct RandomTurn<'a> {
    go: &'a RunContext<'a>,
    blocks: u64,
    /// Bytes of each.
    block: u64,
    place: AtomicU64,
    left: AtomicU64,
    began: Instant,
    length: Duration,
    latency: Mutex<Latency>,
}

impl<'a> RandomTurn<'a> {
    /// Requests of `block` bytes within a file of `size` bytes, for `length`. Another `seed` has
    /// other places.
    pub(super) fn new(
        go: &'a RunContext<'a>,
        (size, block): (u64, usize),
        access: Access,
        (length, seed): (Duration, u64),
    ) -> Self {
        let blocks = size / block as u64;
        Self {
            go,
            blocks,
            block: block as u64,
            place: AtomicU64::new(seed),
            // A turn writes the file once over at most: drives wear.
            left: AtomicU64::new(if access == Access::Write { blocks } else { u64::MAX }),
            began: Instant::now(),
            length,
            latency: Mutex::default(),
        }
    }

    /// The times of the requests that are complete.
    pub(super) fn into_latency(self) -> Latency {
        self.latency.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Requests for RandomTurn<'_> {
    fn next(&self) -> Option<u64> {
        if self.began.elapsed() >= self.length || self.go.check().is_err() {
            return None;
        }
        let count = |left: u64| left.checked_sub(1);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count).ok()?;
        let place = mixed(self.place.fetch_add(1, Ordering::Relaxed));
        Some(place % self.blocks * self.block)
    }

    fn complete(&self, latency: Duration) {
        self.latency.lock().unwrap_or_else(PoisonError::into_inner).record(latency);
    }
}

/// The output function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): numbers that
/// follow each other become places that do not.
fn mixed(number: u64) -> u64 {
    let z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_all_over_the_file_and_none_follows_the_last() {
        let places: Vec<u64> = (0..10_000).map(|number| mixed(number) % 100).collect();
        for tenth in 0..10 {
            let within = places.iter().filter(|place| **place / 10 == tenth).count();
            assert!((900..1100).contains(&within), "tenth {tenth}: {within}");
        }
        let neighbours = places.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
        assert!(neighbours < 200, "{neighbours}");
    }
}
