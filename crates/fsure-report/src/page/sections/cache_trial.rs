//! `bench/uncached.py`: what programs leave of the page cache, run as they are and otherwise.

use super::super::charts::Charts;
use super::super::pieces::{Cell, Grade, Piece, Section, Table};
use super::super::words::NO_FIGURE;
use super::Draft;
use crate::chart::{
    Measure, RatioBar, RatioClass, RatioGroup, WayPanel, WayRow, WayScale, distinct, figure,
    microseconds, ratios, ways, whole_size,
};
use crate::interval_words;
use crate::outputs::{CacheTrial, CacheTrialRun, KeptShare};
use fsure_core::units;

/// The way of fsure, and that of a program as it is.
const PLAIN: &str = "plain";
const UNCACHED: &str = "fsure uncached";

/// In place of the figures of a program that was not run in a way.
const NOT_RUN: &str = "not run";

/// The meaning of the ranges of what is kept.
const RANGE: &str = "least to most of the runs";

/// Heads of what is kept.
const MORE: &str = "more is better";
const KEPT: [&str; 2] = ["kept in memory", MORE];

/// The scales of what is kept, and of the time to read it again.
const SHARES: WayScale =
    WayScale { full: Some(1.0), tick: |share| format!("{:.0} %", share * 100.0) };
const TIMES: WayScale = WayScale { full: None, tick: |seconds| microseconds(seconds * 1e6) };

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
        let trials = with_gaps(&run.trials);
        let row = |trial: &CacheTrial| {
            let (command, way) = (trial.program.clone(), trial.way.clone());
            WayRow { command, way, class: class(&trial.way) }
        };
        let rows: Vec<_> = trials.iter().map(row).collect();
        let system = system(first, &run.trials);
        let words = conditions(first, &run.trials);
        for (title, panels) in effects(&trials, &system) {
            let chart = ways(&title, &rows, &panels, (RANGE, &words));
            draft.part("What stays in memory", [charts.add(&chart, "")]);
        }
        draft.part("Cost", cost(&run.trials, &system, charts));
    }
    draft.part("Trials", table(&run.trials).unless_empty());
    draft.done()
}

/// Returns the trials of each program in each way, and one without runs for what was not tried.
fn with_gaps(trials: &[CacheTrial]) -> Vec<CacheTrial> {
    let ways = distinct(trials.iter().map(|trial| trial.way.as_str()));
    let of = |program: &str, way: &str| {
        let is_it = |trial: &&CacheTrial| trial.program == program && trial.way == way;
        trials.iter().find(is_it).cloned().unwrap_or_else(|| CacheTrial {
            program: program.to_owned(),
            way: way.to_owned(),
            ..CacheTrial::default()
        })
    };
    let programs = distinct(trials.iter().map(|trial| trial.program.as_str()));
    programs.iter().flat_map(|program| ways.iter().map(|way| of(program, way))).collect()
}

/// Names the kernel and the version of the control groups, which the name of the limit tells.
fn system(first: &CacheTrial, trials: &[CacheTrial]) -> String {
    let has = |name: &str| trials.iter().any(|trial| trial.way.starts_with(name));
    let version = match () {
        () if has("MemoryHigh") => "control groups of version 2",
        () if has("limit of") => "control groups of version 1",
        () => "",
    };
    let parts: Vec<_> =
        [&*first.kernel, version].into_iter().filter(|one| !one.is_empty()).collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
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

/// The charts of another program's file after each run, by how often it had been read before: the
/// share of it that is in memory, and the time to read it again, which older results do not have.
fn effects(trials: &[CacheTrial], system: &str) -> Vec<(String, Vec<WayPanel>)> {
    let once = |head| kept_panel(head, trials, CacheTrial::kept);
    let thrice = |head| kept_panel(head, trials, CacheTrial::thrice_kept);
    if trials.iter().all(|trial| trial.others_again_seconds.is_none()) {
        let title = format!("How much of another program's file stays in memory{system}?");
        let heads = [["of a file read once", MORE], ["of one read three times", MORE]];
        return vec![(title, vec![once(heads[0]), thrice(heads[1])])];
    }
    let title = |read: &str| {
        format!(
            "How much stays in memory of another program's file that was read {read} before, and \
             how long does it take to read it again{system}?"
        )
    };
    let again = |trial: &CacheTrial| (trial.others_again_seconds, trial.again_range());
    let thrice_again =
        |trial: &CacheTrial| (trial.others_thrice_again_seconds, trial.thrice_again_range());
    vec![
        (title("once"), vec![once(KEPT), again_panel(trials, again)]),
        (title("three times"), vec![thrice(KEPT), again_panel(trials, thrice_again)]),
    ]
}

/// The share of another program's file that is in memory after each run.
fn kept_panel(
    head: [&'static str; 2],
    trials: &[CacheTrial],
    share: fn(&CacheTrial) -> Option<KeptShare>,
) -> WayPanel {
    let bar = |trial: &CacheTrial| {
        let Some(share) = share(trial) else { return no_bar(trial) };
        let words = format!("{:.0} %", share.median * 100.0);
        Measure { median: share.median, range: Some(share.range), words }
    };
    let bars = trials.iter().map(|trial| Some(bar(trial))).collect();
    WayPanel { head, scale: SHARES, bars }
}

/// The time in which the other program reads its file again after each run, with its range.
fn again_panel(
    trials: &[CacheTrial],
    time: impl Fn(&CacheTrial) -> (Option<f64>, Option<(f64, f64)>),
) -> WayPanel {
    let bar = |trial: &CacheTrial| match (time(trial), trial.has_figures()) {
        ((seconds, range), true) => {
            seconds.map(|median| Measure { median, range, words: again(seconds) })
        }
        (_, false) => Some(no_bar(trial)),
    };
    let head = ["time to read it again", "less is better"];
    WayPanel { head, scale: TIMES, bars: trials.iter().map(bar).collect() }
}

/// No bar, for a program that was killed or not run.
fn no_bar(trial: &CacheTrial) -> Measure {
    let words = match trial.killed_runs {
        _ if trial.runs == 0 => NOT_RUN.to_owned(),
        killed if killed == trial.runs => "killed".to_owned(),
        killed => format!("killed {killed}/{}", trial.runs),
    };
    Measure { median: 0.0, range: None, words }
}

/// The speed of each program beside the plain way.
fn cost(trials: &[CacheTrial], system: &str, charts: &mut Charts) -> Option<Piece> {
    let ways = trials.iter().map(|trial| trial.way.as_str()).filter(|way| *way != PLAIN);
    let ways = distinct(ways);
    let classes = ways.iter().map(|way| RatioClass { class: class(way), name: way, meaning: "" });
    let classes: Vec<_> = classes.collect();
    let plains = trials.iter().filter(|trial| trial.way == PLAIN);
    let groups = plains.map(|plain| {
        let own = |way: &&str| {
            let mut own = trials.iter().filter(|trial| trial.program == plain.program);
            own.find(|trial| trial.way == *way).ok_or(NOT_RUN).and_then(times_as_fast)
        };
        let name = format!("{} (plain: {:.1} s)", plain.program, plain.seconds);
        RatioGroup { name, ratios: ways.iter().map(own).collect() }
    });
    let groups: Vec<_> = groups.collect();
    let interval = interval_words::meaning(trials.iter().map(|trial| trial.runs as usize));
    let title = format!("How fast is the program itself in each way, beside plain{system}?");
    let chart = || ratios(&title, &groups, &classes, (&interval, &cost_conditions(trials)));
    (!classes.is_empty()).then(|| charts.add(&chart(), ""))
}

/// The speed of a program beside the plain way, or the reason why there is none.
fn times_as_fast(trial: &CacheTrial) -> Result<RatioBar, &'static str> {
    if trial.killed_runs > 0 {
        return Err("killed");
    }
    let inverse = |ratio: f64| (ratio > 0.0).then(|| 1.0 / ratio);
    let ratio = trial.beside_plain.and_then(inverse).ok_or(NO_FIGURE)?;
    let low = trial.beside_plain_high.and_then(inverse);
    let interval = low.zip(trial.beside_plain_low.and_then(inverse));
    Ok(RatioBar { ratio, interval })
}

/// The conditions of the trials, as sentences.
fn conditions(first: &CacheTrial, trials: &[CacheTrial]) -> String {
    format!(
        "{}A file of {} of another program was in memory, of which there were {} for all. Then the \
         program ran. Medians of {} runs each. {}",
        note(first),
        whole_size(first.others_bytes),
        whole_size(first.memory_bytes),
        interval_words::span(trials.iter().map(|trial| trial.runs as usize / 2)),
        of_all(trials)
    )
}

fn cost_conditions(trials: &[CacheTrial]) -> String {
    format!(
        "{}Equal steps of the axis are equal factors. The time is that until all was on storage, \
         beside plain in the same round: medians of {} runs.",
        trials.first().map_or_else(String::new, note),
        interval_words::span(trials.iter().map(|trial| trial.runs as usize))
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
            " '{}' is a limit of a control group, for the memory of the program and its page cache.",
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
    let Some(ratio) = trial.beside_plain else { return NO_FIGURE.to_owned() };
    let ends = trial.beside_plain_low.zip(trial.beside_plain_high);
    let ends = ends.map_or(String::new(), |(low, high)| format!(" ({low:.2} – {high:.2})"));
    format!("{ratio:.2}{ends}")
}

/// A share of the other program's file, with its range.
fn kept(trial: &CacheTrial, share: Option<KeptShare>) -> String {
    let Some(share) = share else { return no_bar(trial).words };
    let [median, low, high] = [share.median, share.range.0, share.range.1].map(|one| one * 100.0);
    format!("{median:.0} % ({low:.0} – {high:.0} %)")
}

/// The time in which the other program read its file again.
fn again(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| NO_FIGURE.to_owned(), |seconds| microseconds(seconds * 1e6))
}

fn table(trials: &[CacheTrial]) -> Table {
    let columns = [
        "Program",
        "Way",
        "#Kept, read once",
        "#Kept, read three times",
        "#Read again",
        "#Read again, read three times",
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
            Cell::number(again(trial.others_again_seconds)),
            Cell::number(again(trial.others_thrice_again_seconds)),
            Cell::number(units::size(trial.left_bytes)).with_key(trial.left_bytes),
            Cell::number(format!("{} s", figure(trial.seconds))),
            Cell::number(beside_plain(trial)),
            Cell::number(trial.runs.to_string()),
        ]);
    }
    table
}
