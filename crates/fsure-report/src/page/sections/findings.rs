//! Findings of a run: the table, the maps of damaged files and the picture of where they are.

use super::super::charts::Charts;
use super::super::pieces::{Cell, Grade, Piece, Table};
use super::super::words::{date, exact_date, number, path};
use crate::chart::{TreemapClass, TreemapItem, block_map, treemap};
use crate::outputs::{Checked, FindingRow};
use fsure_core::{count, units};

/// Damaged files of which a map is drawn.
const MAPS_MAX: usize = 12;

/// Findings from which on a picture of where they are is drawn.
const PICTURE_MIN: usize = 10;

/// Ranges of bytes in the table; the map has all of them.
const RANGES_SHOWN_MAX: usize = 6;

/// The table of the findings, the gravest first, and pictures of them.
pub(super) fn pieces(checked: &Checked, with_root: bool, charts: &mut Charts) -> Vec<Piece> {
    if checked.found.is_empty() {
        return Vec::new();
    }
    let shown = number(checked.found.len() as u64, "finding", "findings");
    let left_out = checked.found_total - checked.found.len() as u64;
    let more = match left_out {
        0 => String::new(),
        _ => format!("; {} more are left out", count(left_out)),
    };
    let order = if checked.found.len() > 1 { ", the gravest first" } else { "" };
    let mut pieces = vec![Piece::Text(format!("{shown}{order}{more}. Dates are in UTC."))];
    let mut table = Table::new("Findings", &["Verdict", "Path", "#Size", "Modified", "Evidence"]);
    table.filter = checked.found.iter().map(|found| found.verdict.clone()).collect();
    table.filter.dedup();
    for found in &checked.found {
        table.push(row(found, with_root));
    }
    pieces.push(Piece::Table(table));
    pieces.extend(maps(checked, with_root, charts));
    pieces.extend(picture(checked, with_root, charts));
    pieces
}

/// The grade of a finding.
fn grade(found: &FindingRow) -> Grade {
    match found.gravity() {
        0..=6 => Grade::Bad,
        7..=12 => Grade::Warn,
        _ => Grade::Plain,
    }
}

/// The path as it is shown, below its root if there are several.
fn shown(found: &FindingRow, with_root: bool) -> String {
    let path = path(&found.path, found.path_bytes.as_ref());
    if with_root { format!("{}/{path}", fsure_core::safe(&found.root)) } else { path }
}

fn maps(checked: &Checked, with_root: bool, charts: &mut Charts) -> Vec<Piece> {
    let with_map = || checked.found.iter().filter(|found| found.map.is_some());
    let mut pieces = Vec::new();
    for found in with_map().take(MAPS_MAX) {
        let Some(map) = &found.map else { continue };
        let chart = block_map(&format!("Map of {}", shown(found, with_root)), map);
        let caption = format!("{}: {}.", shown(found, with_root), map.words());
        pieces.push(charts.add(&chart, &caption));
    }
    if pieces.is_empty() {
        return pieces;
    }
    pieces.insert(0, Piece::Heading("Where the files are damaged".to_owned()));
    let left_out = with_map().count().saturating_sub(MAPS_MAX) as u64;
    if left_out > 0 {
        let files = number(left_out, "more file has", "more files have");
        pieces.push(Piece::Text(format!("{files} a map that is not drawn here.")));
    }
    pieces
}

/// A treemap of the folders with findings; its area is files, so that a small damaged file is
/// seen beside large ones.
fn picture(checked: &Checked, with_root: bool, charts: &mut Charts) -> Vec<Piece> {
    const CLASSES: [TreemapClass; 3] = [
        TreemapClass { name: "damaged or unreadable", style: "bad" },
        TreemapClass { name: "to look at", style: "warn" },
        TreemapClass { name: "changed or new", style: "plain" },
    ];
    if checked.found.len() < PICTURE_MIN {
        return Vec::new();
    }
    let item = |found: &FindingRow| TreemapItem {
        path: shown(found, with_root),
        weight: 1,
        class: match grade(found) {
            Grade::Bad => 0,
            Grade::Warn => 1,
            Grade::Plain | Grade::Good => 2,
        },
    };
    let items: Vec<_> = checked.found.iter().map(item).collect();
    let chart = treemap("Folders with findings", &items, &CLASSES, &|findings| {
        number(findings, "finding", "findings")
    });
    let caption = "The area of a folder is its number of findings. What has no finding is not \
                   drawn.";
    vec![Piece::Heading("Where the findings are".to_owned()), charts.add(&chart, caption)]
}

fn row(found: &FindingRow, with_root: bool) -> Vec<Cell> {
    let what = match found.kind.as_str() {
        "file" => units::size(found.stat.size),
        kind => kind.to_owned(),
    };
    let modified = found.stat.mtime.as_deref().map(date).unwrap_or_default();
    vec![
        Cell::graded(&found.verdict, grade(found)).with_key(found.gravity()),
        Cell::path(shown(found, with_root)),
        Cell::number(what).with_key(found.stat.size),
        Cell::date(modified),
        Cell::sentences(evidence(found).join("; ")),
    ]
}

fn evidence(found: &FindingRow) -> Vec<String> {
    let mut evidence = Vec::new();
    if let Some(from) = &found.moved_from {
        evidence.push(format!("recorded as {}", path(from, found.moved_from_bytes.as_ref())));
    }
    if let Some(then) = &found.recorded {
        if then.size != found.stat.size {
            let (then, now) = two_sizes(then.size, found.stat.size);
            evidence.push(format!("size was {then}, is {now}"));
        }
        if let Some(mtime) = then.mtime.as_ref().filter(|_| then.mtime != found.stat.mtime) {
            evidence.push(date_change(mtime, found.stat.mtime.as_deref()));
        }
    }
    evidence.extend(ranges("damaged bytes", &found.blocks, found.blocks_left_out));
    evidence.extend(ranges("unreadable bytes", &found.unreadable, found.unreadable_left_out));
    if found.meta > 0 {
        evidence.push(number(found.meta as u64, "difference", "differences") + " in metadata");
    }
    evidence.extend(found.reason.clone());
    if let Some(known) = &found.known {
        let (since, seen) = (date(&known.since), date(&known.seen));
        evidence.push(format!("known since {since}: {}, last seen {seen}", known.verdict));
    }
    evidence
}

/// Two sizes, exact if they look the same otherwise.
fn two_sizes(then: u64, now: u64) -> (String, String) {
    let rounded = (units::size(then), units::size(now));
    if rounded.0 != rounded.1 {
        return rounded;
    }
    (format!("{} bytes", count(then)), format!("{} bytes", count(now)))
}

/// The recorded date, and both with their fractions if they look the same otherwise.
fn date_change(then: &str, now: Option<&str>) -> String {
    match now.filter(|now| date(then) == date(now)) {
        Some(now) => format!("date was {}, is {}", exact_date(then), exact_date(now)),
        None => format!("date was {}", date(then)),
    }
}

fn ranges(what: &str, ranges: &[[u64; 2]], left_out: usize) -> Option<String> {
    let shown = ranges.iter().take(RANGES_SHOWN_MAX);
    let list: Vec<_> = shown.map(|[from, to]| format!("{from}-{to}")).collect();
    let left_out = left_out + ranges.len().saturating_sub(RANGES_SHOWN_MAX);
    let more = if left_out > 0 { format!(" and {left_out} more") } else { String::new() };
    (!list.is_empty()).then(|| format!("{what} {}{more}", list.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_the_same_is_shown_exactly() {
        assert_eq!(two_sizes(307_700, 307_701).0, "307,700 bytes");
        assert_eq!(two_sizes(1 << 20, 1 << 30).0, "1.0 MiB");
        let (then, now) = ("2026-01-01T00:00:00.5Z", "2026-01-01T00:00:00.25Z");
        assert_eq!(
            date_change(then, Some(now)),
            "date was 2026-01-01 00:00:00.5, is 2026-01-01 00:00:00.25"
        );
    }
}
