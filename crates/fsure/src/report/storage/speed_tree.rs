//! `speed --tree` for a person: the answer first, then a table of the ways, then what caching
//! did to memory and to a program beside it.

use std::fmt::Write as _;

use super::comparison::wrapped;
use super::{figure, number, table};
use fsure_core::safe;
use fsure_core::units::{self, microseconds};
use fsure_measure::results::{ResultLine, TreeWay};
use fsure_report::cache_words::{
    THROUGH, answer, bystander, costs, loss_or_none, loss_percent, memory, of_load, past_of, ways,
};
use fsure_report::interval_words;

const HEAD: [&str; 8] =
    ["", "MiB/s", "interval", "loss", "user", "kernel", "99 % wait", "longest wait"];

const MEANING: &str = "user, kernel: processor seconds per GiB.\nWaits: of a program that reads \
                       its own files, 64 KiB at a time, meanwhile; of fewer\nthan 100 reads only \
                       the longest.";

/// The whole result as text.
pub fn text(lines: &[ResultLine]) -> String {
    let (ways, costs) = (ways(lines), costs(lines));
    let mut text = String::new();
    if !ways.is_empty() {
        text += &wrapped("", &format!("{}.", answer(&costs)));
    }
    let mut firsts: Vec<&TreeWay> = Vec::new();
    for way in &ways {
        if !firsts.iter().any(|first| is_same_load(first, way)) {
            firsts.push(way);
        }
    }
    for first in &firsts {
        let own: Vec<_> = ways.iter().copied().filter(|way| is_same_load(way, first)).collect();
        text += &table_of_load(&own);
        // In a sweep, the tables are what is to be seen.
        if firsts.len() == 1 {
            text += &details(&own);
        }
    }
    if !ways.is_empty() {
        let interval = interval_words::meaning(ways.iter().map(|way| way.samples.len()));
        let _ = writeln!(text, "interval: {interval}. {MEANING}");
    }
    for line in lines {
        match line {
            ResultLine::NotRun(left) => {
                text += &wrapped("not run: ", &format!("{}: {}", left.name, left.why));
            }
            ResultLine::Warning { words } => text += &wrapped("note: ", words),
            _ => {}
        }
    }
    text
}

fn is_same_load(one: &TreeWay, other: &TreeWay) -> bool {
    (one.wanted_bytes, one.wanted_readers) == (other.wanted_bytes, other.wanted_readers)
}

/// The volumes and the ways that were measured under one load.
fn table_of_load(own: &[&TreeWay]) -> String {
    let mut text = String::new();
    for volume in &own[0].volumes {
        let found = if volume.is_recorded { "by its record" } else { "by a walk" };
        let _ = writeln!(
            text,
            "\n{}: {} {found}, {}; {}",
            safe(&volume.target),
            number(volume.files, "file", "files"),
            units::size(volume.bytes),
            number(volume.readers as u64, "reader", "readers")
        );
    }
    let mut rows = vec![HEAD.map(str::to_owned).to_vec()];
    for way in own {
        rows.push(row(way, own));
        if way.volumes.len() > 1 {
            rows.extend(way.volumes.iter().map(|volume| {
                let mut row = vec![String::new(); HEAD.len()];
                row[0] = format!("  {}", safe(&volume.target));
                row[1] = figure(volume.mib_per_s);
                row
            }));
        }
    }
    text + &table(&rows, |column| column == 0)
}

/// Lines on what was truly measured, and on what caching did to memory and to a program beside
/// it.
fn details(own: &[&TreeWay]) -> String {
    let mut text = String::new();
    for way in own {
        text += &wrapped("", &format!("{}: {}.", way.name, way.measured));
    }
    let through = of_load(own[0], own, THROUGH);
    if let Some(words) = through.and_then(memory) {
        text += &wrapped("", &format!("{words}."));
    }
    let both = past_of(own[0], own).zip(through);
    if let Some(words) = both.and_then(|(past, through)| bystander(past, through)) {
        text += &wrapped("", &format!("{words}."));
    }
    for way in own {
        if let Some((purges, seconds)) = way.purges.zip(way.purge_seconds) {
            let times = number(purges, "time", "times");
            let _ = writeln!(text, "The page cache was emptied {times}, in {seconds:.1} s.");
        }
    }
    text
}

fn row(way: &TreeWay, all: &[&TreeWay]) -> Vec<String> {
    let unknown = || "-".to_owned();
    let seconds = |value: Option<f64>| value.map_or_else(unknown, |value| format!("{value:.2}"));
    let loss = past_of(way, all).and_then(|past| Some(loss_percent(way, past)?.median));
    let bystander = way.bystander;
    vec![
        way.name.clone(),
        figure(way.median),
        format!("{} - {}", figure(way.low), figure(way.high)),
        loss.map_or_else(unknown, loss_or_none),
        seconds(way.user_s_per_gib),
        seconds(way.system_s_per_gib),
        bystander.and_then(|one| one.known_p99_us()).map_or_else(unknown, microseconds),
        bystander.map_or_else(unknown, |one| microseconds(one.max_us)),
    ]
}
