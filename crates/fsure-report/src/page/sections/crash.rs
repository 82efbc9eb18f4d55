//! `crash`: the matrix of programs and file systems, and what was lost.

use std::collections::BTreeSet;

use super::super::Named;
use super::super::charts::Charts;
use super::super::pieces::{Cell, Grade, Piece, Section, Table};
use super::super::words::{NO_FIGURE, milliseconds, number};
use super::{Draft, machine_of_all};
use crate::chart::{CutCell, CutRun, CutState, are_equally_fast, cuts, distinct, figure};
use crate::outputs::{CrashRun, CutRow, DriveResult, ResultContent};
use fsure_core::count;

/// File systems whose superblock is longer than 512 bytes.
const LONG_SUPERBLOCKS: [&str; 2] = ["ext4", "btrfs"];

/// State of a cut after which some of what was acknowledged is gone, and the rest is sound.
const LOST: &str = "lost";

/// The section of a run.
pub(super) fn section(run: &CrashRun, charts: &mut Charts) -> Section {
    let is_matrix = is_matrix(run);
    let mut draft = Draft::new(if is_matrix { "crash matrix" } else { "crash" });
    if let Some(totals) = &run.summary {
        let cuts = number(totals.cuts, "cut", "cuts");
        let losses = count(totals.losses);
        match (totals.unexpected, totals.losses) {
            (Some(0), _) => {
                draft.verdict(Grade::Good, format!("All cells came out as expected, in {cuts}"));
            }
            (Some(cells), _) => {
                let cells = number(cells, "cell", "cells");
                draft.verdict(Grade::Bad, format!("{cells} came out otherwise than expected"));
            }
            (None, 0) if totals.cuts > totals.harness_broken => {
                draft.verdict(Grade::Good, format!("Nothing was lost in {cuts}"));
            }
            (None, 0) => draft.verdict(Grade::Warn, "Nothing is shown: no cut could be judged"),
            (None, _) => draft.verdict(Grade::Bad, format!("{losses} of {cuts} lost data")),
        }
        if totals.harness_broken > 0 {
            let broken = number(totals.harness_broken, "cut", "cuts");
            draft.note(format!("Of {broken} nothing is known."));
        }
        draft.key(losses, format!("of {cuts} lost data"));
        draft.fact("Seed", totals.seed.to_string());
        draft.fact("Duration", format!("{} s", figure(totals.seconds)));
        draft.plain_exit_code(totals.exit_code);
    }
    let without_twin = run.drives.iter().any(|drive| drive.twin_lost == Some(false));
    if without_twin {
        draft.note(
            "On some drives the same run lost nothing on a lying drive either: there, no loss \
             shows nothing.",
        );
    }
    if is_matrix {
        draft.part("Matrix", matrix(&run.drives));
    } else {
        let runs = runs(run, "");
        let title = "What did each cut of the power take?";
        draft.part("Each cut", (!runs.is_empty()).then(|| charts.add(&cuts(title, &runs), "")));
    }
    draft.part("Each drive", drives(&run.drives));
    draft.part("Losses", losses(run));
    draft.part("After a write that failed", after_errors(run));
    draft.done()
}

fn is_matrix(run: &CrashRun) -> bool {
    run.drives.iter().any(|drive| !drive.workload.is_empty())
}

/// One picture of several results.
pub(super) fn side_by_side(results: &[Named], charts: &mut Charts) -> Option<Section> {
    let own_runs = |named: &Named| match &named.result.content {
        ResultContent::Crash(run) if !is_matrix(run) => runs(run, &named.words()),
        _ => Vec::new(),
    };
    let all = results.iter().map(|named| (named, own_runs(named)));
    let (crashed, all): (Vec<_>, Vec<_>) = all.filter(|(_, runs)| !runs.is_empty()).unzip();
    if all.len() < 2 {
        return None;
    }
    let title = format!("Side by side: power cuts of {} results", all.len());
    let runs = all.concat();
    let asked = match are_equally_fast(&runs) {
        true => "How old are the writes that a power cut takes?",
        false => "How many writes are acknowledged a second, and what does a power cut take?",
    };
    let chart = charts.add_with_subtitle(&cuts(asked, &runs), machine_of_all(crashed.into_iter()));
    Some(Section { title, grade: Grade::Plain, pieces: vec![chart], ..Section::default() })
}

/// The cuts of each drive, for the picture. A name of the result stands before that of the drive.
fn runs(run: &CrashRun, name: &str) -> Vec<CutRun> {
    let of_drive = |drive: &DriveResult| {
        let own = run.cuts.iter().filter(|cut| (&cut.drive, &cut.fs) == (&drive.drive, &drive.fs));
        let rate = drive
            .acked_per_second
            .map_or_else(Default::default, |rate| (rate, format!("{} a second", figure(rate))));
        CutRun {
            label: match name {
                "" => format!("{} drive, {}", drive.drive, drive.fs),
                name => name.to_owned(),
            },
            rate,
            oldest_lost: oldest_lost(own.clone()),
            outcome: outcome(drive, own.clone()),
            cuts: own.map(cell).collect(),
            filesystem: filesystem(drive),
            drive: simulated(drive),
            flush: drive.flush_ms.map_or_else(String::new, milliseconds),
            pause_max: drive.pause_max_ms.map_or_else(String::new, milliseconds),
            has_long_superblock: LONG_SUPERBLOCKS.contains(&drive.fs.as_str()),
        }
    };
    run.drives.iter().map(of_drive).filter(|run| !run.cuts.is_empty()).collect()
}

/// Age of the oldest write that a cut took, in milliseconds, and the same in words.
fn oldest_lost<'a>(cuts: impl Iterator<Item = &'a CutRow>) -> (f64, String) {
    match cuts.filter_map(|cut| cut.oldest_lost_ms).max() {
        Some(ms) => (ms as f64, milliseconds(ms as f64)),
        None => (0.0, "no loss".to_owned()),
    }
}

/// The result of all cuts of a drive. The age is that of losses behind which the rest is sound.
fn outcome<'a>(drive: &DriveResult, cuts: impl Iterator<Item = &'a CutRow>) -> String {
    if drive.losses() == 0 {
        return format!("none of {} cuts lost anything", drive.cuts);
    }
    let sound: Vec<_> = cuts.filter(|cut| cut.state == LOST).collect();
    let mut words = vec![match sound.iter().filter_map(|cut| cut.oldest_lost_ms).max() {
        Some(ms) => {
            let most = milliseconds(ms as f64);
            format!("{} of {} cuts lost the last moments, at most {most}", sound.len(), drive.cuts)
        }
        None => format!("{} of {} cuts lost something", drive.losses(), drive.cuts),
    }];
    words.extend((drive.corrupt > 0).then(|| format!("{} damaged", drive.corrupt)));
    words.extend((drive.unmountable > 0).then(|| format!("{} did not mount", drive.unmountable)));
    words.join("; ")
}

/// A file system with its options, in words.
fn filesystem(result: &DriveResult) -> String {
    match result.mount_options.as_str() {
        "" => result.fs.clone(),
        options => format!("{} ({options})", result.fs),
    }
}

/// The behavior of a simulated drive at a flush, in words.
fn simulated(result: &DriveResult) -> String {
    let drive = &result.drive;
    let (name, time) = drive.split_once(':').unwrap_or((drive, ""));
    let time = with_unit_apart(time);
    match name {
        "honest" => "flushes when it is asked to".to_owned(),
        "plp" => "keeps its cache in a cut".to_owned(),
        "lying" if time.is_empty() => "never flushes".to_owned(),
        "lying" => format!("flushes only {time} later"),
        "defer" => format!("says at once that it has flushed, and does so up to {time} later"),
        name => format!("is of the kind {name}"),
    }
}

/// Puts a space between the number and the unit of a time as an option has it: `1s`.
fn with_unit_apart(time: &str) -> String {
    match time.find(|letter: char| letter.is_ascii_alphabetic()) {
        Some(at) if at > 0 => format!("{} {}", &time[..at], &time[at..]),
        _ => time.to_owned(),
    }
}

fn cell(cut: &CutRow) -> CutCell {
    let state = match cut.state.as_str() {
        "survived" => CutState::Kept,
        LOST => CutState::Lost,
        "corrupt" => CutState::Damaged,
        "unmountable" => CutState::Unmountable,
        _ => CutState::Unknown,
    };
    let oldest = cut.oldest_lost_ms.filter(|_| matches!(state, CutState::Lost | CutState::Damaged));
    CutCell { state, oldest_lost_ms: oldest.map(|ms| ms as f64), variant: cut.variant.clone() }
}

/// Programs down, file systems across; a colour and a word in each cell.
fn matrix(cells: &[DriveResult]) -> Option<Piece> {
    let column = |cell: &DriveResult| format!("{} on {}", cell.drive, cell.fs);
    let columns = distinct(cells.iter().map(column));
    let workloads: BTreeSet<_> = cells.iter().map(|cell| cell.workload.as_str()).collect();
    let names: Vec<_> =
        std::iter::once("Program").chain(columns.iter().map(String::as_str)).collect();
    let mut table = Table::new("Matrix", &names);
    for workload in workloads {
        let mut row = vec![Cell::head(workload)];
        row.extend(columns.iter().map(|name| {
            let found = |cell: &&DriveResult| cell.workload == workload && column(cell) == *name;
            cells.iter().find(found).map_or_else(|| Cell::text(NO_FIGURE), matrix_cell)
        }));
        table.push(row);
    }
    table.unless_empty()
}

fn matrix_cell(cell: &DriveResult) -> Cell {
    let (losses, cuts) = (cell.losses(), cell.cuts);
    let (grade, word) = match (losses, cell.harness_broken) {
        (0, broken) if broken == cuts => (Grade::Warn, "unknown"),
        (0, _) => (Grade::Good, "survived"),
        (_, _) if cell.unmountable > 0 => (Grade::Bad, "unmountable"),
        (_, _) if cell.corrupt > 0 => (Grade::Bad, "corrupt"),
        (_, _) => (Grade::Bad, "lost"),
    };
    let expected = match cell.as_expected {
        Some(false) => format!("; EXPECTED {}", cell.expected),
        _ => String::new(),
    };
    Cell::heat(word, grade).with_small(format!(
        "{} of {} lost{expected}",
        count(losses),
        count(cuts)
    ))
}

fn drives(drives: &[DriveResult]) -> Option<Piece> {
    let columns = [
        "Drive",
        "On",
        "#Cuts",
        "#Survived",
        "#Lost",
        "#Corrupt",
        "#No mount",
        "#Unknown",
        "#Most lost",
        "#Oldest lost",
        "#Acknowledged a second",
    ];
    let mut table = Table::new("Each drive", &columns);
    for drive in drives {
        let oldest = drive.oldest_lost_ms.map(|ms| milliseconds(ms as f64));
        let name = match drive.workload.as_str() {
            "" => drive.drive.clone(),
            workload => format!("{workload} on {}", drive.drive),
        };
        let mut row = vec![Cell::head(name), Cell::text(&drive.fs)];
        row.extend(
            [
                drive.cuts,
                drive.survived,
                drive.lost,
                drive.corrupt,
                drive.unmountable,
                drive.harness_broken,
                drive.most_lost,
            ]
            .map(|number| Cell::number(count(number)).with_key(number)),
        );
        let rate = drive.acked_per_second.map(figure);
        row.extend(
            [oldest, rate].map(|cell| Cell::number(cell.unwrap_or_else(|| NO_FIGURE.to_owned()))),
        );
        table.push(row);
    }
    table.unless_empty()
}

fn losses(run: &CrashRun) -> Option<Piece> {
    let columns = ["State", "Drive", "Cut", "#Lost", "Missing syncs", "Message"];
    let mut table = Table::new("Losses", &columns);
    for cut in &run.losses {
        let syncs = cut.missing_syncs.iter().map(|sync| format!("{} {}", sync.of, sync.path));
        let workload = cut.workload.as_ref().map_or(String::new(), |name| format!("{name}: "));
        let grade = if cut.state == "harness-broken" { Grade::Warn } else { Grade::Bad };
        table.push(vec![
            Cell::graded(&cut.state, grade),
            Cell::text(format!("{workload}{} on {}", cut.drive, cut.fs)),
            Cell::text(format!("{}, {}", cut.n, cut.variant)),
            Cell::number(cut.lost.map_or_else(|| NO_FIGURE.to_owned(), count)),
            Cell::text(syncs.collect::<Vec<_>>().join(", ")),
            Cell::sentences(cut.detail.clone().unwrap_or_default()),
        ]);
    }
    table.unless_empty()
}

fn after_errors(run: &CrashRun) -> Option<Piece> {
    let columns = ["File system", "A flush reports the failure", "A later flush forgets it"];
    let mut table = Table::new("After a write that failed", &columns);
    let word = |is_so: bool, bad: bool| {
        let grade = if is_so == bad { Grade::Bad } else { Grade::Good };
        Cell::graded(if is_so { "yes" } else { "no" }, grade)
    };
    for line in &run.after_errors {
        table.push(vec![
            Cell::head(&line.fs),
            word(line.reported, false),
            word(line.forgets, true),
        ]);
    }
    table.unless_empty()
}
