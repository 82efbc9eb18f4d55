//! `ram try`: the times of a command on the disk, in memory and with deferred flushes.

use super::super::charts::Charts;
use super::super::pieces::{Cell, Grade, Piece, Section, Table};
use super::super::words::{milliseconds, number};
use super::Draft;
use crate::chart::{Amount, amounts, figure};
use crate::outputs::{TrialRun, TrialWay};
use fsure_core::count;
use fsure_measure::stats::SURE_RUNS;

/// The section of a run.
pub(super) fn section(run: &TrialRun, charts: &mut Charts) -> Section {
    let mut draft = Draft::new("ram try");
    if let Some(totals) = &run.summary {
        draft.verdict(Grade::Plain, verdict(run));
        let lost = milliseconds(totals.max_loss_ms);
        if let Some(whole) = fastest(run).and_then(|(way, _)| whole_ratio(run, way)) {
            draft.note(format!(
                "With the time of its copies it is {} times as fast.",
                figure(whole)
            ));
        }
        draft.note(format!(
            "In memory and deferred, a power cut loses up to {lost} of what was acknowledged."
        ));
        if totals.turns < SURE_RUNS as u64 {
            draft.note(format!("Less than {SURE_RUNS} turns show no difference for sure."));
        }
        if totals.ended_early {
            draft.note("The run was ended early.");
        }
        draft.fact("Turns", number(totals.turns, "turn", "turns"));
        draft.plain_exit_code(totals.exit_code);
    }
    if let Some((way, ratio)) = fastest(run) {
        draft.key(figure(ratio), format!("times as fast {}", words(way)));
    }
    let refused = run.ways.iter().filter_map(|way| {
        let why = way.refused.as_ref()?;
        Some(Piece::Note(Grade::Warn, format!("Not run {}: {why}.", words(way))))
    });
    draft.part("Not run", refused);
    draft.part("Time of the command", picture(run, charts).into_iter().chain(table(run)));
    draft.done()
}

/// The way whose interval shows that it is faster, if there is one.
fn fastest(run: &TrialRun) -> Option<(&TrialWay, f64)> {
    let is_faster = |way: &&TrialWay| {
        way.runs >= SURE_RUNS as u64 && way.ratio_low.is_some_and(|low| low > 1.0)
    };
    let ratios = run.ways.iter().filter(is_faster).filter_map(|way| Some((way, way.ratio?)));
    ratios.max_by(|one, two| one.1.total_cmp(&two.1))
}

/// Ratio of the whole times on the disk and in this way.
fn whole_ratio(run: &TrialRun, way: &TrialWay) -> Option<f64> {
    let disk = run.ways.iter().find(|way| way.way == "disk")?;
    Some(disk.whole_s? / way.whole_s.filter(|seconds| *seconds > 0.0)?)
}

fn verdict(run: &TrialRun) -> String {
    match fastest(run) {
        Some((way, ratio)) => {
            format!("The command is {} times as fast {}", figure(ratio), words(way))
        }
        None if run.ways.iter().all(|way| way.runs == 0) => "Nothing was measured".to_owned(),
        None => "The command is not shown to be faster in memory, or deferred".to_owned(),
    }
}

fn words(way: &TrialWay) -> &str {
    match &*way.way {
        "disk" => "on the disk",
        "ram" => "in memory",
        other => other,
    }
}

fn picture(run: &TrialRun, charts: &mut Charts) -> Option<Piece> {
    let bars: Vec<_> = run.ways.iter().filter_map(bar).collect();
    let chart = || amounts("Time of the command, by way", &bars);
    (!bars.is_empty()).then(|| charts.add(&chart(), "Medians."))
}

fn bar(way: &TrialWay) -> Option<Amount> {
    let seconds = way.median_s?;
    let value = (seconds * 1e9).max(0.0) as u64;
    Some(Amount { label: words(way).to_owned(), value, words: milliseconds(seconds * 1e3) })
}

fn table(run: &TrialRun) -> Option<Piece> {
    let columns = ["Way", "#Runs", "#Command", "#Interval", "#With its copies", "#Times as fast"];
    let mut table = Table::new("Times", &columns);
    let time = |seconds: Option<f64>| {
        seconds.map_or_else(|| "\u{2013}".to_owned(), |seconds| milliseconds(seconds * 1e3))
    };
    for way in run.ways.iter().filter(|way| way.runs > 0) {
        let ratio = way.ratio.map_or_else(String::new, |ratio| {
            let [low, high] = [way.ratio_low, way.ratio_high].map(Option::unwrap_or_default);
            format!("{} ({} to {})", figure(ratio), figure(low), figure(high))
        });
        table.push(vec![
            Cell::text(words(way)),
            Cell::number(count(way.runs)).with_key(way.runs),
            Cell::number(time(way.median_s)).with_key(way.median_s.unwrap_or_default()),
            Cell::number(format!("{} to {}", time(way.low_s), time(way.high_s))),
            Cell::number(time(way.whole_s)).with_key(way.whole_s.unwrap_or_default()),
            Cell::number(ratio),
        ]);
    }
    table.unless_empty()
}
