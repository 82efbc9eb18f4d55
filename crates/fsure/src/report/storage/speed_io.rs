//! The experiments of `speed --io` for a person: first the sentence that each comes to, then
//! its figures, then what was truly measured.

use std::fmt::Write as _;

use super::{figure, table};
use fsure_core::safe;
use fsure_core::units::{self, microseconds};
use fsure_measure::results::{AreaLine, Curve, RandomLine, ResultLine, SustainedLine};
use fsure_report::io_sentences;

/// Columns of the longest bar.
const BAR: usize = 40;
/// Bars of a curve.
const ROWS: usize = 12;

/// All experiments among the lines; empty without one.
pub(super) fn text(lines: &[ResultLine]) -> String {
    let mut text = String::new();
    for random in by_target(lines) {
        of_random(&mut text, &random);
    }
    for curve in lines.iter().filter_map(io_sentences::size_curve) {
        of_sizes(&mut text, curve);
    }
    for line in lines {
        match line {
            ResultLine::Sustained(line) => of_sustained(&mut text, line),
            ResultLine::Area(line) => of_area(&mut text, line),
            _ => {}
        }
    }
    text
}

/// The random requests of each folder, in the order of the lines.
fn by_target(lines: &[ResultLine]) -> Vec<Vec<&RandomLine>> {
    let mut targets: Vec<Vec<&RandomLine>> = Vec::new();
    for line in lines {
        let ResultLine::Random(line) = line else { continue };
        match targets.iter_mut().find(|target| target[0].target == line.target) {
            Some(target) => target.push(line),
            None => targets.push(vec![line]),
        }
    }
    targets
}

fn of_random(text: &mut String, lines: &[&RandomLine]) {
    let sentence = io_sentences::random(lines).unwrap_or_default();
    let _ = writeln!(text, "\n{}.\n", safe(&sentence));
    let head =
        ["4 KiB", "at a time", "IOPS", "interval", "MiB/s", "median", "99 %", "99.9 %", "slowest"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for line in lines {
        let mut row = vec![
            line.name.clone(),
            line.queue_depth.to_string(),
            figure(line.iops),
            format!("{} - {}", figure(line.low), figure(line.high)),
            figure(line.mib_per_s),
        ];
        row.extend([line.p50_us, line.p99_us, line.p999_us, line.max_us].map(microseconds));
        rows.push(row);
    }
    *text += &table(&rows, |column| column == 0);
    // The queue depths of a direction differ in nothing else, as a rule.
    let mut said: Vec<(&str, &str)> = Vec::new();
    for line in lines {
        if !said.contains(&(&line.name, &line.measured)) {
            said.push((&line.name, &line.measured));
            let _ = writeln!(text, "{}: {}", line.name, safe(&line.measured));
        }
    }
}

fn of_sizes(text: &mut String, curve: &Curve) {
    let sentence = io_sentences::sizes(curve).unwrap_or_default();
    let _ = writeln!(text, "\n{}.\n", safe(&sentence));
    let most = curve.points.iter().map(|point| point.y).fold(f64::MIN_POSITIVE, f64::max);
    let mut rows = vec![["bytes each", "MiB/s", "interval", ""].map(str::to_owned).to_vec()];
    rows.extend(curve.points.iter().map(|point| {
        vec![
            units::size(point.x as u64),
            figure(point.y),
            format!("{} - {}", figure(point.low), figure(point.high)),
            "#".repeat((point.y / most * BAR as f64).round() as usize),
        ]
    }));
    *text += &table(&rows, |column| column == 3);
    let _ = writeln!(text, "{}: {}", curve.name, safe(&curve.measured));
}

fn of_sustained(text: &mut String, line: &SustainedLine) {
    let _ = writeln!(text, "\n{}.\n", safe(&io_sentences::sustained(line)));
    let end = line.points.last().map_or(0.0, |point| point.0);
    let rows = ROWS.min(line.points.len());
    let label = |row: usize| format!("{:.1} s", end * (row + 1) as f64 / rows as f64);
    let row_of = |seconds: f64| ((seconds / end * rows as f64).ceil() as usize).clamp(1, rows) - 1;
    let mut rates: Vec<Vec<f64>> = vec![Vec::new(); rows];
    line.points.iter().for_each(|(seconds, rate)| rates[row_of(*seconds)].push(*rate));
    bars(text, "until", rates.iter().enumerate().map(|(row, rates)| (label(row), mean(rates))));
    let _ = writeln!(text, "{}", safe(&line.measured));
}

fn of_area(text: &mut String, line: &AreaLine) {
    let _ = writeln!(text, "\n{}.\n", safe(&io_sentences::area(line)));
    let each = line.points.len().div_ceil(ROWS).max(1);
    let rows = line.points.chunks(each).map(|points| {
        let rates: Vec<f64> = points.iter().filter_map(|point| point.mib_per_s).collect();
        (units::size(points[0].at_bytes), mean(&rates))
    });
    bars(text, "from", rows);
    let _ = writeln!(text, "{}", safe(&line.measured));
}

fn mean(rates: &[f64]) -> Option<f64> {
    (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
}

/// Bars from zero, one a line, behind their labels.
fn bars(text: &mut String, label: &str, rows: impl Iterator<Item = (String, Option<f64>)>) {
    let rows: Vec<_> = rows.collect();
    let most = rows.iter().filter_map(|row| row.1).fold(f64::MIN_POSITIVE, f64::max);
    let mut shown = vec![[label, "MiB/s", ""].map(str::to_owned).to_vec()];
    for (label, rate) in rows {
        let columns = rate.map_or(0, |rate| (rate / most * BAR as f64).round() as usize);
        shown.push(vec![label, rate.map_or_else(|| "-".to_owned(), figure), "#".repeat(columns)]);
    }
    *text += &table(&shown, |column| column == 2);
}
