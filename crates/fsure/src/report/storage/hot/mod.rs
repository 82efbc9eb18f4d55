//! `hot` for a person: a tree of the folders that programs wait for, and what to
//! do about them.

mod history;
mod json;
mod log;
mod top;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fsure_os::io_trace::{FolderIo, IoCounts, MetadataTime, TraceSource, TracedFolder};

pub use history::{recorded_lines, recorded_summary_line, recorded_text};
pub use json::{advice_lines, folder_lines, summary_line};
pub use log::{LOG_HEAD, call_lines, call_texts};
pub use top::{interval_line, top_text};

use super::{figure, number, table};
use fsure_core::escape;
use fsure_core::units::size;
use fsure_core::{count, safe};
use fsure_hot::placement_advice::{Advice, FolderUse, Scope};
use fsure_hot::{Advised, FolderNode, Hot, durable_ns, waited_ns, written_bytes};

/// The measure by which a folder is hot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// The time for which programs wait for the device: what memory saves.
    #[default]
    Saved,
    /// Bytes written, which wear out a medium.
    Written,
    /// Bytes read.
    Read,
    /// Calls.
    Calls,
}

impl By {
    /// Returns the sort key for the heat: this measure first, and the others, which
    /// decide if it is the same.
    fn heat(self, counts: &IoCounts) -> [u64; 4] {
        let saved = waited_ns(counts);
        let written = written_bytes(counts);
        let (read, calls) = (counts.bytes_read, calls(counts));
        match self {
            Self::Saved => [saved, written, read, calls],
            Self::Written => [written, saved, read, calls],
            Self::Read => [read, saved, written, calls],
            Self::Calls => [calls, saved, written, read],
        }
    }
}

fn calls(counts: &IoCounts) -> u64 {
    counts.reads + counts.writes + counts.fsyncs
}

/// Lines of a tree, at most: what fits a screen.
const ROWS: usize = 25;

/// Lines about folders that no path leads to.
const UNSEEN: usize = 3;

/// The tree, hottest first, and what is to be known of it.
pub fn text(hot: &Hot, by: By) -> String {
    let mut report = String::new();
    let shown = hottest(&hot.tree, by);
    if shown.is_empty() && hot.unseen.is_empty() {
        report += "Nothing was read or written.\n";
    } else {
        let mut rows = vec![HEAD.map(str::to_owned).to_vec()];
        tree_rows(hot, &hot.tree, &shown, (by, 0, Path::new("")), &mut rows);
        let mut unseen: Vec<_> = hot.unseen.iter().collect();
        unseen.sort_by_key(|folder| std::cmp::Reverse(by.heat(&folder.counts)));
        for folder in unseen.iter().take(UNSEEN) {
            rows.push(row(hot, &folder.counts, folder.processes.len(), "", name_of(folder)));
        }
        if let Some(rest) = hot.history.as_ref().map(|history| history.not_visible) {
            let mut last = row(hot, &rest.counts, 0, "", "<deleted or not visible>".to_owned());
            last[PROGRAMS_COLUMN] = "?".to_owned();
            rows.extend((rest.count > 0).then_some(last));
        }
        report += &table(&rows, |column| column + 2 >= HEAD.len());
        if unseen.len() > UNSEEN {
            let more = count((unseen.len() - UNSEEN) as u64);
            report += &format!("and {more} more that are deleted or not visible\n");
        }
    }
    report + &closing(hot)
}

const HEAD: [&str; 10] = [
    "saves s/h",
    "fsync ms",
    "fsyncs",
    "written",
    "read",
    "missed",
    "calls",
    "programs",
    "advice",
    "folder",
];

/// The column of `HEAD` that has the number of programs.
const PROGRAMS_COLUMN: usize = 7;

/// The hottest folders, and all that lead to them.
fn hottest(root: &FolderNode, by: By) -> BTreeSet<PathBuf> {
    let (mut all, mut left) = (vec![], vec![root]);
    while let Some(node) = left.pop() {
        if is_shown(node) {
            all.push((by.heat(&node.all), &node.path));
        }
        left.extend(&node.children);
    }
    all.sort_by(|a, b| b.cmp(a));
    all.into_iter().take(ROWS).map(|(_, path)| path.clone()).collect()
}

/// Returns true if the node does more than lead to one other node.
fn is_shown(node: &FolderNode) -> bool {
    !node.own.is_nothing() || node.children.len() > 1
}

/// The rows of a node and all below it; `above` is the node that is shown around
/// it, and how deep that is.
fn tree_rows(
    hot: &Hot,
    node: &FolderNode,
    shown: &BTreeSet<PathBuf>,
    (by, depth, above): (By, usize, &Path),
    rows: &mut Vec<Vec<String>>,
) {
    let (mut depth, mut above) = (depth, above);
    if shown.contains(&node.path) {
        let advice = hot.advised.iter().find(|one| one.path == node.path);
        let advice = advice.map_or("", |one| one.recommendation.advice.name());
        let name = node.path.strip_prefix(above).unwrap_or(&node.path);
        let name = format!("{}{}", "  ".repeat(depth), shown_path(name));
        rows.push(row(hot, &node.all, node.processes.len(), advice, name));
        (depth, above) = (depth + 1, &node.path);
    }
    let mut children: Vec<_> = node.children.iter().collect();
    children.sort_by_key(|child| std::cmp::Reverse(by.heat(&child.all)));
    for child in children {
        tree_rows(hot, child, shown, (by, depth, above), rows);
    }
}

fn shown_path(path: &Path) -> String {
    escape(&fsure_os::path::bytes(path)).clone()
}

/// A folder that no path leads to, by its numbers.
fn name_of(folder: &FolderIo) -> String {
    match &folder.place {
        TracedFolder::At(path) => shown_path(path),
        TracedFolder::Unseen { device: (major, minor), ino } => {
            format!("<deleted or not visible> {major}:{minor}:{ino}")
        }
    }
}

fn row(hot: &Hot, counts: &IoCounts, programs: usize, advice: &str, name: String) -> Vec<String> {
    // A figure that a source cannot report is not zero.
    let reported =
        |text: String| if hot.source == TraceSource::Ebpf { text } else { "?".to_owned() };
    vec![
        reported(figure(hot.per_hour(waited_ns(counts)))),
        reported(figure(durable_ns(counts) as f64 / 1e6)),
        reported(count(counts.fsyncs)),
        reported(size(written_bytes(counts))),
        reported(size(counts.bytes_read)),
        reported(size(counts.bytes_missed)),
        count(calls(counts)),
        count(programs as u64),
        advice.to_owned(),
        name,
    ]
}

/// Returns sentences on the source, the time it watched, and what it did not see.
fn closing(hot: &Hot) -> String {
    let whom = if hot.command.is_some() { " one command" } else { "" };
    let mut text = match &hot.history {
        Some(history) => history::coverage(hot, history),
        None => format!("Watched{whom} for {:.1} s by {}.", hot.seconds, hot.source.name()),
    };
    if hot.command.is_some() && hot.source == TraceSource::Ebpf {
        text += &waited(hot);
    }
    if hot.processes_left > 0 {
        let left = number(hot.processes_left as u64, "process", "processes");
        text += &format!(" {left} of it still ran at its end; what followed is not in it.");
    }
    if let Some(why) = &hot.fell_back {
        text += &format!(" eBPF is not available: {}.", safe(why));
    }
    text += &format!(" Not seen: {}.", safe(&hot.blind.join("; ")));
    for (what, times) in &hot.lost {
        text += &format!(" LOST: {} {what}.", count(*times));
    }
    if let Some(logged) = hot.logged {
        text += &format!(" Logged: {}.", number(logged, "call", "calls"));
    }
    if hot.ended_by.is_some() {
        text += " The run was ended early.";
    }
    text + "\n"
}

/// Returns a sentence on the time for which a command waited, in all folders.
fn waited(hot: &Hot) -> String {
    let waited_s = waited_ns(&hot.totals()) as f64 / 1e9;
    let share = percent_of_run(hot, waited_s).map(|percent| format!(", {percent} % of its time"));
    let (took, share) = (figure(waited_s), share.unwrap_or_default());
    let waited = format!(" It waited for the device for {took} s{share}.");
    waited + &hot.metadata.map_or_else(String::new, |changes| changed(hot, changes))
}

/// Returns a sentence on the time of the changes of metadata of a command.
fn changed(hot: &Hot, changes: MetadataTime) -> String {
    let changed_s = changes.ns as f64 / 1e9;
    let share = percent_of_run(hot, changed_s).map(|percent| format!(", {percent} %"));
    let (took, share) = (figure(changed_s), share.unwrap_or_default());
    format!(" Making, truncating, renaming and removing files took it {took} s{share}.")
}

/// Returns the share of the time of the run that so many seconds are, in per cent; `None` if it is
/// all or more, of several processes at once.
fn percent_of_run(hot: &Hot, seconds: f64) -> Option<String> {
    let share = seconds / hot.seconds;
    (share < 1.0).then(|| figure(share * 100.0))
}

/// Returns the advice on what to do, folder by folder.
pub fn advice_text(hot: &Hot) -> String {
    if hot.source != TraceSource::Ebpf {
        return "No advice: fsure cannot compute what memory would save, because fanotify reports \
                no times. Run it as root with '--source ebpf'.\n"
            .to_owned()
            + &closing(hot);
    }
    let mut text: String = hot.advised.iter().map(paragraph).collect();
    if hot.advised.is_empty() {
        text += "Nothing was read or written.\n";
    }
    text + &closing(hot)
}

fn paragraph(one: &Advised) -> String {
    let name = one.recommendation.advice.name();
    let saves = match one.recommendation.advice {
        Advice::Bind | Advice::Pin => "saves",
        Advice::Try => "saves of waiting",
        Advice::Exclude | Advice::Leave => "would save",
    };
    let mut facts = format!("{saves} {}", gain(&one.seen));
    if one.recommendation.advice != Advice::Leave {
        let needs = one.seen.size.map_or("more than was counted".to_owned(), size);
        facts += &format!("; needs {needs}; holds: {}", one.seen.risk.name());
    }
    format!(
        "{name:7}  {}\n         {facts}\n         {}\n",
        shown_path(&one.path),
        one.recommendation.why
    )
}

/// Returns what memory would save, with its share of the time. Programs that wait at the same time
/// can make more than all of it, of which no share can be told.
fn gain(seen: &FolderUse) -> String {
    let seconds = seen.durable + seen.missed;
    let share = seconds / 3600.0;
    match seen.scope {
        Scope::Machine if share < 1.0 => {
            format!("{} s per hour ({} % of the time)", figure(seconds), figure(share * 100.0))
        }
        Scope::Machine => format!("{} s per hour", figure(seconds)),
        Scope::Command if share < 1.0 => {
            let (share, times) = (figure(share * 100.0), figure(1.0 / (1.0 - share)));
            format!("{share} % of its time ({times} times as fast)")
        }
        Scope::Command => "all of its time (several processes wait at once)".to_owned(),
    }
}

#[cfg(test)]
mod tests;
