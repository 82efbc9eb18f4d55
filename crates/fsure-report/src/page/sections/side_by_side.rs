//! Several measurements beside each other: which of these drives, by how much, and for what?
//! The comparison is that of `fsure speed compare` and `fsure flush compare`.

use super::super::Named;
use super::super::charts::Charts;
use super::super::pieces::{Cell, Grade, Piece, Section, Table};
use super::super::words::NO_FIGURE;
use super::marks::{etcd, sqlite};
use super::measured_tree::is_tree;
use crate::chart::{Bar, comparison, figure as digits, microseconds};
use crate::interval_words;
use crate::outputs::ResultContent;
use fsure_measure::comparison::{
    Comparison, Contender, Figure, FigureValue, REFERENCES, Ratio, StoredFile, compare,
};
use fsure_measure::results::{LEFT_OUT, Measurement, StoredResult};

/// Sections that hold results of one kind beside each other, if there are several, or one of
/// several folders.
pub(in super::super) fn side_by_side(results: &[Named], charts: &mut Charts) -> Vec<Section> {
    let kinds = [Measurement::Speed, Measurement::Flush];
    let measured = kinds.iter().filter_map(|kind| of_kind(*kind, results, charts));
    let mut sections: Vec<_> = measured.collect();
    sections.extend(super::crash::side_by_side(results, charts));
    sections.extend(super::trial::side_by_side(results, charts));
    sections
}

fn of_kind(kind: Measurement, results: &[Named], charts: &mut Charts) -> Option<Section> {
    let stored = results.iter().filter_map(|named| match &named.result.content {
        ResultContent::Measured(stored) if stored.header.kind == kind => {
            Some(StoredFile { file: &named.file, stored: stored.as_ref() })
        }
        _ => None,
    });
    let files: Vec<_> = stored.collect();
    let folders = |stored: &StoredResult| stored.header.targets.len();
    match &files[..] {
        [] => return None,
        [only] if folders(only.stored) < 2 || is_tree(only.stored) => return None,
        _ => {}
    }
    let pieces = match compare(kind, &files) {
        Ok(compared) => pieces(&compared, charts),
        Err(error) => vec![Piece::Note(Grade::Warn, format!("Not compared: {error}."))],
    };
    let what = match kind {
        Measurement::Speed => "throughput",
        Measurement::Flush => "flushes",
    };
    let of = match files.len() {
        1 => format!("{} folders", folders(files[0].stored)),
        many => format!("{many} results"),
    };
    let title = format!("Side by side: {what} of {of}");
    Some(Section { title, grade: Grade::Plain, pieces, ..Section::default() })
}

fn pieces(compared: &Comparison, charts: &mut Charts) -> Vec<Piece> {
    let is_bad = compared.contenders.iter().any(|one| one.has_bad_flush() || one.is_in_memory());
    let grade = if is_bad { Grade::Bad } else { Grade::Plain };
    let mut pieces = vec![Piece::Note(grade, compared.headline())];
    pieces.push(Piece::List(compared.contenders.iter().map(key).collect()));
    if !compared.unlike.is_empty() {
        let words = format!("Not alike: {}.", compared.unlike.join("; "));
        pieces.push(Piece::Note(Grade::Warn, words));
    }
    let plain = |words: &String| Piece::Note(Grade::Plain, format!("{words}."));
    pieces.extend(compared.same_drives.iter().map(plain));
    pieces.extend(match compared.kind {
        Measurement::Speed => speed_charts(compared, charts),
        Measurement::Flush => flush_charts(compared, charts),
    });
    pieces.extend(purposes(compared));
    pieces.extend(table(compared));
    pieces
}

/// A letter and the result that it stands for.
fn key(contender: &Contender) -> (String, String) {
    let mut words = vec![contender.targets.join(" ")];
    words.extend(contender.device.clone());
    words.extend(contender.serial.as_ref().map(|serial| format!("serial {serial}")));
    words.extend(contender.firmware.as_ref().map(|firmware| format!("firmware {firmware}")));
    words.extend(contender.file_system.clone());
    words.push(contender.host.clone());
    words.push(super::date(&contender.started));
    let verdict = contender.verdict.as_ref();
    words.extend(verdict.map(|verdict| format!("flush {}", verdict.words())));
    words.retain(|word| !word.is_empty() && word != LEFT_OUT);
    (contender.name.clone(), words.join(", "))
}

/// A row for each value: the first of a figure, and below it those that it is the measure of.
fn table(compared: &Comparison) -> Vec<Piece> {
    let first = &compared.contenders[0].name;
    let against = format!("Against {first}");
    let runs = compared.figures.iter().flat_map(|figure| &figure.values).flatten();
    let interval = format!("#{}", interval_words::heading(runs.map(|value| value.runs)));
    let columns = ["Figure", "Result", "#Median", &interval, &against];
    let mut table = Table::new("All figures", &columns);
    for figure in &compared.figures {
        let each = compared.contenders.iter().zip(&figure.values).zip(&figure.ratios);
        for ((contender, value), ratio) in each {
            if let Some(value) = value {
                table.push(row(figure, contender, value, ratio.as_ref()));
            }
        }
    }
    let mut words = "A ratio holds with 90 % at least within its interval, which is from the ends \
                     of both 95 % intervals. No difference is seen if these have a value in \
                     common, if it may be by chance, or if it is under 5 %."
        .to_owned();
    if compared.contenders.iter().any(|one| one.has_other_settings) {
        words += " *: measured with other settings.";
    }
    let mut pieces = vec![Piece::Heading("All figures".to_owned())];
    pieces.extend(table.unless_empty());
    pieces.extend(compared.device_cost().map(Piece::Text));
    pieces.push(Piece::Text(words));
    if !compared.only_in_some.is_empty() {
        let only = compared.only_in_some.join("; ");
        pieces.push(Piece::Text(format!("Not in all results: {only}.")));
    }
    pieces
}

fn row(
    figure: &Figure,
    contender: &Contender,
    value: &FigureValue,
    ratio: Option<&Ratio>,
) -> Vec<Cell> {
    let words = |value: f64| if figure.is_time() { microseconds(value) } else { digits(value) };
    let interval = match value.interval {
        Some((low, high)) => format!("{} – {}", words(low), words(high)),
        None => "not stored".to_owned(),
    };
    let unit = if figure.is_time() { "" } else { &figure.unit };
    let mark = if contender.has_other_settings { "*" } else { "" };
    let against = ratio.map_or(String::new(), |ratio| format!("{}{mark}", ratio.words()));
    vec![
        Cell::head(&figure.name).with_small(unit),
        Cell::text(&contender.name),
        Cell::number(words(value.median)).with_key(value.median),
        Cell::number(interval),
        Cell::text(against),
    ]
}

fn purposes(compared: &Comparison) -> Vec<Piece> {
    let mut table = Table::new("Which of these for what", &["Purpose", "Suits", "Why"]);
    for purpose in &compared.purposes {
        let suits = match purpose.suits.len() {
            0 => NO_FIGURE.to_owned(),
            _ => purpose.suits.join(" or "),
        };
        let row = [Cell::head(purpose.name), Cell::text(suits), Cell::sentences(&purpose.words)];
        table.push(row.into());
    }
    let Some(table) = table.unless_empty() else { return Vec::new() };
    let mut pieces = vec![Piece::Heading("Which of these for what".to_owned()), table];
    pieces.extend(compared.unproved().map(|words| Piece::Note(Grade::Warn, words)));
    pieces
}

/// A bar for each result that has the figure.
fn bars(
    compared: &Comparison,
    figure: &Figure,
    of: impl Fn(&FigureValue) -> (f64, Option<(f64, f64)>),
) -> Vec<Bar> {
    let each = compared.contenders.iter().zip(&figure.values);
    let bars = each.filter_map(|(contender, value)| {
        let mut words = vec![contender.targets.join(" ")];
        words.extend(contender.device.clone());
        words.extend(contender.firmware.as_ref().map(|firmware| format!("firmware {firmware}")));
        words.extend(contender.has_bad_flush().then(|| "its flush is BAD".to_owned()));
        words.extend(contender.is_in_memory().then(|| "in memory".to_owned()));
        let label = format!("{}: {}", contender.name, words.join(", "));
        let (value, interval) = of(value.as_ref()?);
        Some(Bar { interval, ..Bar::new(label, value) })
    });
    bars.collect()
}

fn median(value: &FigureValue) -> (f64, Option<(f64, f64)>) {
    (value.median, value.interval)
}

/// Meaning of the whiskers of a figure, as a sentence.
fn whiskers(figure: &Figure) -> String {
    let values = figure.values.iter().flatten().filter(|value| value.interval.is_some());
    format!("Whiskers: {}.", interval_words::meaning(values.map(|value| value.runs)))
}

fn speed_charts(compared: &Comparison, charts: &mut Charts) -> Vec<Piece> {
    let names = ["disk read direct", "disk write durable", "small files create"];
    let figures = names
        .iter()
        .flat_map(|name| compared.figures.iter().filter(move |figure| figure.name == *name));
    let chart = |figure: &Figure| {
        let words = |value: f64| format!("{} {}", digits(value), figure.unit);
        let title = format!("Side by side: {}, {}", figure.name, figure.unit);
        let bars = bars(compared, figure, median);
        let caption = format!("Longer is better. {}", whiskers(figure));
        charts.add(&comparison(&title, &bars, &[], &words), &caption)
    };
    figures.map(chart).collect()
}

fn flush_charts(compared: &Comparison, charts: &mut Charts) -> Vec<Piece> {
    let Some(flush) = compared.key_figure() else { return Vec::new() };
    let mut medians = bars(compared, flush, median);
    medians.extend(REFERENCES.iter().map(|one| Bar {
        is_reference: true,
        ..Bar::new(format!("{} ({}/s)", one.what, digits(one.per_second)), one.microseconds())
    }));
    let mut sources: Vec<_> = REFERENCES.iter().map(|one| one.source).collect();
    sources.dedup();
    let caption = format!(
        "Median over turns of their means; shorter is better. {} Grey is what others have \
         measured, otherwise than here: {}. PostgreSQL and SQLite publish no mark that a drive \
         must reach; the line is what SQLite's FAQ expects of a disk with heads. PostgreSQL's \
         manual says of pg_test_fsync that a difference there might make none in the throughput \
         of a database.",
        whiskers(flush),
        sources.join("; ")
    );
    let title = format!("Time of a durable write: {}", flush.name);
    let chart = comparison(&title, &medians, &[sqlite()], &microseconds);
    let mut pieces = vec![charts.add(&chart, &caption)];
    let p99 = |value: &FigureValue| (value.flush.map_or(0.0, |cost| cost.p99_us), None);
    let tails = bars(compared, flush, p99);
    let title = format!("99th percentile of a durable write: {}", flush.name);
    let caption = "Shorter is better. Beyond the line, etcd warns of a slow disk.";
    let chart = comparison(&title, &tails, &[etcd()], &microseconds);
    pieces.push(charts.add(&chart, caption));
    pieces
}
