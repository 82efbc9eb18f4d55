//! An interval of `hot --top`: what programs and folders did in it, a second.

use fsure_core::units::size;
use fsure_core::{count, json_path_and_bytes, safe};
use fsure_hot::{Interval, waited_ns, written_bytes};
use fsure_os::io_trace::{IoCounts, TraceSource, TracedFolder};
use jiff::tz::TimeZone;
use serde::Serialize;

use super::json::{Figures, LostLine};
use super::{By, calls, figure, name_of, table};
use crate::report::json::line;
use crate::report::{number, timestamp};

/// Rows of each table where no terminal has fewer.
const ROWS: usize = 10;
/// Rows that no table has: the head line, two heads of columns, a blank line.
const OTHER_ROWS: usize = 4;

/// Returns the view of an interval; `rows` are those of the terminal, if there is one.
pub fn top_text(interval: &Interval, by: By, rows: Option<usize>) -> String {
    let each = rows.map_or(ROWS, |rows| rows.saturating_sub(OTHER_ROWS) / 2).max(1);
    let programs = interval.programs.iter().map(|(name, counts)| (safe(name), counts));
    let folders = interval.folders.iter().map(|folder| (name_of(folder), &folder.counts));
    let mut text = headline(interval);
    text += &rows_of("program", programs.collect(), interval.seconds, by, each);
    text += "\n";
    text += &rows_of("folder", folders.collect(), interval.seconds, by, each);
    text
}

fn headline(interval: &Interval) -> String {
    let time = timestamp(interval.at_ns).to_zoned(TimeZone::system()).strftime("%F %T");
    let programs = number(interval.programs.len() as u64, "program", "programs");
    let folders = number(interval.folders.len() as u64, "folder", "folders");
    let lost: u64 = interval.lost.iter().map(|(_, count)| count).sum();
    let lost = if lost > 0 { format!("; LOST so far: {}", count(lost)) } else { String::new() };
    let seconds = figure(interval.seconds);
    format!("{time}: {seconds} s, {programs} in {folders}{lost}; Ctrl-C ends it\n")
}

fn rows_of(
    what: &str,
    mut all: Vec<(String, &IoCounts)>,
    seconds: f64,
    by: By,
    most: usize,
) -> String {
    all.sort_by(|a, b| (by.heat(b.1), &a.0).cmp(&(by.heat(a.1), &b.0)));
    let head = ["waits ms/s", "flushes/s", "written/s", "read/s", "missed/s", "calls/s", what];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(all.into_iter().take(most).map(|(name, counts)| row(name, counts, seconds)));
    let last = head.len() - 1;
    table(&rows, |column| column == last)
}

fn row(name: String, counts: &IoCounts, seconds: f64) -> Vec<String> {
    let a_second = |value: u64| if seconds > 0.0 { value as f64 / seconds } else { 0.0 };
    let bytes = |value: u64| size(a_second(value) as u64);
    vec![
        figure(a_second(waited_ns(counts)) / 1e6),
        figure(a_second(counts.fsyncs)),
        bytes(written_bytes(counts)),
        bytes(counts.bytes_read),
        bytes(counts.bytes_missed),
        figure(a_second(calls(counts))),
        name,
    ]
}

#[derive(Serialize)]
struct IntervalLine<'a> {
    r#type: &'static str,
    /// The end of the interval.
    time: String,
    seconds: f64,
    programs: Vec<ProgramFigures<'a>>,
    folders: Vec<FolderFigures>,
    lost: Vec<LostLine<'a>>,
}

#[derive(Serialize)]
struct ProgramFigures<'a> {
    program: &'a str,
    #[serde(flatten)]
    figures: Figures,
}

#[derive(Serialize)]
struct FolderFigures {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    is_visible: bool,
    #[serde(flatten)]
    figures: Figures,
}

/// Returns an interval as a line of JSON, the hottest first; no line end.
pub fn interval_line(interval: &Interval, by: By) -> String {
    let figures = |counts: &IoCounts| Figures::of(counts, TraceSource::Ebpf);
    let mut programs: Vec<_> = interval.programs.iter().collect();
    programs.sort_by_key(|(_, counts)| std::cmp::Reverse(by.heat(counts)));
    let mut folders: Vec<_> = interval.folders.iter().collect();
    folders.sort_by_key(|folder| std::cmp::Reverse(by.heat(&folder.counts)));
    let folder_figures = |folder: &fsure_os::io_trace::FolderIo| {
        let (path, path_bytes) = match &folder.place {
            TracedFolder::At(path) => json_path_and_bytes(&fsure_os::path::bytes(path)),
            TracedFolder::Unseen { .. } => (name_of(folder), None),
        };
        let is_visible = matches!(folder.place, TracedFolder::At(_));
        FolderFigures { path, path_bytes, is_visible, figures: figures(&folder.counts) }
    };
    let program = |(program, counts): &(String, IoCounts)| (program.clone(), figures(counts));
    let named: Vec<_> = programs.into_iter().map(program).collect();
    line(&IntervalLine {
        r#type: "interval",
        time: timestamp(interval.at_ns).to_string(),
        seconds: interval.seconds,
        programs: named
            .iter()
            .map(|(program, figures)| ProgramFigures { program, figures: *figures })
            .collect(),
        folders: folders.into_iter().map(folder_figures).collect(),
        lost: interval.lost.iter().map(|(what, count)| LostLine { what, count: *count }).collect(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use fsure_os::io_trace::FolderIo;

    fn interval() -> Interval {
        let busy = IoCounts { fsyncs: 4, fsync_ns: 100_000_000, writes: 2, ..IoCounts::default() };
        let idle = IoCounts { reads: 1, bytes_read: 4096, ..IoCounts::default() };
        let folder = |path: &str, counts| FolderIo {
            place: TracedFolder::At(path.into()),
            counts,
            processes: BTreeSet::new(),
        };
        Interval {
            at_ns: 0,
            seconds: 2.0,
            folders: vec![folder("/idle", idle), folder("/bu\u{1b}sy", busy)],
            programs: vec![("cat".to_owned(), idle), ("db".to_owned(), busy)],
            lost: vec![("names", 3)],
        }
    }

    #[test]
    fn the_hottest_is_first_and_figures_are_a_second() {
        let text = top_text(&interval(), By::Saved, None);
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].contains(": 2.00 s, 2 programs in 2 folders; LOST so far: 3; Ctrl-C"));
        assert!(lines[2].starts_with("      50.0       2.00"), "{text}");
        assert!(lines[2].ends_with("  db") && lines[3].ends_with("  cat"), "{text}");
        assert!(lines[6].ends_with("  /bu\\x1bsy") && lines[7].ends_with("  /idle"), "{text}");
        assert_eq!(top_text(&interval(), By::Read, Some(6)).lines().count(), 6);
    }

    #[test]
    fn an_interval_is_one_line() {
        let line = interval_line(&interval(), By::Saved);
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(line["programs"][0]["program"], "db");
        assert_eq!(line["programs"][0]["waited_ms"], 100.0);
        assert_eq!(line["folders"][1]["path"], "/idle");
        assert_eq!(line["lost"][0]["count"], 3);
    }
}
