//! `flush trace`: the part of a command's time that its flushes took.

use super::super::charts::Charts;
use super::super::pieces::{Cell, Grade, Piece, Section, Table};
use super::super::words::{milliseconds, number, path};
use super::Draft;
use crate::chart::{Amount, amounts, figure, microseconds};
use crate::outputs::{FlushTraceRun, FlushTraceTotals, FlushedKind, TracedCost};
use fsure_core::count;

/// Files of the table.
const ROWS_MAX: usize = 200;
/// Files of the picture.
const BARS_MAX: usize = 12;

/// The section of a run.
pub(super) fn section(run: &FlushTraceRun, charts: &mut Charts) -> Section {
    let mut draft = Draft::new("flush trace");
    if let Some(totals) = &run.summary {
        judge(&mut draft, totals);
        draft.part("The time of the command", [charts.add(&times(totals), "")]);
    }
    draft.part("By kind", kinds(run));
    let of_files = by_file(run, charts).into_iter().chain(files(run));
    draft.part("By file", of_files);
    let left_out = run.files.len().saturating_sub(ROWS_MAX) as u64;
    draft.part(
        "Left out",
        (left_out > 0).then(|| Piece::Text(format!("{} more rows of files.", count(left_out)))),
    );
    if let Some(totals) = &run.summary {
        let unseen: Vec<_> =
            totals.not_seen.iter().map(|what| (what.clone(), String::new())).collect();
        draft.part("Not seen", (!unseen.is_empty()).then_some(Piece::List(unseen)));
    }
    draft.done()
}

fn judge(draft: &mut Draft, totals: &FlushTraceTotals) {
    let (whole, all) = (milliseconds(totals.seconds * 1e3), &totals.all);
    let (waited, share) = (milliseconds(all.waited_ms), percent(all.share));
    let flushes = number(all.count, "flush", "flushes");
    if all.count == 0 {
        draft.verdict(Grade::Plain, format!("Nothing was flushed in {whole}"));
    } else {
        let words = format!("{flushes} took {waited} of {whole} ({share})");
        draft.verdict(Grade::Plain, words);
        draft.note(format!(
            "'fsure defer' would save {} at most ({}), on a file system that keeps the order of \
             writes, and a power cut would lose what was acknowledged last.",
            milliseconds(totals.deferrable_ms),
            percent(totals.deferrable_share)
        ));
    }
    draft.key(share, "of the command's time in flushes");
    if totals.processes_left > 0 {
        let left = number(totals.processes_left, "process", "processes");
        draft.note(format!("{left} of the command still ran at its end."));
    }
    for lost in &totals.lost {
        draft.note(format!("LOST: {} {}.", count(lost.count), lost.what));
    }
    draft.fact("Duration", whole);
    draft.plain_exit_code(totals.exit_code);
}

/// The whole time beside the parts of it that are flushes.
fn times(totals: &FlushTraceTotals) -> crate::chart::Chart {
    let bar = |label: &str, ms: f64| Amount {
        label: label.to_owned(),
        value: nanoseconds(ms),
        words: milliseconds(ms),
    };
    let bars = [
        bar("the command", totals.seconds * 1e3),
        bar("in flushes", totals.all.waited_ms),
        bar("in those that can be deferred", totals.deferrable_ms),
    ];
    amounts("The time of the command, and of its flushes", &bars)
}

fn by_file(run: &FlushTraceRun, charts: &mut Charts) -> Option<Piece> {
    let bar = |row: &FlushedKind| Amount {
        label: format!("{} {}", row.kind, name(row)),
        value: nanoseconds(row.cost.total_ms),
        words: milliseconds(row.cost.total_ms),
    };
    let bars: Vec<_> = run.files.iter().take(BARS_MAX).map(bar).collect();
    let chart = || amounts("Times of the flushes, by file", &bars);
    let caption = "The times of calls at the same time are added up.";
    (bars.len() > 1).then(|| charts.add(&chart(), caption))
}

/// The last part of a path: a picture has no room for all of it.
fn name(row: &FlushedKind) -> String {
    let whole = row.path.as_ref().map(|text| path(text, row.path_bytes.as_ref()));
    whole.map_or_else(
        || "(no file)".to_owned(),
        |whole| whole.rsplit('/').next().unwrap_or_default().to_owned(),
    )
}

/// Columns of the figures of some flushes.
const FIGURES: [&str; 7] =
    ["#Calls", "#Failed", "#Total", "#Share", "#Median", "#99 %", "#Longest"];

fn kinds(run: &FlushTraceRun) -> Option<Piece> {
    let mut table = Table::new("Kinds of flushes", &[&["Kind"], &FIGURES[..]].concat());
    for row in &run.kinds {
        table.push([Cell::text(&row.kind)].into_iter().chain(figures(&row.cost)).collect());
    }
    table.unless_empty()
}

fn files(run: &FlushTraceRun) -> Option<Piece> {
    let mut table = Table::new("Flushed files", &[&["Kind", "File"], &FIGURES[..]].concat());
    for row in run.files.iter().take(ROWS_MAX) {
        let names = [Cell::text(&row.kind), file(row)];
        table.push(names.into_iter().chain(figures(&row.cost)).collect());
    }
    table.unless_empty()
}

fn figures(cost: &TracedCost) -> [Cell; 7] {
    let us = |us: f64| Cell::number(microseconds(us)).with_key(us);
    [
        Cell::number(count(cost.count)).with_key(cost.count),
        Cell::number(count(cost.failed)).with_key(cost.failed),
        Cell::number(milliseconds(cost.total_ms)).with_key(cost.total_ms),
        Cell::number(percent(cost.share)).with_key(cost.share),
        us(cost.p50_us),
        us(cost.p99_us),
        us(cost.max_us),
    ]
}

fn file(row: &FlushedKind) -> Cell {
    let Some(text) = &row.path else { return Cell::text("") };
    let gone = if row.is_there { "" } else { " (since removed or renamed)" };
    Cell::path(path(text, row.path_bytes.as_ref()) + gone)
}

fn percent(share: f64) -> String {
    format!("{} %", figure(share * 100.0))
}

/// The length of a bar.
fn nanoseconds(ms: f64) -> u64 {
    (ms * 1e6).max(0.0) as u64
}
