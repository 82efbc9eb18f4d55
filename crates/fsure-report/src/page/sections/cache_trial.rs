//! `bench/uncached.py`: what programs leave of the page cache, run as they are and otherwise.

use super::super::charts::Charts;
use super::super::pieces::{Cell, Grade, Section, Table};
use super::super::words::milliseconds;
use super::Draft;
use crate::chart::{Eviction, ReadAgain, evictions, figure};
use crate::outputs::{CacheTrial, CacheTrialRun};
use fsure_core::units;

/// The way of fsure.
const UNCACHED: &str = "fsure uncached";

/// The section of a run.
pub(super) fn section(run: &CacheTrialRun, charts: &mut Charts) -> Section {
    let mut draft = Draft::new("uncached trial");
    if let Some(totals) = &run.summary {
        let least = |way: &str| {
            let own = run.trials.iter().filter(|trial| trial.way == way);
            own.map(|trial| trial.kept_share() * 100.0).reduce(f64::min)
        };
        match (least(UNCACHED), least("plain")) {
            (Some(uncached), Some(plain)) => {
                draft.verdict(
                    Grade::Plain,
                    format!(
                        "At least {uncached:.0} % of another program's file stayed in memory \
                         under 'fsure uncached', and {plain:.0} % without"
                    ),
                );
                draft.key(format!("{uncached:.0} %"), "of another program's file kept at least");
            }
            _ => draft.verdict(Grade::Plain, format!("{} trials", totals.trials)),
        }
        draft.fact("Duration", format!("{} s", figure(totals.seconds)));
        draft.plain_exit_code(totals.exit_code);
    }
    let all: Vec<_> = run.trials.iter().map(eviction).collect();
    if let Some(first) = run.trials.first() {
        let title = "What does a program push out of memory, and what does it leave there?";
        let chart = evictions(title, &all, &conditions(first));
        draft.part("What stays in memory", [charts.add(&chart, "")]);
    }
    draft.part("Trials", table(&run.trials).unless_empty());
    draft.done()
}

fn eviction(trial: &CacheTrial) -> Eviction {
    Eviction {
        program: trial.program.clone(),
        way: trial.way.clone(),
        kept_share: trial.kept_share(),
        again: trial.others_seconds.map(|median| ReadAgain {
            median,
            range: again_range(trial, median),
            words: milliseconds(median * 1e3),
        }),
        left: (trial.left_bytes as f64, units::size(trial.left_bytes)),
    }
}

fn conditions(first: &CacheTrial) -> String {
    format!(
        "All had {} of memory. A file of {} of another program was in it before. Medians of {} \
         runs; all bars begin at zero, each column on its own scale. 'Read again': by that other \
         program, afterwards. 'Own': those of the program that was run. 'limit' is a memory limit \
         for it, by a control group.",
        units::size(first.memory_bytes),
        units::size(first.others_bytes),
        first.runs
    )
}

/// The shortest and the longest time of the program.
fn range(trial: &CacheTrial) -> String {
    let ends = trial.seconds_low.zip(trial.seconds_high);
    ends.map_or("–".to_owned(), |(low, high)| format!("{} – {} s", figure(low), figure(high)))
}

/// The shortest and the longest time to read the other program's file again.
fn again_range(trial: &CacheTrial, median: f64) -> (f64, f64) {
    let (low, high) = (trial.others_seconds_low, trial.others_seconds_high);
    (low.unwrap_or(median), high.unwrap_or(median))
}

/// The time to read the other program's file again, with its range.
fn again(trial: &CacheTrial) -> String {
    let Some(seconds) = trial.others_seconds else { return "–".to_owned() };
    let (low, high) = again_range(trial, seconds);
    let [seconds, low, high] = [seconds, low, high].map(|seconds| milliseconds(seconds * 1e3));
    format!("{seconds} ({low} – {high})")
}

fn table(trials: &[CacheTrial]) -> Table {
    let columns = [
        "Program",
        "Way",
        "#Other's file kept",
        "#Read again in",
        "#Own files left",
        "#Time",
        "#Range",
        "#Runs",
    ];
    let mut table = Table::new("Trials", &columns);
    for trial in trials {
        table.push(vec![
            Cell::head(&trial.program),
            Cell::text(&trial.way),
            Cell::number(format!("{:.0} %", trial.kept_share() * 100.0)),
            Cell::number(again(trial)),
            Cell::number(units::size(trial.left_bytes)).with_key(trial.left_bytes),
            Cell::number(format!("{} s", figure(trial.seconds))),
            Cell::number(range(trial)),
            Cell::number(trial.runs.to_string()),
        ]);
    }
    table
}
