//! The schedule over rungs of a given cost, by a clock of their own: nothing here
//! waits, and nothing depends on this machine.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::*;
use crate::results::ResultLine;
use fsure_core::{ExitCode, Monitor, StepMonitor};

/// Milliseconds since the beginning, and whose turns there were.
#[derive(Default)]
struct World {
    now_ms: AtomicU64,
    turns: Mutex<Vec<String>>,
    lines: Mutex<Vec<ResultLine>>,
    /// Stops the run behind so many turns.
    stop_after: Option<usize>,
}

impl World {
    fn pass(&self, milliseconds: u64) {
        self.now_ms.fetch_add(milliseconds, Ordering::Relaxed);
    }

    fn climb(
        &self,
        rungs: Vec<Box<dyn Rung>>,
        runs: Option<usize>,
        budget_ms: u64,
    ) -> ScheduleResult {
        let now = || Duration::from_millis(self.now_ms.load(Ordering::Relaxed));
        let stop = || self.stop_requested();
        let go = RunContext { now: &now, end: Duration::from_millis(budget_ms), stop: &stop };
        climb(rungs, runs, &go, self)
    }

    fn rungs(&self) -> Vec<results::Rung> {
        let lines = self.lines.lock().unwrap();
        lines
            .iter()
            .filter_map(|line| match line {
                ResultLine::Rung(rung) => Some(rung.clone()),
                _ => None,
            })
            .collect()
    }

    fn left_out(&self) -> Vec<(String, String)> {
        let lines = self.lines.lock().unwrap();
        lines
            .iter()
            .filter_map(|line| match line {
                ResultLine::NotRun(left) => Some((left.name.clone(), left.why.clone())),
                _ => None,
            })
            .collect()
    }
}

impl Monitor for World {
    fn stop_requested(&self) -> Option<ExitCode> {
        let turns = self.turns.lock().unwrap().len();
        self.stop_after.filter(|after| turns >= *after).map(|_| ExitCode::Interrupted)
    }
}

impl StepMonitor for World {}

impl MeasurementMonitor for World {
    fn measured(&self, line: &ResultLine) {
        self.lines.lock().unwrap().push(line.clone());
    }
}

/// A rung that takes these milliseconds, one after the other and over again.
struct Fake(&'static World, &'static str, Vec<u64>, usize);

fn fake(world: &'static World, name: &'static str, takes: &[u64]) -> Box<dyn Rung> {
    Box::new(Fake(world, name, takes.to_vec(), 0))
}

impl Rung for Fake {
    fn spec(&self) -> super::super::rung::Spec {
        let (target, unit) = ("memory".to_owned(), "MiB/s");
        super::super::rung::Spec { name: self.1.to_owned(), target, unit }
    }

    fn once(&mut self, _go: &RunContext<'_>) -> super::super::rung::RunResult<RungRun> {
        let takes = self.2[self.3 % self.2.len()];
        self.3 += 1;
        if takes == 0 {
            return Err(RungUnavailable::NotHere("broken".to_owned()));
        }
        self.0.pass(takes);
        self.0.turns.lock().unwrap().push(self.1.to_owned());
        Ok(RungRun { amount: MIB, seconds: takes as f64 / 1e3, cpu_s: Some(0.5), device: None })
    }

    fn measured(&self) -> String {
        "nothing".to_owned()
    }
}

fn world(stop_after: Option<usize>) -> &'static World {
    Box::leak(Box::new(World { stop_after, ..World::default() }))
}

#[test]
fn rungs_take_turns_and_have_no_neighbour_for_ever() {
    let world = world(None);
    let rungs = vec![fake(world, "a", &[1]), fake(world, "b", &[1]), fake(world, "c", &[1])];
    let climbed = world.climb(rungs, Some(9), 1000);
    let turns = world.turns.lock().unwrap().concat();
    let rounds: std::collections::BTreeSet<_> = turns.as_bytes().chunks(3).collect();
    assert!(turns.starts_with("abc") && rounds.len() >= 3, "{turns}");
    for round in turns.as_bytes().chunks(3) {
        assert!(b"abc".iter().all(|rung| round.contains(rung)), "{turns}");
    }
    assert_eq!((climbed.measured, climbed.not_run), (3, 0));
    let rungs = world.rungs();
    assert!(rungs.iter().all(|rung| rung.runs == 9 && rung.warm_up.len() == 1));
    assert_eq!(rungs[0].cpu_s_per_gib, Some(512.0));
}

#[test]
fn what_is_narrow_is_done_and_what_is_not_goes_on() {
    let world = world(None);
    let rungs = vec![fake(world, "steady", &[10]), fake(world, "wild", &[10, 30, 20])];
    world.climb(rungs, None, 1_000_000);
    let runs: Vec<_> = world.rungs().iter().map(|rung| (rung.name.clone(), rung.runs)).collect();
    assert_eq!(runs, [("steady".to_owned(), RUNS_MIN), ("wild".to_owned(), RUNS_MAX)]);
}

#[test]
fn no_run_begins_that_would_outlast_the_budget() {
    let world = world(None);
    let rungs = vec![fake(world, "short", &[10]), fake(world, "long", &[400])];
    let climbed = world.climb(rungs, Some(5), 1000);
    assert!(world.now_ms.load(Ordering::Relaxed) <= 1000);
    let runs: Vec<_> = world.rungs().iter().map(|rung| (rung.name.clone(), rung.runs)).collect();
    assert_eq!(runs, [("long".to_owned(), 1), ("short".to_owned(), 5)]);
    assert_eq!(climbed.cut_short, ["long"]);
}

#[test]
fn a_rung_without_a_counted_run_is_left_out_with_its_reason() {
    let world = world(None);
    let rungs =
        vec![fake(world, "slow", &[600]), fake(world, "late", &[600]), fake(world, "never", &[1])];
    let climbed = world.climb(rungs, None, 1000);
    assert_eq!((climbed.measured, climbed.not_run), (0, 3));
    let left = world.left_out();
    let why = |name: &str| left.iter().find(|left| left.0 == name).unwrap().1.clone();
    assert!(why("never").starts_with("the budget was spent"), "{left:?}");
    assert!(why("slow").starts_with("the budget was spent after its warm-up"), "{left:?}");
    let world = self::world(None);
    world.climb(vec![fake(world, "slow", &[600])], None, 1000);
    let why = &world.left_out()[0].1;
    assert!(why.starts_with("its warm-up took 0.6 s, and 0.4 s of the budget were left"), "{why}");
}

#[test]
fn a_stop_keeps_what_was_measured() {
    let world = world(Some(3));
    let rungs = vec![fake(world, "a", &[1]), fake(world, "b", &[1])];
    world.climb(rungs, None, 1000);
    let rungs = world.rungs();
    assert_eq!((rungs.len(), rungs[0].runs), (1, 1));
    let left = world.left_out();
    assert_eq!((left.len(), left[0].1.as_str()), (1, "interrupted"));
    assert_ne!(left[0].0, rungs[0].name);
}

#[test]
fn what_breaks_by_the_stop_is_interrupted() {
    struct Served(&'static World);
    impl Rung for Served {
        fn spec(&self) -> super::super::rung::Spec {
            fake(self.0, "served", &[]).spec()
        }

        fn once(&mut self, _go: &RunContext<'_>) -> super::super::rung::RunResult<RungRun> {
            self.0.turns.lock().unwrap().push("the signal".to_owned());
            Err(RungUnavailable::NotHere("not connected".to_owned()))
        }

        fn measured(&self) -> String {
            String::new()
        }
    }
    let world = world(Some(1));
    world.climb(vec![Box::new(Served(world))], None, 1000);
    assert_eq!(world.left_out(), [("served".to_owned(), "interrupted".to_owned())]);
}

#[test]
fn a_rung_that_breaks_is_reported_with_what_it_had() {
    let world = world(None);
    let rungs = vec![fake(world, "at once", &[0]), fake(world, "later", &[1, 1, 1, 0])];
    let climbed = world.climb(rungs, None, 1000);
    assert_eq!((climbed.measured, climbed.not_run), (1, 1));
    assert_eq!(world.left_out(), [("at once".to_owned(), "broken".to_owned())]);
    assert!(world.lines.lock().unwrap().iter().any(
        |line| matches!(line, ResultLine::Warning { words } if words.contains("after 2 runs: broken"))
    ));
}
