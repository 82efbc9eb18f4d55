//! The part of the page on a run of `verify` and its relatives.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Serialize;

use super::{Charts, Figure};
use crate::chart::{Amount, amounts, figure};
use crate::{Bar, FindingRow, OutputTotals, RunError};
use fsure_core::count;
use fsure_core::{escape, units};

/// A report of `verify`, `update`, `scrub` or `status`.
#[derive(Serialize)]
pub(super) struct Checked {
    file: String,
    title: String,
    is_cut_off: bool,
    exit_code: Option<u8>,
    troubles: Vec<String>,
    /// The name and the result of each root, if there are several.
    roots: Vec<(String, String)>,
    block: Vec<(&'static str, String)>,
    verdicts: Vec<String>,
    rows: Vec<FindingView>,
    shown: String,
    left_out: Option<String>,
    charts: Vec<(Figure, Option<String>)>,
}

#[derive(Serialize)]
struct FindingView {
    verdict: String,
    grade: &'static str,
    gravity: u8,
    path: String,
    what: String,
    size: u64,
    modified: String,
    evidence: String,
}

/// The section of a report.
pub(super) fn section(file: &str, checked: &crate::VerifyOutput, charts: &mut Charts) -> Checked {
    let totals = checked.summary.as_ref();
    let roots: Vec<_> = checked.roots.iter().filter_map(|root| root.root.as_deref()).collect();
    let roots = match (roots.is_empty(), checked.ages.as_slice()) {
        (true, ages) if !ages.is_empty() => ages.iter().map(|age| age.root.as_str()).collect(),
        _ => roots,
    };
    let command = checked.command.as_deref().unwrap_or("Findings");
    let mut verdicts: Vec<_> = checked.found.iter().map(|found| found.verdict.clone()).collect();
    verdicts.dedup();
    let left_out = checked.found_total - checked.found.len() as u64;
    Checked {
        file: file.to_owned(),
        title: format!("{command}: {}", roots.join(", ")),
        is_cut_off: totals.is_none(),
        exit_code: totals.map(|totals| totals.exit_code),
        troubles: troubles(checked),
        roots: each_root(&checked.roots),
        block: totals.filter(|totals| totals.verified.is_empty()).map(block).unwrap_or_default(),
        verdicts,
        rows: checked.found.iter().map(|found| row(found, roots.len() > 1)).collect(),
        shown: count(checked.found.len() as u64),
        left_out: (left_out > 0).then(|| count(left_out)),
        charts: figures(checked, charts),
    }
}

fn figures(checked: &crate::VerifyOutput, charts: &mut Charts) -> Vec<(Figure, Option<String>)> {
    let mut all = Vec::new();
    for age in &checked.ages {
        let chart = amounts(&format!("Last verified: {}", age.root), &bars(&age.verified));
        let oldest = age.oldest.as_ref().map(|oldest| {
            let path = shown(&oldest.path, oldest.path_bytes.as_ref());
            format!("Verified longest ago: {}, {path}.", date(&oldest.verified))
        });
        all.push((charts.add(&chart), oldest));
    }
    if let Some(totals) = checked.summary.as_ref().filter(|totals| totals.bytes_read > 0) {
        let ways = [
            ("direct", "from the medium, past the page cache"),
            ("dontcache", "from the medium, not left in memory"),
            ("dropped", "from the medium, then dropped from memory"),
            ("remote", "from a server or a program"),
            ("cached", "through the page cache: proves nothing of the medium"),
        ];
        let ways = ways.map(|(way, meaning)| {
            let bytes = totals.bytes_by_way.get(way).copied().unwrap_or_default();
            let words = format!("{}, {meaning}", units::size(bytes));
            Amount { label: way.to_owned(), value: bytes, words }
        });
        all.push((charts.add(&amounts("How the data was read", &ways)), None));
    }
    all
}

fn bars(bars: &[Bar]) -> Vec<Amount> {
    let has_bytes = bars.iter().any(|bar| bar.bytes > 0);
    let amount = |bar: &Bar| Amount {
        label: match bar.when.as_str() {
            when @ ("week" | "month" | "quarter" | "year") => format!("this {when}"),
            when => when.to_owned(),
        },
        value: if has_bytes { bar.bytes } else { bar.files },
        words: format!("{}, {} files", units::size(bar.bytes), count(bar.files)),
    };
    bars.iter().map(amount).collect()
}

fn troubles(checked: &crate::VerifyOutput) -> Vec<String> {
    let mut troubles = Vec::new();
    let all = if checked.roots.is_empty() {
        checked.summary.iter().collect::<Vec<_>>()
    } else {
        checked.roots.iter().collect()
    };
    for totals in all {
        let root = totals.root.as_deref().unwrap_or("all roots");
        let reasons = [("OFFLINE", &totals.offline), ("ENDED EARLY", &totals.stopped)];
        for (what, reason) in reasons {
            troubles.extend(reason.as_ref().map(|reason| {
                let message = reason.message.as_deref().unwrap_or_default();
                format!("{what}: {root}: {} {message}", reason.why.replace('-', " "))
            }));
        }
        let untrusted = totals.record_untrusted.as_ref();
        troubles.extend(untrusted.map(|why| format!("RECORD CANNOT BE TRUSTED: {root}: {why}")));
    }
    troubles.extend(checked.failures.iter().map(|RunError { message, hint }| {
        hint.as_ref().map_or_else(|| message.clone(), |hint| format!("{message}; {hint}"))
    }));
    troubles
}

/// The lines of the report for a person, under the same names.
/// Tells several roots apart, which the sums below do not.
fn each_root(roots: &[OutputTotals]) -> Vec<(String, String)> {
    if roots.len() < 2 {
        return Vec::new();
    }
    let words = |root: &OutputTotals| {
        let verdicts = root.verdicts.iter().filter(|(_, files)| **files > 0);
        let verdicts: Vec<_> =
            verdicts.map(|(verdict, files)| format!("{} {verdict}", count(*files))).collect();
        let verdicts =
            if verdicts.is_empty() { "no files".to_owned() } else { verdicts.join(", ") };
        (root.root.clone().unwrap_or_default(), format!("exit code {}: {verdicts}", root.exit_code))
    };
    roots.iter().map(words).collect()
}

fn block(totals: &OutputTotals) -> Vec<(&'static str, String)> {
    let of = |verdict: &str| totals.verdicts.get(verdict).copied().unwrap_or_default();
    let missing_folders = totals.folders.get("missing").copied().unwrap_or_default();
    let rows = [
        ("With hash", totals.with_record),
        ("Without hash", of("new")),
        ("Hashed", totals.hashed),
        ("Missing Files", of("missing")),
        ("Missing Folders", missing_folders),
        ("Changed size", totals.changed_size),
        ("Changed date", of("touched")),
        ("Changed content + date, size unchanged", totals.changed_content_and_date),
        ("Total files differing", totals.differing),
        ("Num ignored folders", totals.ignored_folders),
        ("Num ignored files", totals.ignored_files),
        ("SUSPICIOUS files", totals.suspicious),
        ("Unreadable", of("unreadable")),
        ("Denied", of("denied")),
        ("Busy", of("busy")),
        ("Moved", of("moved")),
        ("Flaky", of("flaky")),
        ("Damaged blocks", totals.damaged_blocks),
        ("Reverted", of("reverted")),
        ("Type changed", of("type-changed")),
        ("Record bad", of("record-bad")),
    ];
    let mut rows: Vec<_> = rows.into_iter().map(|(name, n)| (name, count(n))).collect();
    let rate = units::mib_per_second(totals.bytes_read, totals.seconds);
    let read = units::size(totals.bytes_read);
    let seconds = figure(totals.seconds);
    rows.push(("Read", format!("{read} in {seconds} s = {} MiB/s", figure(rate))));
    rows
}

fn row(found: &FindingRow, with_root: bool) -> FindingView {
    let path = shown(&found.path, found.path_bytes.as_ref());
    let mut evidence = Vec::new();
    if let Some(from) = &found.moved_from {
        evidence.push(format!("recorded as {}", shown(from, found.moved_from_bytes.as_ref())));
    }
    if let Some(then) = &found.recorded {
        if then.size != found.stat.size {
            evidence.push(format!("size was {}", units::size(then.size)));
        }
        if let Some(mtime) = then.mtime.as_ref().filter(|_| then.mtime != found.stat.mtime) {
            evidence.push(format!("date was {}", date(mtime)));
        }
    }
    evidence.extend(ranges("damaged bytes", &found.blocks, found.blocks_left_out));
    evidence.extend(ranges("unreadable bytes", &found.unreadable, found.unreadable_left_out));
    if found.meta > 0 {
        evidence.push(format!("{} differences in metadata", found.meta));
    }
    evidence.extend(found.reason.clone());
    if let Some(known) = &found.known {
        let (since, seen) = (date(&known.since), date(&known.seen));
        evidence.push(format!("known since {since}: {}, last seen {seen}", known.verdict));
    }
    let gravity = found.gravity();
    FindingView {
        verdict: found.verdict.clone(),
        grade: match gravity {
            0..=6 => "bad",
            7..=12 => "warn",
            _ => "plain",
        },
        gravity,
        path: if with_root { format!("{}/{path}", fsure_core::safe(&found.root)) } else { path },
        what: match found.kind.as_str() {
            "file" => units::size(found.stat.size),
            kind => kind.to_owned(),
        },
        size: found.stat.size,
        modified: found.stat.mtime.as_deref().map(date).unwrap_or_default(),
        evidence: evidence.join("; "),
    }
}

/// Exact where the bytes are known, and never anything that a reader's eye or a
/// browser would obey.
fn shown(text: &str, bytes: Option<&String>) -> String {
    let bytes = bytes.and_then(|bytes| BASE64.decode(bytes).ok());
    escape(bytes.as_deref().unwrap_or(text.as_bytes()))
}

/// `2026-11-20 12:00:00` of RFC 3339 in UTC.
fn date(rfc3339: &str) -> String {
    rfc3339.chars().take(19).collect::<String>().replace('T', " ")
}

fn ranges(what: &str, ranges: &[[u64; 2]], left_out: usize) -> Option<String> {
    let list: Vec<_> = ranges.iter().map(|[from, to]| format!("{from}-{to}")).collect();
    let more = if left_out > 0 { format!(" and {left_out} more") } else { String::new() };
    (!list.is_empty()).then(|| format!("{what} {}{more}", list.join(", ")))
}
