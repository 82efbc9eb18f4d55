//! The experiments of `speed --io`: random requests, request sizes, a sustained write, the area of
//! a device.

use super::super::charts::Charts;
use super::super::pieces::{Cell, Grade, Piece, Table};
use super::Draft;
use super::stored_lines::{by, conclude, lines};
use crate::chart::{area, figure, microseconds, requests, sustained};
use crate::interval_words;
use crate::io_sentences;
use fsure_core::units;
use fsure_measure::results::{AreaLine, RandomLine, ResultLine, StoredResult, SustainedLine};

fn random_line(line: &ResultLine) -> Option<&RandomLine> {
    if let ResultLine::Random(random) = line { Some(random) } else { None }
}

fn sustained_line(line: &ResultLine) -> Option<&SustainedLine> {
    if let ResultLine::Sustained(sustained) = line { Some(sustained) } else { None }
}

fn area_line(line: &ResultLine) -> Option<&AreaLine> {
    if let ResultLine::Area(area) = line { Some(area) } else { None }
}

/// Sets the verdict and the key figure, if there is an experiment: the first one has the
/// sentence, and the others are notes below it. What cannot be read comes before everything.
pub(super) fn judge(draft: &mut Draft, stored: &StoredResult) {
    let of_folder = by(lines(stored, random_line), |line| &line.target);
    let mut sentences: Vec<(Grade, String)> = of_folder
        .iter()
        .filter_map(|of_folder| io_sentences::random(of_folder))
        .map(|sentence| (Grade::Plain, sentence))
        .collect();
    let sizes = lines(stored, io_sentences::size_curve).filter_map(io_sentences::sizes);
    sentences.extend(sizes.map(|sentence| (Grade::Plain, sentence)));
    let writes = lines(stored, sustained_line).map(io_sentences::sustained);
    sentences.extend(writes.map(|sentence| (Grade::Plain, sentence)));
    let grade = |area: &AreaLine| if area.unreadable > 0 { Grade::Bad } else { Grade::Plain };
    let areas = lines(stored, area_line).map(|area| (grade(area), io_sentences::area(area)));
    sentences.extend(areas);
    sentences.sort_by_key(|(grade, _)| std::cmp::Reverse(*grade));
    let mut sentences = sentences.into_iter();
    let Some((grade, first)) = sentences.next() else { return };
    if let Some((figure, words)) = key(stored) {
        draft.key(figure, words);
    }
    conclude(draft, stored, grade, first);
    sentences.for_each(|(_, sentence)| draft.note(format!("{sentence}.")));
}

/// The figure that matters most, and its name.
fn key(stored: &StoredResult) -> Option<(String, String)> {
    let random = lines(stored, random_line);
    // Of several the first is taken, which is the read.
    if let Some(line) = random.min_by_key(|line| std::cmp::Reverse(line.queue_depth)) {
        let words = format!("{}, {} at a time", line.name, line.queue_depth);
        return Some((format!("{} a second", figure(line.iops)), words));
    }
    if let Some(curve) = lines(stored, io_sentences::size_curve).next()
        && let Some(last) = curve.points.last()
    {
        let words = format!("{} of {}", curve.name, units::size(last.x as u64));
        return Some((format!("{} MiB/s", figure(last.y)), words));
    }
    if let Some(line) = lines(stored, sustained_line).next() {
        let rate = line.after_mib_s.unwrap_or(line.before_mib_s);
        return Some((format!("{} MiB/s", figure(rate)), line.name.clone()));
    }
    let area = lines(stored, area_line).next()?;
    Some((format!("{} MiB/s", figure(area.median_mib_s)), format!("{}, median", area.name)))
}

/// Adds the pictures and their tables.
pub(super) fn parts(draft: &mut Draft, stored: &StoredResult, charts: &mut Charts) {
    for of_folder in by(lines(stored, random_line), |line| &line.target) {
        let title = format!("Random requests of 4 KiB: {}", of_folder[0].target);
        let chart = charts.add(&requests(&title, &of_folder), "");
        let interval = interval_words::heading(of_folder.iter().map(|line| line.samples.len()));
        let interval = format!("#{interval}");
        let columns = [
            "Requests",
            "#At a time",
            "#A second",
            &interval,
            "#MiB/s",
            "#Median",
            "#p99",
            "#p99.9",
            "#Slowest",
        ];
        let mut table = Table::new(&title, &columns);
        of_folder.iter().for_each(|line| table.push(random_row(line)));
        draft.part(&title, [chart, Piece::Table(table)]);
    }
    for line in lines(stored, io_sentences::size_curve) {
        let columns = ["Bytes of a request", "#MiB/s", "#Interval"];
        let mut table = Table::new(&line.name, &columns);
        for point in &line.points {
            table.push(vec![
                Cell::head(units::size(point.x as u64)),
                Cell::number(figure(point.y)),
                Cell::number(format!("{} – {}", figure(point.low), figure(point.high))),
            ]);
        }
        draft.part(&format!("{}: {}", line.name, line.target), table.unless_empty());
    }
    for line in lines(stored, sustained_line) {
        let title = format!("Sustained write: {}", line.target);
        let chart = charts.add(&sustained(&title, line), &line.measured);
        draft.part(&title, [chart, Piece::Facts(sustained_facts(line))]);
    }
    for line in lines(stored, area_line) {
        let title = format!("Speed over the area of {}", line.device);
        let chart = charts.add(&area(&title, line), &line.measured);
        draft.part(&title, [chart, Piece::Facts(area_facts(line))]);
    }
}

fn random_row(line: &RandomLine) -> Vec<Cell> {
    let mut row = vec![
        Cell::head(&line.name).with_small(&line.measured),
        Cell::number(line.queue_depth.to_string()),
        Cell::number(figure(line.iops)),
        Cell::number(format!("{} – {}", figure(line.low), figure(line.high))),
        Cell::number(figure(line.mib_per_s)),
    ];
    let times = [line.p50_us, line.p99_us, line.p999_us, line.max_us];
    row.extend(times.map(|time| Cell::number(microseconds(time)).with_key(time)));
    row
}

type Facts = Vec<(String, String)>;

fn facts<const COUNT: usize>(facts: [(&str, String); COUNT]) -> Facts {
    facts.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

fn sustained_facts(line: &SustainedLine) -> Facts {
    let mut all = facts([
        ("Written", units::size(line.bytes)),
        ("Over all of it", format!("{} MiB/s", figure(line.mib_per_s))),
        ("Slowest moment", format!("{} MiB/s", figure(line.slowest_mib_s))),
    ]);
    if let (Some(cache), Some(after)) = (line.fast_cache_bytes, line.after_mib_s) {
        all.extend(facts([
            ("Fast cache", format!("about {}", units::size(cache))),
            ("Before it was used up", format!("{} MiB/s", figure(line.before_mib_s))),
            ("Afterwards", format!("{} MiB/s", figure(after))),
        ]));
    }
    all
}

fn area_facts(line: &AreaLine) -> Facts {
    let rate = |rate: f64| format!("{} MiB/s", figure(rate));
    facts([
        ("Size", units::size(line.device_bytes)),
        ("Median", rate(line.median_mib_s)),
        ("First tenth", rate(line.first_tenth_mib_s)),
        ("Last tenth", rate(line.last_tenth_mib_s)),
        ("Slowest place", rate(line.slowest_mib_s)),
        ("Places not read", line.unreadable.to_string()),
    ])
}
