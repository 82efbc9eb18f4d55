//! `hot`: the folders that programs wait for, as a tree.

use std::collections::BTreeMap;

use super::super::charts::Charts;
use super::super::pieces::{Cell, Grade, Piece, Section, Table};
use super::super::words::{NO_FIGURE, date, milliseconds, number, path};
use super::Draft;
use crate::chart::{
    FolderBars, TimeLine, TreemapClass, TreemapItem, figure, folders as folder_bars, over_time,
    treemap, whole_size,
};
use crate::outputs::{HotAdvice, HotFolder, HotHistory, HotRun, HotTotals};
use fsure_core::{count, units};

/// Advice that takes memory.
const IN_MEMORY: [&str; 2] = ["bind", "pin"];

/// Share of the time from which on it is shown. Above 1, several programs waited at once.
const SHARE_MIN: f64 = 0.001;

/// Folders of the table; all are in the picture.
const ROWS_MAX: usize = 200;

/// Seconds from which on a time axis is in hours.
const HOURS_FROM_S: f64 = 3.0 * HOUR_S;

/// Seconds of an hour.
const HOUR_S: f64 = 3600.0;

/// The section of a run.
pub(super) fn section(run: &HotRun, charts: &mut Charts) -> Section {
    let mut draft = Draft::new("hot");
    if let Some(totals) = &run.summary {
        let watched = watched(totals);
        match totals.totals.waited_ms {
            Some(waited) => {
                let waited = milliseconds(waited);
                let who = if totals.is_of_command { "The command" } else { "Programs" };
                draft.verdict(
                    Grade::Plain,
                    format!("{who} waited {waited} for storage in {watched}"),
                );
                draft.key(waited, format!("of waiting in {watched}"));
            }
            None => {
                let writes = count(totals.totals.writes);
                draft.verdict(Grade::Plain, format!("{writes} writes in {watched}"));
                draft.key(writes, format!("writes in {watched}"));
            }
        }
        if let Some(hottest) = run.folders.first() {
            let folder = path(&hottest.path, hottest.path_bytes.as_ref());
            draft.note(format!("The hottest folder is {folder}."));
        }
        if let Some(took) = totals.metadata_ms {
            let took = milliseconds(took);
            draft.note(format!("Making, truncating, renaming and removing files took it {took}."));
        }
        if totals.processes_left > 0 {
            let left = number(totals.processes_left, "process", "processes");
            draft.note(format!("{left} of the command still ran at its end."));
        }
        if let Some(logged) = totals.logged {
            let calls = number(logged, "single call", "single calls");
            draft.note(format!("The result has {calls}, too, with time, program and file."));
        }
        for lost in &totals.lost {
            draft.note(format!("LOST: {} {}.", count(lost.count), lost.what));
        }
        if totals.ended_early {
            draft.note("The run was ended early.");
        }
        if let Some(why) = &totals.fell_back {
            draft.note(format!("Seen by {} only: {why}.", totals.source));
        }
        if totals.folders_not_visible > 0 {
            let folders = count(totals.folders_not_visible);
            draft.note(format!("{folders} of the folders could not be seen from here."));
        }
        if let Some(history) = &totals.history {
            add_history(&mut draft, history);
        }
        draft.fact("Source", &totals.source);
        draft.fact("Duration", watched);
        draft.plain_exit_code(totals.exit_code);
    }
    draft.part("Advice", advice(run));
    draft.part("What is waited for, and what is moved", beside(run, charts));
    draft.part("Where programs wait", picture(run, charts));
    draft.part("Waiting over time", waiting(run, charts));
    draft.part("Folders", folders(run));
    if let Some(totals) = &run.summary {
        let unseen = totals.not_seen.iter().map(|what| (what.clone(), String::new()));
        let unseen: Vec<_> = unseen.collect();
        draft.part("Not seen", (!unseen.is_empty()).then_some(Piece::List(unseen)));
    }
    draft.done()
}

/// The time for which programs were watched.
fn watched(totals: &HotTotals) -> String {
    match &totals.history {
        Some(_) => units::span(totals.seconds),
        None => format!("{} s", figure(totals.seconds)),
    }
}

/// Tells which time a history covers.
fn add_history(draft: &mut Draft, history: &HotHistory) {
    let intervals = number(history.intervals, "interval", "intervals");
    let (began, ended) = (date(&history.began), date(&history.ended));
    draft.note(format!("Recorded in {intervals} from {began} to {ended} UTC."));
    if history.seconds_missing > 0.0 {
        let span = units::span(history.seconds_missing);
        let gaps = number(history.gaps.len() as u64, "gap", "gaps");
        draft.note(format!("Not recorded: {span}, with {gaps}; no figure takes it for quiet."));
    }
}

fn advice(run: &HotRun) -> Option<Piece> {
    let columns =
        ["Advice", "Folder", "#Saves, s an hour", "#% of the time", "#Memory", "Risk", "Why"];
    let mut table = Table::new("Advice", &columns);
    for line in &run.advice {
        let memory = line.memory_bytes.map_or_else(|| NO_FIGURE.to_owned(), units::size);
        table.push(vec![
            Cell::text(&line.advice),
            Cell::path(path(&line.path, line.path_bytes.as_ref())),
            Cell::number(figure(line.saves_s_per_hour)).with_key(line.saves_s_per_hour),
            Cell::number(figure(line.saves_s_per_hour / HOUR_S * 100.0))
                .with_key(line.saves_s_per_hour),
            Cell::number(memory),
            Cell::text(&line.risk),
            Cell::sentences(&line.why),
        ]);
    }
    table.unless_empty()
}

/// The time for which programs waited beside the bytes that they moved: of the folders that there
/// is advice on, each with all below it, or else of those in which something was done.
fn beside(run: &HotRun, charts: &mut Charts) -> Option<Piece> {
    const BARS_MAX: usize = 10;
    let has_time = run.folders.iter().any(|folder| folder.own.waited_ms.is_some());
    let mut bars = if run.advice.is_empty() { by_folder(run) } else { by_advice(run) };
    bars.sort_by(|one, two| {
        let bytes = |bars: &FolderBars| bars.moved.0 + bars.moved.1;
        let by_bytes = bytes(two).total_cmp(&bytes(one));
        two.waited.0.total_cmp(&one.waited.0).then(by_bytes)
    });
    let left_out = bars.len().saturating_sub(BARS_MAX);
    bars.truncate(BARS_MAX);
    let mut words =
        "Sorted by waiting. All bars begin at zero, each kind on its own scale; one that is too \
         short to be seen is left out."
            .to_owned();
    if bars.iter().any(|one| shown_share(one.waited.0, seconds(run)).is_some()) {
        words += " Shares are of the whole time: a program that pauses waits for more of its own.";
    }
    if left_out > 0 {
        let others = number(left_out as u64, "folder", "folders");
        words += &format!(" {others} with less are left out.");
    }
    let time = run.summary.as_ref().map_or("this time".to_owned(), watched);
    let title = "For which folders do programs wait, and how much do they read and write?";
    let chart = || folder_bars(title, &bars, &time, &words);
    (has_time && bars.len() > 1).then(|| charts.add(&chart(), ""))
}

/// A row for each folder by itself.
fn by_folder(run: &HotRun) -> Vec<FolderBars> {
    let row = |folder: &HotFolder| {
        let path = path(&folder.path, folder.path_bytes.as_ref());
        let waited = (folder.own.waited_ms.unwrap_or_default(), seconds(run));
        bars(path, ("", None), waited, moved(folder))
    };
    run.folders.iter().map(row).collect()
}

/// A row for each advice. Of two folders of which one is in the other, the one that comes first.
fn by_advice(run: &HotRun) -> Vec<FolderBars> {
    let is_in = |path: &str, folder: &str| {
        path.strip_prefix(folder.trim_end_matches('/'))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let mut shown: Vec<&HotAdvice> = Vec::new();
    for advice in &run.advice {
        let is_nested =
            |one: &&HotAdvice| is_in(&one.path, &advice.path) || is_in(&advice.path, &one.path);
        if !shown.iter().any(is_nested) {
            shown.push(advice);
        }
    }
    let row = |advice: &&HotAdvice| {
        let own = || run.folders.iter().filter(|folder| is_in(&folder.path, &advice.path));
        let waited = own().filter_map(|folder| folder.own.waited_ms).sum::<f64>();
        let waited = (waited, seconds(run));
        let bytes = own().map(moved).fold([0_u64, 0], |sums, bytes| {
            [sums[0].saturating_add(bytes[0]), sums[1].saturating_add(bytes[1])]
        });
        let path = path(&advice.path, advice.path_bytes.as_ref());
        let memory = advice.memory_bytes.filter(|_| IN_MEMORY.contains(&advice.advice.as_str()));
        bars(path, (&advice.advice, memory), waited, bytes)
    };
    shown.iter().map(row).collect()
}

/// The share of the watched time, as far as it is shown.
fn shown_share(waited_ms: f64, seconds: Option<f64>) -> Option<f64> {
    let share = waited_ms / 1e3 / seconds?;
    (SHARE_MIN..1.0).contains(&share).then_some(share)
}

/// The time that was watched; `None` if the run was cut off, or if it was none.
fn seconds(run: &HotRun) -> Option<f64> {
    run.summary.as_ref().map(|totals| totals.seconds).filter(|seconds| *seconds > 0.0)
}

/// The bytes that were read and those that were written.
fn moved(folder: &HotFolder) -> [u64; 2] {
    [folder.own.bytes_read, folder.own.bytes_written].map(Option::unwrap_or_default)
}

fn bars(
    path: String,
    (advice, memory): (&str, Option<u64>),
    (waited_ms, seconds): (f64, Option<f64>),
    [read, written]: [u64; 2],
) -> FolderBars {
    let waited = match shown_share(waited_ms, seconds) {
        Some(share) => format!("{} ({} %)", milliseconds(waited_ms), figure(share * 100.0)),
        None if waited_ms > 0.0 => milliseconds(waited_ms),
        None => "no wait".to_owned(),
    };
    FolderBars {
        path,
        advice: advice.to_owned(),
        memory: memory.map_or(String::new(), whole_size),
        waited: (waited_ms, waited),
        moved: (read as f64, written as f64, whole_size(read.saturating_add(written))),
    }
}

/// The tree of folders as areas: the time for which programs waited, or their writes.
fn picture(run: &HotRun, charts: &mut Charts) -> Option<Piece> {
    const CLASSES: [TreemapClass; 2] = [
        TreemapClass { name: "waited for", style: "warn" },
        TreemapClass { name: "writes", style: "plain" },
    ];
    let has_time = run.folders.iter().any(|folder| folder.own.waited_ms.is_some());
    let item = |folder: &HotFolder| {
        let path = path(&folder.path, folder.path_bytes.as_ref());
        let weight = match folder.own.waited_ms {
            Some(waited) => (waited * 1e3).max(0.0) as u64,
            None => folder.own.writes,
        };
        // The folder itself is what counts, and not the one above it.
        let path = format!("{}/.", path.trim_start_matches('/'));
        TreemapItem { path, weight, class: usize::from(!has_time) }
    };
    let items: Vec<_> = run.folders.iter().map(item).filter(|item| item.weight > 0).collect();
    let words = |weight: u64| match has_time {
        true => milliseconds(weight as f64 / 1e3),
        false => count(weight),
    };
    let chart = || treemap("Folders that programs wait for", &items, &CLASSES, &words);
    (items.len() > 1).then(|| charts.add(&chart(), "The area of a folder is the time."))
}

/// The programs that waited most, over the intervals.
fn waiting(run: &HotRun, charts: &mut Charts) -> Option<Piece> {
    const LINES_MAX: usize = 4;
    let all: f64 = run.intervals.iter().map(|interval| interval.seconds).sum();
    let (unit, seconds) = if all >= HOURS_FROM_S { ("hours", HOUR_S) } else { ("seconds", 1.0) };
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for program in run.intervals.iter().flat_map(|interval| &interval.programs) {
        *sums.entry(&program.program).or_default() += program.waited_ms.unwrap_or_default();
    }
    let mut sums: Vec<_> = sums.into_iter().filter(|(_, waited)| *waited > 0.0).collect();
    sums.sort_by(|one, two| two.1.total_cmp(&one.1));
    let line = |(program, waited): (&str, f64)| {
        let mut at = 0.0;
        let points = run.intervals.iter().map(|interval| {
            at += interval.seconds / seconds;
            let own = interval.programs.iter().filter(|one| one.program == program);
            let waited: f64 = own.filter_map(|one| one.waited_ms).sum();
            (at, if interval.seconds > 0.0 { waited / interval.seconds } else { 0.0 })
        });
        let points = points.collect();
        let words = format!("{program}: {} in all", milliseconds(waited));
        TimeLine { name: program.to_owned(), points, words }
    };
    let lines: Vec<_> = sums.into_iter().take(LINES_MAX).map(line).collect();
    let title = "Programs that wait, over time";
    let axes = format!("ms waited in a second, over {unit}");
    let chart = || over_time(title, &axes, &lines);
    let caption = "Several that wait at once make more than 1000 ms a second. Time that was not \
                   recorded is left out.";
    (run.intervals.len() > 1 && !lines.is_empty()).then(|| charts.add(&chart(), caption))
}

fn folders(run: &HotRun) -> Vec<Piece> {
    let columns = ["Folder", "#Waited", "#Flushes", "#Flushing", "#Written", "#Read", "Programs"];
    let mut table = Table::new("Folders", &columns);
    let none = || NO_FIGURE.to_owned();
    for folder in run.folders.iter().take(ROWS_MAX) {
        let own = &folder.own;
        let waited = own.waited_ms.map_or_else(none, milliseconds);
        table.push(vec![
            Cell::path(path(&folder.path, folder.path_bytes.as_ref())),
            Cell::number(waited).with_key(own.waited_ms.unwrap_or_default()),
            Cell::number(own.fsyncs.map_or_else(none, count)),
            Cell::number(own.fsync_ms.map_or_else(none, milliseconds))
                .with_key(own.fsync_ms.unwrap_or_default()),
            Cell::number(own.bytes_written.map_or_else(none, units::size))
                .with_key(own.bytes_written.unwrap_or_default()),
            Cell::number(own.bytes_read.map_or_else(none, units::size))
                .with_key(own.bytes_read.unwrap_or_default()),
            Cell::text(folder.names.join(", ")),
        ]);
    }
    let left_out = run.folders.len().saturating_sub(ROWS_MAX) as u64;
    let more =
        (left_out > 0).then(|| Piece::Text(format!("{} more are left out.", count(left_out))));
    table.unless_empty().into_iter().chain(more).collect()
}
