//! `hot` for a program: one JSON object per line, whose names outlive the types
//! inside.

use std::collections::BTreeSet;
use std::path::Path;

use fsure_os::io_trace::{FolderIo, IoCounts, ProcessIo, TraceSource};
use serde::Serialize;

use super::history::HistoryFacts;
use super::{By, name_of};
use crate::report::json::line;
use fsure_core::ExitCode;
use fsure_core::json_path_and_bytes;
use fsure_hot::{Advised, FolderNode, Hot, waited_ns};

/// A folder in which something was done directly: `fsync_ms` and its neighbours
/// are its own, `below` has them with all that is below it.
#[derive(Serialize)]
struct FolderLine<'a> {
    r#type: &'static str,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    /// True if the path leads to the folder. It does not if the folder is deleted or lies
    /// in a mount that this process does not see.
    is_visible: bool,
    #[serde(flatten)]
    own: Figures,
    processes: usize,
    names: BTreeSet<&'a str>,
    advice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    below: Option<Figures>,
}

/// A figure is null if the source cannot measure it.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Figures {
    waited_ms: Option<f64>,
    fsync_ms: Option<f64>,
    bytes_written: Option<u64>,
    bytes_read: Option<u64>,
    writes: u64,
    reads: u64,
    fsyncs: Option<u64>,
    write_ms: Option<f64>,
    synced_write_ms: Option<f64>,
    read_ms: Option<f64>,
    missed_ms: Option<f64>,
    bytes_missed: Option<u64>,
    bytes_mapped: Option<u64>,
}

impl Figures {
    pub(super) fn of(counts: &IoCounts, source: TraceSource) -> Self {
        let is_reported = source == TraceSource::Ebpf;
        let number = |value| is_reported.then_some(value);
        let ms = |ns: u64| is_reported.then_some(ns as f64 / 1e6);
        Self {
            waited_ms: ms(waited_ns(counts)),
            fsync_ms: ms(counts.fsync_ns),
            bytes_written: number(counts.bytes_written),
            bytes_read: number(counts.bytes_read),
            writes: counts.writes,
            reads: counts.reads,
            fsyncs: number(counts.fsyncs),
            write_ms: ms(counts.write_ns),
            synced_write_ms: ms(counts.synced_write_ns),
            read_ms: ms(counts.read_ns),
            missed_ms: ms(counts.missed_ns),
            bytes_missed: number(counts.bytes_missed),
            bytes_mapped: number(counts.bytes_mapped),
        }
    }
}

/// A line for each folder in which something was done, hottest first; no line
/// ends.
pub fn folder_lines(hot: &Hot, by: By) -> Vec<String> {
    let (mut all, mut left) = (vec![], vec![&hot.tree]);
    while let Some(node) = left.pop() {
        if !node.own.is_nothing() {
            all.push((by.heat(&node.own), of_node(hot, node)));
        }
        left.extend(&node.children);
    }
    all.extend(hot.unseen.iter().map(|folder| (by.heat(&folder.counts), of_unseen(hot, folder))));
    all.sort_by(|a, b| (&b.0, &a.1).cmp(&(&a.0, &b.1)));
    all.into_iter().map(|(_, line)| line).collect()
}

fn of_node(hot: &Hot, node: &FolderNode) -> String {
    let (path, path_bytes) = text(&node.path);
    line(&FolderLine {
        r#type: "folder",
        path,
        path_bytes,
        is_visible: true,
        own: Figures::of(&node.own, hot.source),
        processes: node.own_processes.len(),
        names: names(&node.own_processes),
        advice: hot.advice_on(&node.path).map(fsure_hot::placement_advice::Advice::name),
        below: Some(Figures::of(&node.all, hot.source)),
    })
}

fn of_unseen(hot: &Hot, folder: &FolderIo) -> String {
    line(&FolderLine {
        r#type: "folder",
        path: name_of(folder),
        path_bytes: None,
        is_visible: false,
        own: Figures::of(&folder.counts, hot.source),
        processes: folder.processes.len(),
        names: names(&folder.processes),
        advice: None,
        below: None,
    })
}

fn names(processes: &BTreeSet<ProcessIo>) -> BTreeSet<&str> {
    processes.iter().map(|process| &*process.name).collect()
}

fn text(path: &Path) -> (String, Option<String>) {
    json_path_and_bytes(&fsure_os::path::bytes(path))
}

#[derive(Serialize)]
struct AdviceLine {
    r#type: &'static str,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    advice: &'static str,
    saves_s_per_hour: f64,
    durable_s_per_hour: f64,
    missed_s_per_hour: f64,
    memory_bytes: Option<u64>,
    risk: &'static str,
    why: String,
}

/// A line for each folder that there is advice on; no line ends.
pub fn advice_lines(hot: &Hot) -> Vec<String> {
    let one = |advised: &Advised| {
        let (path, path_bytes) = text(&advised.path);
        let seen = &advised.seen;
        line(&AdviceLine {
            r#type: "advice",
            path,
            path_bytes,
            advice: advised.recommendation.advice.name(),
            saves_s_per_hour: seen.durable + seen.missed,
            durable_s_per_hour: seen.durable,
            missed_s_per_hour: seen.missed,
            memory_bytes: seen.size,
            risk: seen.risk.name(),
            why: advised.recommendation.why.clone(),
        })
    };
    hot.advised.iter().map(one).collect()
}

#[derive(Serialize)]
struct HotSummaryLine<'a> {
    r#type: &'static str,
    command: &'static str,
    source: &'static str,
    /// Reason why the source is not the best one; `None` if it is.
    fell_back: Option<&'a str>,
    seconds: f64,
    #[serde(flatten)]
    totals: Figures,
    folders_not_visible: u64,
    not_seen: &'a [String],
    lost: Vec<LostLine<'a>>,
    /// True if one command was watched.
    is_of_command: bool,
    processes_left: usize,
    /// Number of changes of metadata; `None` if no command was watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata_changes: Option<u64>,
    /// Time that they took.
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata_ms: Option<f64>,
    /// Number of calls that were logged; `None` without a log.
    #[serde(skip_serializing_if = "Option::is_none")]
    logged: Option<u64>,
    /// The history; `None` if it was watched now.
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<HistoryFacts>,
    ended_early: bool,
    exit_code: u8,
}

#[derive(Serialize)]
pub(super) struct LostLine<'a> {
    pub(super) what: &'a str,
    pub(super) count: u64,
}

/// The last line: the source, the time it watched, and what it did not see; no line end.
pub fn summary_line(hot: &Hot, exit_code: ExitCode) -> String {
    let recorded_unseen = hot.history.as_ref().map_or(0, |history| history.not_visible.count);
    line(&HotSummaryLine {
        r#type: "summary",
        command: "hot",
        source: hot.source.name(),
        fell_back: hot.fell_back.as_deref(),
        seconds: hot.seconds,
        totals: Figures::of(&hot.totals(), hot.source),
        folders_not_visible: hot.unseen.len() as u64 + recorded_unseen,
        not_seen: &hot.blind,
        lost: hot.lost.iter().map(|(what, count)| LostLine { what, count: *count }).collect(),
        is_of_command: hot.command.is_some(),
        processes_left: hot.processes_left,
        metadata_changes: hot.metadata.map(|changes| changes.calls),
        metadata_ms: hot.metadata.map(|changes| changes.ns as f64 / 1e6),
        logged: hot.logged,
        history: hot.history.as_ref().map(HistoryFacts::of),
        ended_early: hot.ended_by.is_some(),
        exit_code: exit_code.number(),
    })
}
