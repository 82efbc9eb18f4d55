//! `flush trace` in words and as JSON: what flushes cost a command.

use std::time::Duration;

use fsure_core::units::microseconds;
use fsure_core::{count, escape, json_path_and_bytes};
use fsure_hot::{FlushCost, FlushTrace, FlushedFile};
use fsure_os::flush_trace::FlushKind;
use serde::Serialize;

use super::{command_code, duration, number, table};
use crate::report::json::line;

/// Rows of files, at most.
const FILES: usize = 20;

/// The tables, and what is to be known of them.
pub fn text(traced: &FlushTrace) -> String {
    let mut report = format!("\n{}\n", conclusion(traced));
    if traced.all.count > 0 {
        let mut rows = vec![head("flush")];
        let kind = |(kind, cost): &(FlushKind, _)| row(traced, cost, kind.name().to_owned());
        rows.extend(traced.kinds.iter().map(kind));
        if traced.kinds.len() > 1 {
            rows.push(row(traced, &traced.all, "all".to_owned()));
        }
        rows.push(head("flush of file"));
        let file = |file: &FlushedFile| {
            row(traced, &file.cost, format!("{} {}", file.kind.name(), path(file)))
        };
        rows.extend(traced.files.iter().take(FILES).map(file));
        report += &table(&rows, |column| column + 1 == rows[0].len());
        let more = traced.files.len().saturating_sub(FILES) as u64;
        if more > 0 {
            report += &format!("and {} of less time\n", number(more, "file", "files"));
        }
        report += &saved_at_most(traced);
    }
    report + &closing(traced)
}

fn conclusion(traced: &FlushTrace) -> String {
    let (time, all) = (duration(traced.command.time), &traced.all);
    if all.count == 0 {
        return format!("The command ran for {time} and flushed nothing.");
    }
    let waited = Duration::from_nanos(all.waited_ns());
    format!(
        "The command ran for {time}, and for {} of it ({}) it was in {}.",
        duration(waited),
        percent(traced.share(all)),
        number(all.count, "flush", "flushes"),
    )
}

/// Returns the most that deferring saves, and its price.
fn saved_at_most(traced: &FlushTrace) -> String {
    let cost = &traced.deferrable;
    if cost.count == 0 {
        return "'fsure defer' would save nothing: it answers fsync, fdatasync and syncfs at \
                once, and there was none.\n"
            .to_owned();
    }
    format!(
        "'fsure defer' would save {} at most ({}), on a file system that keeps the order of \
         writes, and a power cut would lose what was acknowledged within '--max-loss'.\n",
        duration(Duration::from_nanos(cost.waited_ns())),
        percent(traced.share(cost)),
    )
}

/// Returns sentences on what was not seen.
fn closing(traced: &FlushTrace) -> String {
    let mut text = String::new();
    if traced.processes_left > 0 {
        let left = number(traced.processes_left as u64, "process", "processes");
        text +=
            &format!("{left} of the command still ran at its end; what followed is not in it. ");
    }
    text += &format!("Not seen: {}.", traced.blind.join("; "));
    for (what, times) in &traced.lost {
        text += &format!(" LOST: {} {what}.", count(*times));
    }
    text + "\n"
}

fn head(last: &str) -> Vec<String> {
    ["calls", "failed", "total", "share", "median", "99 %", "max", last].map(str::to_owned).to_vec()
}

fn row(traced: &FlushTrace, cost: &FlushCost, name: String) -> Vec<String> {
    let time = |ns: u64| microseconds(ns as f64 / 1e3);
    vec![
        count(cost.count),
        count(cost.failed),
        time(cost.sum_ns),
        percent(traced.share(cost)),
        time(cost.percentile_ns(50)),
        time(cost.percentile_ns(99)),
        time(cost.max_ns),
        name,
    ]
}

fn path(file: &FlushedFile) -> String {
    let Some(traced) = &file.file else { return "(no file)".to_owned() };
    let Some(path) = &traced.path else {
        let ((major, minor), ino) = (traced.device, traced.ino);
        return format!("<not visible> {major}:{minor}:{ino}");
    };
    let mut name = escape(&fsure_os::path::bytes(path));
    if !traced.is_there {
        name += " (since removed or renamed)";
    }
    name
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Figures of some flushes.
#[derive(Serialize)]
struct CostFields {
    count: u64,
    failed: u64,
    total_ms: f64,
    waited_ms: f64,
    share: f64,
    p50_us: f64,
    p99_us: f64,
    max_us: f64,
}

impl CostFields {
    fn of(traced: &FlushTrace, cost: &FlushCost) -> Self {
        let us = |ns: u64| ns as f64 / 1e3;
        Self {
            count: cost.count,
            failed: cost.failed,
            total_ms: ms(cost.sum_ns),
            waited_ms: ms(cost.waited_ns()),
            share: traced.share(cost),
            p50_us: us(cost.percentile_ns(50)),
            p99_us: us(cost.percentile_ns(99)),
            max_us: us(cost.max_ns),
        }
    }
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

#[derive(Serialize)]
struct KindLine {
    r#type: &'static str,
    kind: &'static str,
    is_deferrable: bool,
    #[serde(flatten)]
    cost: CostFields,
}

#[derive(Serialize)]
struct FileLine {
    r#type: &'static str,
    kind: &'static str,
    /// Path of the file when it was first flushed; null if it has none.
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    /// True if the path leads to the file at the end.
    is_there: bool,
    #[serde(flatten)]
    cost: CostFields,
}

#[derive(Serialize)]
struct LostLine {
    what: &'static str,
    count: u64,
}

#[derive(Serialize)]
struct FlushTraceSummary<'a> {
    r#type: &'static str,
    command: &'static str,
    seconds: f64,
    #[serde(flatten)]
    all: CostFields,
    deferrable_ms: f64,
    deferrable_share: f64,
    processes_left: usize,
    not_seen: &'a [String],
    lost: Vec<LostLine>,
    exit_code: u8,
}

/// A line for each kind, one for each file and kind, and the summary; no line ends.
pub fn lines(traced: &FlushTrace) -> Vec<String> {
    let kinds = traced.kinds.iter().map(|(kind, cost)| {
        line(&KindLine {
            r#type: "flushes",
            kind: kind.name(),
            is_deferrable: kind.is_deferrable(),
            cost: CostFields::of(traced, cost),
        })
    });
    let files = traced.files.iter().map(|file| file_line(traced, file));
    let summary = line(&FlushTraceSummary {
        r#type: "summary",
        command: "flush trace",
        seconds: traced.command.time.as_secs_f64(),
        all: CostFields::of(traced, &traced.all),
        deferrable_ms: ms(traced.deferrable.waited_ns()),
        deferrable_share: traced.share(&traced.deferrable),
        processes_left: traced.processes_left,
        not_seen: &traced.blind,
        lost: traced.lost.iter().map(|&(what, count)| LostLine { what, count }).collect(),
        exit_code: command_code(traced.command.ended).number(),
    });
    kinds.chain(files).chain([summary]).collect()
}

fn file_line(traced: &FlushTrace, file: &FlushedFile) -> String {
    let at = file.file.as_ref().and_then(|file| file.path.as_ref());
    let named = at.map(|path| json_path_and_bytes(&fsure_os::path::bytes(path)));
    let (path, path_bytes) = named.map_or((None, None), |(text, bytes)| (Some(text), bytes));
    line(&FileLine {
        r#type: "flushed-file",
        kind: file.kind.name(),
        path,
        path_bytes,
        is_there: file.file.as_ref().is_some_and(|file| file.is_there),
        cost: CostFields::of(traced, &file.cost),
    })
}
