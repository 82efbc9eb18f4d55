//! `bench/uncached.py`: what programs leave of the page cache, run as they are and otherwise.

use super::super::charts::Charts;
use super::super::pieces::{Cell, Grade, Section, Table};
use super::Draft;
use crate::chart::{Measure, WayPanel, WayRow, figure, ways, whole_size};
use crate::interval_words;
use crate::outputs::{CacheTrial, CacheTrialRun, KeptShare};
use fsure_core::count;
use fsure_core::units::{self, MIB};

/// The way of fsure, and that of a program as it is.
const PLAIN: &str = "plain";
const UNCACHED: &str = "fsure uncached";

/// The meaning of the ranges of what is kept.
const RANGE: &str = "least to most of the runs";

/// The section of a run.
pub(super) fn section(run: &CacheTrialRun, charts: &mut Charts) -> Section {
    let mut draft = Draft::new("uncached trial");
    if let Some(totals) = &run.summary {
        let least = |way: &str| {
            let own = run.trials.iter().filter(|trial| trial.way == way);
            own.filter_map(|trial| Some(trial.kept()?.median * 100.0)).reduce(f64::min)
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
            let plain = plain.map_or(String::new(), |plain| format!(" (plain: {plain:.1} s)"));
            row(format!("{}{plain}", trial.program), trial)
        };
        let rows: Vec<_> = run.trials.iter().map(own).collect();
        let title = "How much of another program's file stays in memory?";
        let words = conditions(first, &run.trials);
        let stays = ways(title, &rows, &effects(&run.trials), (RANGE, &words));
        let rows: Vec<_> = run.trials.iter().map(timed).collect();
        let title = "What does each way cost the program itself?";
        let words = cost_conditions(first, &run.trials);
        let interval = interval_words::meaning(std::iter::once(first.runs as usize));
        let cost = ways(title, &rows, &costs(&run.trials), (&interval, &words));
        draft.part("What stays in memory", [charts.add(&stays, "")]);
        draft.part("Cost", [charts.add(&cost, "")]);
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

/// The share of another program's file that is in memory after each run.
fn effects(trials: &[CacheTrial]) -> Vec<WayPanel> {
    let bar = |trial: &CacheTrial, share: Option<KeptShare>| {
        let Some(share) = share else { return killed(trial) };
        let words = format!("{:.0} %", share.median * 100.0);
        Measure { median: share.median, range: Some(share.range), words }
    };
    let once = trials.iter().map(|trial| Some(bar(trial, trial.kept())));
    let thrice = trials.iter().map(|trial| Some(bar(trial, trial.thrice_kept())));
    vec![
        WayPanel {
            head: ["kept of a file read once", "before; more is better"],
            bars: once.collect(),
            full: Some(1.0),
        },
        WayPanel {
            head: ["of one read three times", "before; more is better"],
            bars: thrice.collect(),
            full: Some(1.0),
        },
    ]
}

/// No bar, for a program that was killed.
fn killed(trial: &CacheTrial) -> Measure {
    let words = match trial.killed_runs == trial.runs {
        true => "killed".to_owned(),
        false => format!("killed {}/{}", trial.killed_runs, trial.runs),
    };
    Measure { median: 0.0, range: None, words }
}

/// The time of the program of a trial as it is; `None` if it was not run so.
fn plain_seconds(trials: &[CacheTrial], trial: &CacheTrial) -> Option<f64> {
    let own = |other: &&CacheTrial| other.program == trial.program && other.way == PLAIN;
    trials.iter().find(own).map(|plain| plain.seconds)
}

/// The price of each way: the time of the program, and what it leaves of its own files in memory.
fn costs(trials: &[CacheTrial]) -> Vec<WayPanel> {
    let took = |trial: &CacheTrial| {
        if trial.killed_runs > 0 {
            return Some(killed(trial));
        }
        let median = trial.beside_plain?;
        let range = trial.beside_plain_low.zip(trial.beside_plain_high);
        Some(Measure { median, range, words: format!("{median:.2} x") })
    };
    let left = |trial: &CacheTrial| {
        let (median, words) = (trial.left_bytes as f64, whole_mib(trial.left_bytes));
        (trial.killed_runs == 0).then_some(Measure { median, range: None, words })
    };
    let took = WayPanel {
        head: ["time, beside plain", "less is better"],
        bars: trials.iter().map(took).collect(),
        full: None,
    };
    let left = WayPanel {
        head: ["its own files in memory", "after, less is better"],
        bars: trials.iter().map(left).collect(),
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
fn conditions(first: &CacheTrial, trials: &[CacheTrial]) -> String {
    format!(
        "{}A file of {} of another program was in memory, of which there were {} for all. Then the \
         program ran. Medians of {} runs each. {}",
        note(first),
        whole_size(first.others_bytes),
        whole_size(first.memory_bytes),
        first.runs / 2,
        of_all(trials)
    )
}

fn cost_conditions(first: &CacheTrial, trials: &[CacheTrial]) -> String {
    format!(
        "{}The time is that until all was on storage. x: times as long as plain in the same round, \
         the median of {} rounds. {}",
        note(first),
        first.runs,
        of_all(trials)
    )
}

/// The sentence on the machine, if there is one, with a space behind it.
fn note(first: &CacheTrial) -> String {
    first.note.as_ref().map_or_else(String::new, |note| format!("{note} "))
}

/// The sentences on all bars.
fn of_all(trials: &[CacheTrial]) -> String {
    let mut words = "Bars begin at zero.".to_owned();
    let is_limit = |trial: &&CacheTrial| ![PLAIN, "nocache", UNCACHED].contains(&&*trial.way);
    if let Some(limited) = trials.iter().find(is_limit) {
        words += &format!(
            " {}: a limit of a control group, for the memory of the program and its page cache.",
            limited.way
        );
    }
    if trials.iter().any(|trial| trial.killed_runs > 0) {
        words += " Killed: by the kernel, at that limit.";
    }
    words
}

/// A time beside the plain one, with its interval.
fn beside_plain(trial: &CacheTrial) -> String {
    let Some(ratio) = trial.beside_plain else { return "–".to_owned() };
    let ends = trial.beside_plain_low.zip(trial.beside_plain_high);
    let ends = ends.map_or(String::new(), |(low, high)| format!(" ({low:.2} – {high:.2})"));
    format!("{ratio:.2}{ends}")
}

/// A share of the other program's file, with its range.
fn kept(trial: &CacheTrial, share: Option<KeptShare>) -> String {
    let Some(share) = share else { return killed(trial).words };
    let [median, low, high] = [share.median, share.range.0, share.range.1].map(|one| one * 100.0);
    format!("{median:.0} % ({low:.0} – {high:.0} %)")
}

fn table(trials: &[CacheTrial]) -> Table {
    let columns = [
        "Program",
        "Way",
        "#Kept, read once",
        "#Kept, read three times",
        "#Own files left",
        "#Time",
        "#Beside plain",
        "#Runs",
    ];
    let mut table = Table::new("Trials", &columns);
    for trial in trials {
        table.push(vec![
            Cell::head(&trial.program),
            Cell::text(&trial.way),
            Cell::number(kept(trial, trial.kept())),
            Cell::number(kept(trial, trial.thrice_kept())),
            Cell::number(units::size(trial.left_bytes)).with_key(trial.left_bytes),
            Cell::number(format!("{} s", figure(trial.seconds))),
            Cell::number(beside_plain(trial)),
            Cell::number(trial.runs.to_string()),
        ]);
    }
    table
}
