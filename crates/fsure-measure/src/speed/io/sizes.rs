//! Requests at random places by their size, one at a time: the throughput that a larger request
//! brings. All sizes take turns, as the queue depths of `random` do.

use std::sync::Arc;
use std::time::Duration;

use fsure_os::block_stats::Counters;
use fsure_os::buffer::Buffer;
use fsure_os::request_queue::{Access, DirectFile, Engine, QueueShape};

use super::random::{RandomTurn, TURNS, elapsed, refuse_memory, refused, take_turns};
use super::{Experiment, Outcome, proof};
use crate::results::{Curve, NotRun, Point, ResultLine};
use crate::speed::data_pool;
use crate::speed::rung::{RunContext, RunResult, Stopwatch};
use crate::speed::workspace::SpeedWorkspace;
use crate::speed_run::warn;
use crate::stats::Spread;
use fsure_core::{Step, units};

/// Name of the results together.
pub(super) const NAME: &str = "request sizes";
/// Sizes in bytes: from a page to what `verify` reads at a time.
const SIZES: [usize; 6] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// Shortest and longest turn.
const TURN_MIN: Duration = Duration::from_millis(50);
const TURN_MAX: Duration = Duration::from_secs(2);
/// Part of the time that turns have; the file has to be written before.
const TURNS_SHARE: f64 = 0.85;

/// Measures a folder, and reports a curve of reads and one of writes.
pub(super) fn measure(
    experiment: &Experiment<'_>,
    site: &Arc<SpeedWorkspace>,
) -> RunResult<Outcome> {
    refuse_memory(site)?;
    let Experiment { go, listener, .. } = experiment;
    let under_way = |what: &str| listener.under_way(&Step { what, share: elapsed(experiment) });
    under_way(&format!("writing the file for requests of each size, {}", site.target));
    site.lay_out(go)?;
    let file = DirectFile::open_own(&site.stream_path()).map_err(refused)?;
    let turns = experiment.options.runs.unwrap_or(TURNS);
    let sizes: Vec<_> = SIZES.into_iter().filter(|size| *size as u64 <= site.size).collect();
    let of = |access| sizes.iter().map(move |size| Job::new(access, *size));
    let mut jobs: Vec<Job> = of(Access::Read).chain(of(Access::Write)).collect();
    let left = go.end.saturating_sub((go.now)()).mul_f64(TURNS_SHARE);
    let mut bench = Bench {
        site,
        file,
        engine: Engine::best(),
        data: data_pool::filled(experiment.options.data)?,
        target: Buffer::new(SIZES[SIZES.len() - 1])?,
        turn: left.div_f64((jobs.len() * (turns + 1)) as f64).clamp(TURN_MIN, TURN_MAX),
    };
    let ended = take_turns(&mut jobs, turns, |job, round| {
        let size = units::size(job.size as u64);
        under_way(&format!("{} of {size}, {}", job.verb(), site.target));
        bench.turn(job, round, go)
    });
    report(experiment, &bench, &jobs, ended)
}

fn report(
    experiment: &Experiment<'_>,
    bench: &Bench<'_>,
    jobs: &[Job],
    ended: RunResult<()>,
) -> RunResult<Outcome> {
    let Experiment { listener, target, .. } = experiment;
    if jobs.iter().all(|job| job.samples.is_empty()) {
        ended.clone()?;
    }
    let is_failed = matches!(ended, Err(super::RungUnavailable::NotHere(_)));
    let mut outcome = Outcome { cut_short: u64::from(is_failed), ..Outcome::default() };
    let why = ended.err().map(super::words).unwrap_or_default();
    for access in [Access::Read, Access::Write] {
        let own: Vec<_> = jobs.iter().filter(|job| job.access == access).collect();
        match curve(bench, &own) {
            Some(curve) => {
                outcome.measured += 1;
                listener.measured(&ResultLine::Curve(curve));
            }
            None => {
                outcome.not_run += 1;
                let (name, target) = (name(access).to_owned(), target.text.clone());
                let why = why.clone();
                listener.measured(&ResultLine::NotRun(NotRun { name, target, why }));
            }
        }
    }
    if outcome.not_run == 0 && !why.is_empty() && listener.stop_requested().is_none() {
        warn(*listener, format!("{}: requests by size ended early: {why}", target.text));
    }
    Ok(outcome)
}

/// Name of the curve of a direction.
fn name(access: Access) -> &'static str {
    match access {
        Access::Read => "read by request size",
        Access::Write => "write by request size",
    }
}

/// The curve of the jobs of one direction that have counted turns; `None` without any.
fn curve(bench: &Bench<'_>, jobs: &[&Job]) -> Option<Curve> {
    let point = |job: &&&Job| {
        let Spread { median, low, high, .. } = Spread::of(&job.samples)?;
        Some(Point { x: job.size as f64, y: median, low, high, flushes_per_op: None })
    };
    let points: Vec<_> = jobs.iter().filter_map(|job| point(&job)).collect();
    let access = jobs.first().filter(|_| !points.is_empty())?.access;
    let moved: u64 = jobs.iter().map(|job| job.moved_bytes).sum();
    let counters = jobs.iter().map(|job| job.device).reduce(|one, two| Some(one?.plus(&two?)));
    let cache = match access {
        Access::Read => "",
        Access::Write => ", which the drive's own cache may have",
    };
    Some(Curve {
        name: name(access).to_owned(),
        target: bench.site.target.clone(),
        x: "bytes of a request".to_owned(),
        y: "MiB/s".to_owned(),
        points,
        measured: format!(
            "one request at a time at random places of a file of {}, past the page cache (direct, \
             {}), {:.2} s a turn, {} counted and one to warm up; {} in all{cache}; {}",
            units::size(bench.site.size),
            bench.engine.name(),
            bench.turn.as_secs_f64(),
            jobs.iter().map(|job| job.samples.len()).max().unwrap_or(0),
            units::size(moved),
            proof(counters.flatten(), access, moved)
        ),
    })
}

/// A direction and a size, and its turns.
struct Job {
    access: Access,
    size: usize,
    /// MiB/s of each counted turn.
    samples: Vec<f64>,
    /// Counters of all turns, as `moved_bytes`; `None` if one of them has none.
    device: Option<Counters>,
    /// Bytes of all turns, the warm-up among them.
    moved_bytes: u64,
}

impl Job {
    fn new(access: Access, size: usize) -> Self {
        Self { access, size, samples: Vec::new(), device: None, moved_bytes: 0 }
    }

    fn verb(&self) -> &'static str {
        match self.access {
            Access::Read => "reads",
            Access::Write => "writes",
        }
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
    fn turn(&mut self, job: &mut Job, round: u64, go: &RunContext<'_>) -> RunResult<()> {
        go.check()?;
        let seed = round << 32 | job.size as u64;
        let requests =
            RandomTurn::new(go, (self.site.size, job.size), job.access, (self.turn, seed));
        let shape =
            QueueShape { access: job.access, depth: 1, block: job.size, engine: self.engine };
        let memory = match job.access {
            Access::Read => &mut self.target,
            Access::Write => &mut self.data,
        };
        let watch = Stopwatch::start(self.site.meter.as_ref());
        self.file.run(&shape, memory, &requests).map_err(refused)?;
        let run = watch.stop(requests.into_latency().count() * job.size as u64);
        job.device = match (job.device, run.device) {
            (Some(sum), Some(device)) => Some(sum.plus(&device)),
            (None, device) if job.moved_bytes == 0 => device,
            _ => None,
        };
        job.moved_bytes += run.amount;
        // A turn that was cut short had fewer requests, and of those many that came last.
        go.check()?;
        if round > 0 {
            job.samples.push(units::mib_per_second(run.amount, run.seconds));
        }
        Ok(())
    }
}
