//! Several measurements beside each other: which of two drives? One table of A beside B with
//! the ratio, and charts with the marks that databases have published.

use super::super::Named;
use super::super::charts::Charts;
use super::super::pieces::{Cell, Grade, Piece, Section, Table};
use super::marks::{etcd, sqlite};
use super::measured::{database_flush, device, is_unproved, lines, method, rung};
use crate::chart::{Bar, comparison, figure, microseconds};
use crate::outputs::ResultContent;
use fsure_measure::results::{Measurement, ResultLine, StoredResult};

/// Results that have a column of their own.
const COLUMNS_MAX: usize = 6;

/// Sections that hold results of one kind beside each other, if there are several.
pub(in super::super) fn side_by_side(results: &[Named], charts: &mut Charts) -> Vec<Section> {
    let kinds = [Measurement::Speed, Measurement::Flush];
    let of_kind = |kind| {
        let stored = results.iter().filter_map(|named| match &named.result.content {
            ResultContent::Measured(stored) if stored.header.kind == kind => Some(&**stored),
            _ => None,
        });
        stored.collect::<Vec<_>>()
    };
    let mut sections = Vec::new();
    for kind in kinds {
        let stored = of_kind(kind);
        if stored.len() > 1 {
            sections.push(section(kind, &stored, charts));
        }
    }
    sections
}

fn section(kind: Measurement, all: &[&StoredResult], charts: &mut Charts) -> Section {
    let names = names(all);
    let mut pieces = vec![Piece::List(key(&names, all))];
    let of_kind = match kind {
        Measurement::Speed => "throughput",
        Measurement::Flush => "flushes",
    };
    pieces.extend(likeness(all));
    match kind {
        Measurement::Speed => {
            let rows = |stored| {
                lines(stored, rung)
                    .map(|rung| ((rung.name.clone(), rung.unit.clone()), rung.median))
                    .collect::<Vec<_>>()
            };
            pieces.extend(table(
                "Medians",
                &names,
                &all.iter().map(|one| rows(one)).collect::<Vec<_>>(),
                &figure,
            ));
            pieces.extend(speed_chart(&names, all, charts));
        }
        Measurement::Flush => {
            let rows = |stored| {
                lines(stored, method)
                    .map(|method| ((method.name.clone(), "p99".to_owned()), method.p99_us))
                    .collect::<Vec<_>>()
            };
            pieces.extend(flush_charts(&names, all, charts));
            pieces.extend(table(
                "99th percentiles",
                &names,
                &all.iter().map(|one| rows(one)).collect::<Vec<_>>(),
                &microseconds,
            ));
        }
    }
    Section {
        title: format!("Side by side: {of_kind} of {} results", all.len()),
        grade: Grade::Plain,
        pieces,
        ..Section::default()
    }
}

/// A letter for each result.
fn names(all: &[&StoredResult]) -> Vec<String> {
    let letter = |place: usize| match u32::try_from(place).ok().and_then(|n| char::from_u32(65 + n))
    {
        Some(letter) if place < 26 => letter.to_string(),
        _ => (place + 1).to_string(),
    };
    (0..all.len()).map(letter).collect()
}

/// The result that each letter stands for.
fn key(names: &[String], all: &[&StoredResult]) -> Vec<(String, String)> {
    let item = |(name, stored): (&String, &&StoredResult)| {
        let header = &stored.header;
        let targets: Vec<_> = header.targets.iter().map(|target| target.path.as_str()).collect();
        let mut words = vec![targets.join(" ")];
        words.extend(device(stored));
        words.push(header.machine.host.clone());
        words.push(super::date(&header.started));
        if is_unproved(stored) {
            words.push("NOT MEASURED if its flushes reach a drive".to_owned());
        }
        words.retain(|word| !word.is_empty() && word != crate::anonymous::LEFT_OUT);
        (name.clone(), words.join(", "))
    };
    names.iter().zip(all).map(item).collect()
}

/// Says so if the results are of different machines or systems: then not only the drive differs.
fn likeness(all: &[&StoredResult]) -> Option<Piece> {
    let first = &all[0].header;
    let differs = |what: &str, is_other: &dyn Fn(&StoredResult) -> bool| {
        all.iter().any(|stored| is_other(stored)).then(|| what.to_owned())
    };
    let other: Vec<_> = [
        differs("machines", &|one| one.header.machine.host != first.machine.host),
        differs("processors", &|one| one.header.machine.processor != first.machine.processor),
        differs("systems", &|one| one.header.machine.system != first.machine.system),
        differs("options", &|one| one.header.setup != first.setup),
        differs("versions of fsure", &|one| one.header.program != first.program),
    ]
    .into_iter()
    .flatten()
    .collect();
    let words = format!("These are results of different {}.", other.join(", "));
    (!other.is_empty()).then_some(Piece::Note(Grade::Warn, words))
}

type Row = ((String, String), f64);

/// The rows that all results have, with the ratio to the first result; those of one only are
/// left out, since there is nothing to compare.
fn table(
    title: &str,
    names: &[String],
    all: &[Vec<Row>],
    words: &dyn Fn(f64) -> String,
) -> Option<Piece> {
    let shown = all.len().min(COLUMNS_MAX);
    let mut columns = vec![title.to_owned()];
    columns.extend(names[..shown].iter().map(|name| format!("#{name}")));
    columns.extend(names[1..shown].iter().map(|name| format!("#{name} : {}", names[0])));
    let columns: Vec<_> = columns.iter().map(String::as_str).collect();
    let mut table = Table::new(title, &columns);
    for (name, first) in &all[0] {
        let of = |rows: &Vec<Row>| rows.iter().find(|(other, _)| other == name).map(|row| row.1);
        let values: Vec<_> = all[..shown].iter().map(of).collect();
        if values.iter().flatten().count() < 2 {
            continue;
        }
        let mut row = vec![Cell::head(&name.0).with_small(&name.1)];
        row.extend(values.iter().map(|value| match value {
            Some(value) => Cell::number(words(*value)).with_key(value),
            None => Cell::number("–"),
        }));
        row.extend(values[1..].iter().map(|value| match value {
            Some(value) if *first > 0.0 => {
                Cell::number(format!("{} ×", figure(value / first))).with_key(value / first)
            }
            _ => Cell::number("–"),
        }));
        table.push(row);
    }
    table.unless_empty()
}

/// A bar for each result that has the figure.
fn bars(
    names: &[String],
    all: &[&StoredResult],
    of: &dyn Fn(&StoredResult) -> Option<f64>,
) -> Vec<Bar> {
    let bar = |(name, stored): (&String, &&StoredResult)| {
        let target = stored.header.targets.first().map_or("", |target| target.path.as_str());
        Some(Bar { label: format!("{name}  {target}"), value: of(stored)? })
    };
    names.iter().zip(all).filter_map(bar).collect()
}

fn speed_chart(names: &[String], all: &[&StoredResult], charts: &mut Charts) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for name in ["disk read direct", "disk write durable"] {
        let of = |stored: &StoredResult| {
            lines(stored, rung).find(|rung| rung.name == name).map(|rung| rung.median)
        };
        let bars = bars(names, all, &of);
        if bars.len() > 1 {
            let words = |value: f64| format!("{} MiB/s", figure(value));
            pieces.push(
                charts.add(&comparison(&format!("Side by side: {name}"), &bars, &[], &words), ""),
            );
        }
    }
    pieces
}

fn flush_charts(names: &[String], all: &[&StoredResult], charts: &mut Charts) -> Vec<Piece> {
    let p99 = bars(names, all, &|stored| database_flush(stored).map(|method| method.p99_us));
    let rate = bars(names, all, &commits);
    let mut pieces = Vec::new();
    if !p99.is_empty() {
        let title = "99th percentile of a durable write";
        let caption = "Shorter is better. Beyond the line, etcd warns of a slow disk.";
        pieces.push(charts.add(&comparison(title, &p99, &[etcd()], &microseconds), caption));
    }
    if !rate.is_empty() {
        let title = "Durable writes a second, one at a time";
        let caption = "Longer is better. PostgreSQL and SQLite publish no mark that a drive must \
                       reach; the line is what SQLite's FAQ expects of a disk with heads. \
                       PostgreSQL's manual says of pg_test_fsync that a difference there might \
                       make none in the throughput of a database.";
        let words = |value: f64| format!("{}/s", figure(value));
        pieces.push(charts.add(&comparison(title, &rate, &[sqlite()], &words), caption));
    }
    pieces
}

/// Commits a second: of PostgreSQL's pattern if it was measured, else of the plain flush.
fn commits(stored: &StoredResult) -> Option<f64> {
    let profile = stored.lines.iter().find_map(|line| match line {
        ResultLine::Profile(profile) if profile.name == "postgres" => Some(profile),
        _ => None,
    });
    let of_profile = profile.and_then(|profile| {
        profile.figures.iter().find(|(name, _)| name == "commits/s").map(|(_, value)| *value)
    });
    of_profile.or_else(|| database_flush(stored).map(|method| method.ops))
}
