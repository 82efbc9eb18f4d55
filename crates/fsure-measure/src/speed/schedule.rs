//! The order of the runs. All rungs take turns, round after round, each round in
//! another order: what the machine does meanwhile hits all of them alike, and none
//! always comes after the same neighbour (in one order, a cached write that came
//! before another one was 1.6 times as slow: it found no memory that had just been
//! used, measured on a virtual machine). A rung is done when its interval is narrow,
//! and none begins a run that would outlast the budget.

use std::time::Duration;

use super::rung::{FILES_PER_S, RunContext, Rung, RungRun, RungUnavailable};
use crate::results;
use crate::results::{MeasurementMonitor, NotRun, ResultLine};
use crate::stats::Spread;
use fsure_core::Step;
use fsure_core::units::{GIB, MIB};

/// Below six runs the interval is less sure than 95 %.
const RUNS_MIN: usize = 6;
/// Most runs of a rung: an interval that has not become narrow by then does not.
const RUNS_MAX: usize = 40;
/// Half the interval over the median: a narrower interval is of no use to the user.
pub(super) const NARROW: f64 = 0.05;

/// The outcome of the ladder.
#[derive(Debug, Default)]
pub(super) struct ScheduleResult {
    /// Rungs measured.
    pub(super) measured: u64,
    /// Rungs left out.
    pub(super) not_run: u64,
    /// Rungs measured fewer times than they should have been, as the budget was
    /// spent.
    pub(super) cut_short: Vec<String>,
}

/// A rung and its runs.
struct Turn {
    rung: Box<dyn Rung>,
    warm_up: Option<RungRun>,
    runs: Vec<RungRun>,
    /// The longest turn so far, with what a run needs before and after.
    longest: Duration,
}

/// The state of a rung after its turn.
enum After {
    /// It has another one.
    Open,
    /// It has its line, or is left out.
    Done,
}

/// Measures all rungs, as often as `runs` or until each is narrow. Reports each
/// rung's line as soon as it is done.
pub(super) fn climb(
    rungs: Vec<Box<dyn Rung>>,
    runs: Option<usize>,
    go: &RunContext<'_>,
    listener: &dyn MeasurementMonitor,
) -> ScheduleResult {
    let new = |rung| Some(Turn { rung, warm_up: None, runs: Vec::new(), longest: Duration::ZERO });
    let mut turns: Vec<Option<Turn>> = rungs.into_iter().map(new).collect();
    let mut climber = Scheduler { runs, go, listener, climbed: ScheduleResult::default() };
    for round in 0_u64.. {
        let open: Vec<_> = (0..turns.len()).filter(|place| turns[*place].is_some()).collect();
        if open.is_empty() {
            break;
        }
        for place in shuffled(open, round) {
            let slot = &mut turns[place];
            if slot.as_mut().is_some_and(|turn| matches!(climber.turn(turn), After::Done)) {
                // Now, so that what it made is gone while the others run.
                *slot = None;
            }
        }
    }
    climber.climbed
}

/// Shuffles the places, in the same order in every run. The first round, which is not
/// counted, has the order of the ladder.
pub(super) fn shuffled(mut places: Vec<usize>, round: u64) -> Vec<usize> {
    if round > 0 {
        let key = |place: &usize| *blake3::hash(format!("{round} {place}").as_bytes()).as_bytes();
        places.sort_by_cached_key(key);
    }
    places
}

struct Scheduler<'a> {
    runs: Option<usize>,
    go: &'a RunContext<'a>,
    listener: &'a dyn MeasurementMonitor,
    climbed: ScheduleResult,
}

impl Scheduler<'_> {
    fn turn(&mut self, turn: &mut Turn) -> After {
        let began = (self.go.now)();
        let spec = turn.rung.spec();
        let share = began.as_secs_f64() / self.go.end.as_secs_f64().max(1e-9);
        let what = format!("{}, {}", spec.name, spec.target);
        self.listener.under_way(&Step { what: &what, share: share.min(1.0) });
        let tried = match self.go.check() {
            Ok(()) if began + turn.longest > self.go.end => Err(RungUnavailable::NoTime),
            Ok(()) if turn.warm_up.is_none() => turn.rung.prepare(self.go),
            checked => checked,
        };
        match tried.and_then(|()| turn.rung.once(self.go)) {
            Ok(run) => {
                turn.longest = turn.longest.max((self.go.now)().saturating_sub(began));
                match turn.warm_up {
                    None => turn.warm_up = Some(run),
                    Some(_) => turn.runs.push(run),
                }
                if !self.is_enough(turn) {
                    return After::Open;
                }
                self.report_run(turn);
            }
            // A process that the same signal ends, such as a server, fails
            // for no reason of its own.
            Err(_) if (self.go.stop)().is_some() => self.end(turn, RungUnavailable::Stopped),
            Err(refusal) => self.end(turn, refusal),
        }
        After::Done
    }

    fn is_enough(&self, turn: &Turn) -> bool {
        let count = turn.runs.len();
        if let Some(runs) = turn.rung.runs().or(self.runs) {
            return count >= runs;
        }
        let is_narrow = || {
            let spread = Spread::of(&turn.runs.iter().map(rate_of(turn)).collect::<Vec<_>>());
            spread.is_some_and(|spread| spread.relative_error() < NARROW)
        };
        count >= RUNS_MAX || count >= RUNS_MIN && is_narrow()
    }

    /// Ends a rung before it has all its runs.
    fn end(&mut self, turn: &Turn, refusal: RungUnavailable) {
        let spec = turn.rung.spec();
        if !turn.runs.is_empty() {
            match refusal {
                RungUnavailable::NotHere(why) => self.warn(format!(
                    "{}, {}: stopped after {} runs: {why}",
                    spec.name,
                    spec.target,
                    turn.runs.len()
                )),
                RungUnavailable::NoTime => {
                    self.climbed.cut_short.push(spec.name);
                }
                RungUnavailable::Stopped => {}
            }
            return self.report_run(turn);
        }
        let why = match refusal {
            RungUnavailable::NotHere(why) => why,
            RungUnavailable::NoTime => self.no_time(turn),
            RungUnavailable::Stopped => "interrupted".to_owned(),
        };
        self.climbed.not_run += 1;
        let (name, target) = (spec.name, spec.target);
        self.listener.measured(&ResultLine::NotRun(NotRun { name, target, why }));
    }

    fn no_time(&self, turn: &Turn) -> String {
        let left = self.go.end.saturating_sub((self.go.now)());
        if turn.warm_up.is_some() && !left.is_zero() {
            return format!(
                "its warm-up took {:.1} s, and {:.1} s of the budget were left; '--budget' makes \
                 it longer, '--size' the run shorter",
                turn.longest.as_secs_f64(),
                left.as_secs_f64()
            );
        }
        let after = if turn.warm_up.is_some() { " after its warm-up" } else { "" };
        format!("the budget was spent{after}; a larger '--budget' helps, or fewer '--rungs'")
    }

    fn warn(&self, words: String) {
        self.listener.measured(&ResultLine::Warning { words });
    }

    fn report_run(&mut self, turn: &Turn) {
        if let Some(rung) = line(turn) {
            self.climbed.measured += 1;
            self.listener.measured(&ResultLine::Rung(rung));
        }
    }
}

/// The rate of a run in its rung's unit.
fn rate_of(turn: &Turn) -> impl Fn(&RungRun) -> f64 + use<> {
    let scale = if turn.rung.spec().unit == FILES_PER_S { 1.0 } else { MIB as f64 };
    move |run| run.amount as f64 / scale / run.seconds
}

/// A rung's line; `None` without a run.
fn line(turn: &Turn) -> Option<results::Rung> {
    let spec = turn.rung.spec();
    let rate = rate_of(turn);
    let samples: Vec<f64> = turn.runs.iter().map(&rate).collect();
    let spread = Spread::of(&samples)?;
    let bytes: u64 = turn.runs.iter().map(|run| run.amount).sum();
    let cpu_s: Option<f64> = turn.runs.iter().map(|run| run.cpu_s).sum();
    let cpu_s = cpu_s.filter(|_| spec.unit != FILES_PER_S && bytes > 0);
    let mut counters = turn.runs.iter().map(|run| run.device);
    let device = counters
        .next()
        .flatten()
        .and_then(|first| counters.try_fold(first, |sum, next| next.map(|next| sum.plus(&next))));
    Some(results::Rung {
        name: spec.name,
        target: spec.target,
        unit: spec.unit.to_owned(),
        median: spread.median,
        low: spread.low,
        high: spread.high,
        runs: samples.len(),
        measured: turn.rung.measured(),
        warm_up: turn.warm_up.iter().map(&rate).collect(),
        outliers: spread.outliers,
        amount: turn.runs.last().map_or(0, |run| run.amount),
        cpu_s_per_gib: cpu_s.map(|cpu_s| cpu_s / (bytes as f64 / GIB as f64)),
        device_read_bytes: device.map(|device| device.read_bytes),
        device_written_bytes: device.map(|device| device.written_bytes),
        device_flushes: device.and_then(|device| device.flushes),
        samples,
    })
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
