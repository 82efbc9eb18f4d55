//! `bench/uncached.py`: what programs leave of the page cache, run as they are and otherwise.

use super::super::charts::Charts;
use super::super::pieces::{Cell, Grade, Section, Table};
use super::super::words::milliseconds;
use super::Draft;
use crate::chart::{Measure, WayPanel, WayRow, figure, ways, whole_size};
use crate::outputs::{CacheTrial, CacheTrialRun};
use fsure_core::count;
use fsure_core::units::{self, MIB};

/// The way of fsure, and that of a program as it is.
const PLAIN: &str = "plain";
const UNCACHED: &str = "fsure uncached";

/// The meaning of the ranges in the pictures.
const RANGE: &str = "least to most of the runs";

/// The section of a run.
pub(super) fn section(run: &CacheTrialRun, charts: &mut Charts) -> Section {
    let mut draft = Draft::new("uncached trial");
    if let Some(totals) = &run.summary {
        let least = |way: &str| {
            let own = run.trials.iter().filter(|trial| trial.way == way);
            own.map(|trial| trial.kept_share() * 100.0).reduce(f64::min)
        };
        match (least(UNCACHED), least(PLAIN)) {
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
    if let Some(first) = run.trials.first() {
        let row = |command: String, trial: &CacheTrial| {
            let (way, class) = (trial.way.clone(), class(&trial.way));
            WayRow { command, way, class }
        };
        let own = |trial: &CacheTrial| row(trial.program.clone(), trial);
        let timed = |trial: &CacheTrial| {
            let plain = plain_seconds(&run.trials, trial);
            let plain = plain.map_or(String::new(), |plain| format!(" (plain: {plain:.2} s)"));
            row(format!("{}{plain}", trial.program), trial)
        };
        let mut draw = |title: &str, rows: &[WayRow], panels: &[WayPanel], words: &str| {
            charts.add(&ways(title, rows, panels, (RANGE, words)), "")
        };
        let rows: Vec<_> = run.trials.iter().map(own).collect();
        let title = "How much of another program's file stays in memory?";
        let stays = draw(title, &rows, &effects(&run.trials), &conditions(first));
        let rows: Vec<_> = run.trials.iter().map(timed).collect();
        let title = "What does each way cost the program itself?";
        let cost = draw(title, &rows, &costs(&run.trials), &cost_conditions(first));
        draft.part("What stays in memory", [stays]);
        draft.part("Cost", [cost]);
    }
    draft.part("Trials", table(&run.trials).unless_empty());
    draft.done()
}

/// The colour of a way.
fn class(way: &str) -> &'static str {
    match way {
        PLAIN => "reference",
        "nocache" => "second",
        "fsure uncached" => "third",
        _ => "fourth",
    }
}

/// The page cache of another program after each run: the share of its file that is still there, and
/// the time to read the file again, if it was measured.
fn effects(trials: &[CacheTrial]) -> Vec<WayPanel> {
    let kept = |trial: &CacheTrial| Measure {
        median: trial.kept_share(),
        range: trial.kept_range(),
        words: format!("{:.0} %", trial.kept_share() * 100.0),
    };
    let again = |trial: &CacheTrial| {
        let median = trial.others_seconds?;
        let range = trial.others_seconds_low.zip(trial.others_seconds_high);
        Some(Measure { median, range, words: milliseconds(median * 1e3) })
    };
    let kept = WayPanel {
        head: ["kept in memory", "more is better"],
        bars: trials.iter().map(|trial| Some(kept(trial))).collect(),
        full: Some(1.0),
    };
    let again = WayPanel {
        head: ["then read again in", "less is better"],
        bars: trials.iter().map(again).collect(),
        full: None,
    };
    let has_times = again.bars.iter().any(Option::is_some);
    if has_times { vec![kept, again] } else { vec![kept] }
}

/// The time of the program of a trial as it is; `None` if it was not run so.
fn plain_seconds(trials: &[CacheTrial], trial: &CacheTrial) -> Option<f64> {
    let own = |other: &&CacheTrial| other.program == trial.program && other.way == PLAIN;
    trials.iter().find(own).map(|plain| plain.seconds)
}

/// The price of each way: the time of the program, and what it leaves of its own files in memory.
fn costs(trials: &[CacheTrial]) -> Vec<WayPanel> {
    let took = |trial: &CacheTrial| {
        let plain = plain_seconds(trials, trial).unwrap_or(trial.seconds);
        let range = trial.seconds_low.zip(trial.seconds_high);
        Measure {
            median: trial.seconds / plain,
            range: range.map(|(low, high)| (low / plain, high / plain)),
            words: format!("{:.2} x", trial.seconds / plain),
        }
    };
    let left = |trial: &CacheTrial| Measure {
        median: trial.left_bytes as f64,
        range: None,
        words: whole_mib(trial.left_bytes),
    };
    let took = WayPanel {
        head: ["time, beside plain", "less is better"],
        bars: trials.iter().map(|trial| Some(took(trial))).collect(),
        full: None,
    };
    let left = WayPanel {
        head: ["its own files in memory", "after, less is better"],
        bars: trials.iter().map(|trial| Some(left(trial))).collect(),
        full: None,
    };
    vec![took, left]
}

/// Bytes in whole MiB, since the runs differ by more than a tenth of one.
fn whole_mib(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        few if few < MIB => units::size(few),
        _ => format!("{} MiB", count((bytes + MIB / 2) / MIB)),
    }
}

/// The conditions of the trials, as sentences.
fn conditions(first: &CacheTrial) -> String {
    format!(
        "A file of {} of another program was in memory, of which there were {} for all. Then the \
         program ran, and then the other one read its file again. {}",
        whole_size(first.others_bytes),
        whole_size(first.memory_bytes),
        of_all(first)
    )
}

fn cost_conditions(first: &CacheTrial) -> String {
    format!(
        "The time is that until all was on storage. x: times as long as plain, so that the bars of \
         each program are beside its own plain time. {}",
        of_all(first)
    )
}

/// The sentences on all bars.
fn of_all(first: &CacheTrial) -> String {
    format!(
        "Medians of {} runs. Bars begin at zero. A limit is that of a control group, for the memory \
         of the program and its page cache.",
        first.runs
    )
}

/// The shortest and the longest time of the program.
fn range(trial: &CacheTrial) -> String {
    let ends = trial.seconds_low.zip(trial.seconds_high);
    ends.map_or("–".to_owned(), |(low, high)| format!("{} – {} s", figure(low), figure(high)))
}

/// The time to read the other program's file again, with its range.
fn again(trial: &CacheTrial) -> String {
    let Some(seconds) = trial.others_seconds else { return "–".to_owned() };
    let words = |seconds: f64| milliseconds(seconds * 1e3);
    match trial.others_seconds_low.zip(trial.others_seconds_high) {
        Some((low, high)) => format!("{} ({} – {})", words(seconds), words(low), words(high)),
        None => words(seconds),
    }
}

/// The share of the other program's file that was kept, with its range.
fn kept(trial: &CacheTrial) -> String {
    let share = trial.kept_share() * 100.0;
    match trial.kept_range() {
        Some((low, high)) => {
            format!("{share:.0} % ({:.0} – {:.0} %)", low * 100.0, high * 100.0)
        }
        None => format!("{share:.0} %"),
    }
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
            Cell::number(kept(trial)),
            Cell::number(again(trial)),
            Cell::number(units::size(trial.left_bytes)).with_key(trial.left_bytes),
            Cell::number(format!("{} s", figure(trial.seconds))),
            Cell::number(range(trial)),
            Cell::number(trial.runs.to_string()),
        ]);
    }
    table
}
