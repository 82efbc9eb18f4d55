//! Results side by side for a person, in 80 columns: the sentence first, then the results by
//! their letters, each figure with its ratios, and what each of them is for. The same as JSON
//! for a program.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::flush::filled_to;
use super::{figure as digits, number};
use fsure_core::safe;
use fsure_core::units::microseconds;
use fsure_measure::comparison::{
    Comparison, Contender, Figure, FigureValue, Purpose, REFERENCES, Ratio, Seen,
};
use fsure_measure::results::Measurement;
use fsure_report::interval_words;

/// Columns of a line.
const WIDTH: usize = 80;

/// The whole comparison as text.
pub fn text(compared: &Comparison) -> String {
    let mut text = wrapped("", &compared.headline());
    text.push('\n');
    for contender in &compared.contenders {
        text += &wrapped(&format!("{}  ", contender.name), &key(contender));
    }
    for unlike in &compared.unlike {
        text += &wrapped("not alike: ", unlike);
    }
    for drive in &compared.same_drives {
        text += &wrapped("same drive: ", drive);
    }
    text.push('\n');
    text += &table(compared);
    for only in &compared.only_in_some {
        text += &wrapped("not in all: ", only);
    }
    text += &compared.device_cost().map_or(String::new(), |cost| wrapped("", &cost));
    text += &explanation(compared);
    if !compared.purposes.is_empty() {
        text += "\nWhich of these for what\n";
    }
    let suits = |purpose: &Purpose| match &purpose.suits[..] {
        [] => "-".to_owned(),
        [one, two] => format!("{one} or {two}"),
        more => more.join(", "),
    };
    let width = compared.purposes.iter().map(|one| suits(one).chars().count()).max().unwrap_or(0);
    for purpose in &compared.purposes {
        let start = format!("  {:<13}  {:<width$}  ", purpose.name, suits(purpose));
        text += &wrapped(&start, &purpose.words);
    }
    if let Some(unproved) = compared.unproved() {
        text += &wrapped("  ", &unproved);
    }
    if compared.kind == Measurement::Flush {
        text += "\nFor reference, durable writes that others have measured, otherwise than here\n";
        for one in &REFERENCES {
            let (rate, time) = (digits(one.per_second), microseconds(one.microseconds()));
            let start = format!("  {rate:>6}/s  {time:>8}  ");
            text += &wrapped(&start, &format!("{} ({})", one.what, one.source));
        }
    }
    text += &closing(compared);
    text
}

/// Words behind `start`, in lines that begin below them; a unit stays with its number.
pub(super) fn wrapped(start: &str, words: &str) -> String {
    let mut pieces: Vec<String> = Vec::new();
    for word in safe(words).split(' ') {
        let unit = word.trim_end_matches([',', '.', ';', ')', '(']);
        match pieces.last_mut() {
            Some(last) if ["us", "ms", "s", "h", "min", "%"].contains(&unit) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => pieces.push(word.to_owned()),
        }
    }
    filled_to(WIDTH, start, &pieces, " ")
}

/// The result that a letter stands for.
fn key(contender: &Contender) -> String {
    let mut parts = vec![contender.targets.join(" ")];
    parts.extend(contender.device.clone());
    parts.extend(contender.serial.as_ref().map(|serial| format!("serial {serial}")));
    parts.extend(contender.firmware.as_ref().map(|firmware| format!("firmware {firmware}")));
    parts.extend(contender.file_system.clone());
    parts.push(format!("host {}", contender.host));
    parts.push(contender.started.clone());
    let verdict = contender.verdict.as_ref();
    parts.extend(verdict.map(|verdict| format!("flush {}", verdict.words())));
    format!("{}: {}", contender.file, parts.join(", "))
}

fn table(compared: &Comparison) -> String {
    let first = &compared.contenders[0].name;
    let mut text = String::new();
    let mut units: Vec<&str> = Vec::new();
    for figure in &compared.figures {
        if !units.contains(&figure.unit.as_str()) {
            units.push(&figure.unit);
        }
    }
    for unit in units {
        let column = if unit == "us" { "time" } else { unit };
        let of_unit = compared.figures.iter().filter(|figure| figure.unit == unit);
        let values = of_unit.flat_map(|figure| &figure.values).flatten();
        let interval = interval_words::heading(values.map(|value| value.runs));
        let other = if unit == "us" { "a second" } else { "runs" };
        let _ = writeln!(text, "     {column:>8}  {interval:>17}  {other:>8}  against {first}");
        for figure in compared.figures.iter().filter(|figure| figure.unit == unit) {
            text += &rows(compared, figure);
        }
        text.push('\n');
    }
    text
}

fn rows(compared: &Comparison, figure: &Figure) -> String {
    let place = match figure.target.as_str() {
        "memory" => String::new(),
        target if compared.contenders[0].targets.len() > 1 => format!(", {target}"),
        _ => String::new(),
    };
    let mut text = format!("{}\n", safe(&format!("{}{place}", figure.name)));
    let values = compared.contenders.iter().zip(&figure.values).zip(&figure.ratios);
    for ((contender, value), ratio) in values {
        let Some(value) = value else { continue };
        let words = ratio.map_or(String::new(), |ratio| against(contender, &ratio));
        let (median, interval, other) = cells(figure, value);
        let row =
            format!("  {:<3}{median:>8}  {interval:>17}  {other:>8}  {words}", contender.name);
        let _ = writeln!(text, "{}", row.trim_end());
    }
    text
}

/// The ratio, with a mark if settings differ.
fn against(contender: &Contender, ratio: &Ratio) -> String {
    let mark = if contender.has_other_settings { "*" } else { "" };
    format!("{}{mark}", ratio.words())
}

fn cells(figure: &Figure, value: &FigureValue) -> (String, String, String) {
    let words = |value: f64| if figure.is_time() { microseconds(value) } else { digits(value) };
    let interval = match value.interval {
        Some((low, high)) => format!("{} - {}", words(low), words(high)),
        None => "not stored".to_owned(),
    };
    let other = match value.flush {
        Some(flush) => digits(flush.per_second),
        None => value.runs.to_string(),
    };
    (words(value.median), interval, other)
}

fn explanation(compared: &Comparison) -> String {
    let mut words = match compared.kind {
        Measurement::Flush => "The time of one is the median over turns of their means. ",
        Measurement::Speed => "The figure is the median over the runs. ",
    }
    .to_owned();
    words += "A ratio holds with 90 % at least within its interval, which is from the ends \
                     of both 95 % intervals. No difference is seen if these have a value in \
                     common, if it may be by chance, or if it is under 5 %.";
    if compared.contenders.iter().any(|one| one.has_other_settings) {
        words += " *: measured with other settings, see 'not alike' above.";
    }
    if compared.figures.is_empty() { String::new() } else { wrapped("", &words) }
}

fn closing(compared: &Comparison) -> String {
    let (changed, all) = (changed(compared), compared.ratios().count() as u64);
    let mut text =
        format!("\n{changed} of {} a difference\n", number(all, "ratio is", "ratios are"));
    let undecided = count(compared, Seen::TooFewRuns);
    if undecided > 0 {
        let command = match compared.kind {
            Measurement::Speed => {
                "'fsure speed --runs 10 --budget 5m' makes enough runs, and '--rungs' measures \
                 fewer rungs"
            }
            Measurement::Flush => "name fewer results at a time",
        };
        let undecided = number(undecided, "ratio", "ratios");
        text += &wrapped("", &format!("{undecided} cannot be told: {command}"));
    }
    if count(compared, Seen::NoInterval) > 0 {
        let words = "An older program has stored no turns, so that no ratio has an interval: \
                     measure again with 'fsure flush --save FILE'";
        text += &wrapped("", words);
    }
    text
}

fn changed(compared: &Comparison) -> usize {
    compared.ratios().filter(|ratio| ratio.seen.is_difference()).count()
}

fn count(compared: &Comparison, seen: Seen) -> u64 {
    compared.ratios().filter(|ratio| ratio.seen == seen).count() as u64
}

/// The same as JSON: a line for each result, each ratio and each purpose, and a last one for
/// all.
pub fn json_lines(compared: &Comparison) -> String {
    let mut lines: Vec<Value> = compared.contenders.iter().map(contender_line).collect();
    for figure in &compared.figures {
        lines.extend(change_lines(compared, figure));
    }
    for purpose in &compared.purposes {
        let (name, suits, words) = (purpose.name, &purpose.suits, &purpose.words);
        lines.push(json!({"type": "purpose", "name": name, "suits": suits, "words": words}));
    }
    if compared.kind == Measurement::Flush {
        lines.extend(REFERENCES.iter().map(|one| {
            json!({
                "type": "reference", "what": one.what, "per_second": one.per_second,
                "source": one.source,
            })
        }));
    }
    lines.push(json!({
        "type": "summary",
        "changed": changed(compared),
        "compared": compared.ratios().count(),
        "undecided": count(compared, Seen::TooFewRuns) + count(compared, Seen::NoInterval),
        "unlike": compared.unlike,
        "same_drives": compared.same_drives,
        "only_in_some": compared.only_in_some,
        "exit_code": compared.exit_code().number(),
    }));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn contender_line(contender: &Contender) -> Value {
    let verdict = contender.verdict.as_ref();
    json!({
        "type": "contender",
        "name": contender.name,
        "file": contender.file,
        "targets": contender.targets,
        "device": contender.device,
        "serial": contender.serial,
        "firmware": contender.firmware,
        "file_system": contender.file_system,
        "host": contender.host,
        "started": contender.started,
        "verdict": verdict.map(|verdict| &verdict.id),
        "grade": verdict.map(|verdict| verdict.grade.name()),
        "settings_differ": contender.has_other_settings,
    })
}

fn change_lines(compared: &Comparison, figure: &Figure) -> Vec<Value> {
    let first = &compared.contenders[0].name;
    let each = compared.contenders.iter().zip(figure.values.iter().zip(&figure.ratios));
    let before = figure.values[0].as_ref().map(|value| value.median);
    let line =
        |(contender, (value, ratio)): (&Contender, (&Option<FigureValue>, &Option<Ratio>))| {
            let (value, ratio) = (value.as_ref()?, ratio.as_ref()?);
            Some(json!({
                "type": "change",
                "name": figure.name,
                "target": figure.target,
                "unit": figure.unit,
                "first": first,
                "second": contender.name,
                "before": before,
                "after": value.median,
                "ratio": ratio.ratio,
                "low": ratio.interval.map(|(low, _)| low),
                "high": ratio.interval.map(|(_, high)| high),
                "p": ratio.p,
                "seen": ratio.seen.name(),
                "changed": ratio.seen.is_difference(),
                "settings_differ": contender.has_other_settings,
            }))
        };
    each.filter_map(line).collect()
}
