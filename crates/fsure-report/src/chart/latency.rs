//! Latencies of single operations: a row for each method on one axis, the fastest first, from
//! its median to its slowest, with its name above and its figures beside it. Those that are far
//! too fast to have waited for the drive stand apart: what is fast because it does not flush is
//! not a fast flush. Methods that take nearly the same time share a row. All charts of this kind
//! have the same axis, so that two drives can be compared.

use super::Chart;
use super::Mark;
use super::axis::Axis;
use super::legend::{Glyph, diamond, legend, note};
use super::number_format::{measured_microseconds, microseconds};
use super::svg::{COLUMN, COLUMN_CHARACTER, Canvas, clipped};
use super::time_axis::{ENDS, foot, lines, p99_mark, time_axis};
use fsure_measure::comparison::{REFERENCES, Reference, UNFLUSHED_REFERENCE};
use fsure_measure::flush_verdict::thresholds::FLASH_MIN_US;
use fsure_measure::results::MethodLine;

const LEFT: f64 = 8.0;
/// Ends of the axis in microseconds, if no value lies beyond: a write into memory takes about
/// 1 us, and a flush of a slow disk less than 100 ms.
const SHOWN_US: [f64; 2] = [1.0, 100_000.0];
/// End of the room of a name beside three figures, and beside one.
const NAME_END: f64 = 268.0;
const REFERENCE_END: f64 = 306.0;
/// Right ends of the columns of figures, and their names.
const FIGURES: [f64; 3] = [364.0, 438.0, COLUMN - 8.0];
const NAMES: [&str; 3] = ["median", "p99", "slowest"];
/// Width of the shortest bar that can be seen behind the circle of its median.
const BAR_MIN: f64 = 1.0;
/// Height of the names of the columns.
const HEAD: f64 = 22.0;
/// Height of a line of text, and of a range below it.
const LINE: f64 = 18.0;
const RANGE: f64 = 22.0;
const MIDDLE: f64 = 9.0;
/// Height of the words above a group.
const GROUP: f64 = 26.0;
/// A method that takes less than this share of `fsync` has not waited for the same drive.
const UNFLUSHED_SHARE: f64 = 0.05;
/// Methods that end without a flush, by what they are.
const UNFLUSHED: [&str; 3] = ["write only", "sync_file_range", "O_DIRECT"];
/// Methods share a row if their medians are within this factor of the quickest of them: those of
/// one call differ by up to a third from one run to the next (`docs/experiments.md`).
const SAME_ROW_FACTOR: f64 = 1.25;
/// The flushes that others are held against, the best first.
const FLUSHES: [&str; 2] = ["fsync", "fdatasync"];
/// Dashes of the line at the time that flash needs, and half the height of the axis behind a range.
const DASHES: &str = "3 2";
const HALF: f64 = 8.0;

/// Characters of a name that ends here at most.
fn name_room(end: f64) -> usize {
    ((end - LEFT) / COLUMN_CHARACTER) as usize
}

/// Methods whose medians are nearly the same, with the widest of their ranges.
struct Row<'a> {
    names: Vec<&'a str>,
    /// The median of each, the least first.
    medians_us: Vec<f64>,
    p10_us: f64,
    p90_us: f64,
    p99_us: Option<f64>,
    max_us: f64,
    /// The least and the most writes that one of them was measured by.
    counts: (u64, u64),
}

impl<'a> Row<'a> {
    fn of(method: &'a MethodLine) -> Self {
        Self {
            names: vec![&method.name],
            medians_us: vec![method.p50_us],
            p10_us: method.p10_us,
            p90_us: method.p90_us,
            p99_us: method.known_p99_us(),
            max_us: method.max_us,
            counts: (method.count, method.count),
        }
    }

    fn takes_in(&mut self, other: Self) {
        self.names.extend(other.names);
        self.medians_us.extend(other.medians_us);
        self.p10_us = self.p10_us.min(other.p10_us);
        self.p90_us = self.p90_us.max(other.p90_us);
        self.p99_us = self.p99_us.zip(other.p99_us).map(|(one, two)| one.max(two));
        self.max_us = self.max_us.max(other.max_us);
        let (least, most) = other.counts;
        self.counts = (self.counts.0.min(least), self.counts.1.max(most));
    }

    /// The least and the largest median.
    fn median_range(&self) -> (f64, f64) {
        let (first, last) = (self.medians_us.first(), self.medians_us.last());
        first.zip(last).map(|(least, most)| (*least, *most)).expect("a row has a method")
    }

    /// The median, or the least and the largest, in words: `88.1–89.7 µs`.
    fn median(&self) -> String {
        let (low, high) = self.median_range();
        let [low, high] = [low, high].map(measured_microseconds);
        match (low.split_once(' '), high.split_once(' ')) {
            _ if low == high => low,
            (Some((number, unit)), Some((_, other))) if unit == other => {
                format!("{number}–{high}")
            }
            _ => format!("{low}–{high}"),
        }
    }

    /// Its names in as many lines as they take, the first beside the figures. A name stands in one
    /// line.
    fn lines(&self) -> Vec<String> {
        let first_room = name_room(NAME_END);
        let mut lines: Vec<String> = Vec::new();
        for (place, name) in self.names.iter().enumerate() {
            let comma = if place + 1 < self.names.len() { "," } else { "" };
            let name = clipped(name, first_room - comma.len()) + comma;
            let room = if lines.len() > 1 { name_room(COLUMN) } else { first_room };
            match lines.last_mut() {
                Some(line) if line.chars().count() + name.chars().count() < room => {
                    *line += " ";
                    *line += &name;
                }
                _ => lines.push(name),
            }
        }
        lines
    }

    fn height(&self) -> f64 {
        self.lines().len() as f64 * LINE + RANGE
    }

    /// The middle of its range, from its top.
    fn middle(&self) -> f64 {
        self.lines().len() as f64 * LINE + MIDDLE
    }
}

/// A group of rows, with words above it, and below them the same kind of writes as others have
/// measured it.
struct Group<'a> {
    words: &'static str,
    is_flushed: bool,
    rows: Vec<Row<'a>>,
    /// The fastest first.
    others: Vec<&'static Reference>,
}

impl<'a> Group<'a> {
    fn of(words: &'static str, is_flushed: bool, sorted: &[&'a MethodLine]) -> Self {
        let mut rows: Vec<Row<'a>> = Vec::new();
        for row in sorted.iter().map(|method| Row::of(method)) {
            match rows.last_mut() {
                Some(last) if row.median_range().1 <= last.median_range().0 * SAME_ROW_FACTOR => {
                    last.takes_in(row);
                }
                _ => rows.push(row),
            }
        }
        let others = match is_flushed {
            true => REFERENCES.iter().rev().collect(),
            false => vec![&UNFLUSHED_REFERENCE],
        };
        Self { words, is_flushed, rows, others }
    }

    fn height(&self) -> f64 {
        let rows: f64 = self.rows.iter().map(Row::height).sum();
        GROUP + rows + LINE + self.others.len() as f64 * (LINE + RANGE)
    }

    fn draw(&self, canvas: &mut Canvas, axis: &Axis, mark: &Mark, mut top: f64) {
        canvas.text(4.0, top + 18.0, "strong", self.words);
        top += GROUP;
        for row in &self.rows {
            strip(
                canvas,
                axis,
                (self.is_flushed.then_some(mark), self.is_flushed),
                top + row.middle(),
            );
            draw(canvas, axis, row, top);
            top += row.height();
        }
        canvas.text(LEFT, top + 14.0, "soft strong", "measured by others, a mean each:");
        top += LINE;
        for other in &self.others {
            let time = other.microseconds();
            canvas.text(LEFT, top + 14.0, "soft", &clipped(other.what, name_room(REFERENCE_END)));
            canvas.text(FIGURES[0], top + 14.0, "soft end", &measured_microseconds(time));
            // The mark is one of a p99, and these are means.
            strip(canvas, axis, (None, self.is_flushed), top + LINE + MIDDLE);
            canvas.circle("reference", (axis.at(time), top + LINE + MIDDLE), 5.0);
            top += LINE + RANGE;
        }
    }
}

/// Divides methods into those that wait for a flush, and those that do not or are too fast for one.
fn groups<'a>(methods: &[&'a MethodLine]) -> Vec<Group<'a>> {
    let mut sorted = methods.to_vec();
    sorted.sort_by(|one, two| one.p50_us.total_cmp(&two.p50_us));
    let flush = FLUSHES.iter().find_map(|name| methods.iter().find(|one| one.name == *name));
    let is_unflushed = |method: &&MethodLine| {
        UNFLUSHED.contains(&&*method.name)
            || flush.is_some_and(|flush| method.p50_us < flush.p50_us * UNFLUSHED_SHARE)
    };
    let (unflushed, flushed): (Vec<_>, Vec<_>) = sorted.into_iter().partition(is_unflushed);
    let unflushed = Group::of("returns before the write is durable", false, &unflushed);
    let flushed = Group::of("waits for a flush", true, &flushed);
    [unflushed, flushed].into_iter().filter(|group| !group.rows.is_empty()).collect()
}

/// The latencies of the methods of one target, with the mark that a program sets for them.
/// `conditions` are sentences on how they were measured.
pub fn latency(title: &str, methods: &[&MethodLine], mark: &Mark, conditions: &str) -> Chart {
    let values = methods.iter().flat_map(|one| [one.p10_us, one.p50_us, one.p99_us, one.max_us]);
    let groups = groups(methods);
    let others = groups.iter().flat_map(|group| &group.others).map(|other| other.microseconds());
    let marks = [mark.value, FLASH_MIN_US];
    let axis = time_axis(values.chain(others).chain(marks), SHOWN_US);
    let mut canvas = Canvas::default();
    let head = note(&mut canvas, 0.0, conditions);
    let bottom = head + HEAD + groups.iter().map(Group::height).sum::<f64>();
    frame(&mut canvas, &axis, (head, bottom));
    let mut top = head + HEAD;
    for group in &groups {
        group.draw(&mut canvas, &axis, mark, top);
        top += group.height();
    }
    let height = key(&mut canvas, &axis, (&groups, mark), bottom + 26.0) + 6.0;
    let description = description(&groups);
    Chart { title: title.to_owned(), description, width: COLUMN, height, body: canvas.body }
}

/// The axis, and the names of the columns.
fn frame(canvas: &mut Canvas, axis: &Axis, (top, bottom): (f64, f64)) {
    for (at, name) in FIGURES.iter().zip(NAMES) {
        canvas.text(*at, top + 15.0, "soft end", name);
    }
    foot(canvas, axis, bottom);
}

/// The lines of the axis behind the range of a row: not behind its name, too, which could not be
/// read so well. Of a flush, also the area beyond the mark of a program, and the time that flash
/// needs.
fn strip(canvas: &mut Canvas, axis: &Axis, (mark, is_flushed): (Option<&Mark>, bool), middle: f64) {
    if let Some(mark) = mark {
        let at = axis.at(mark.value);
        canvas.rect("zone", (at, middle - HALF), ((ENDS.1 - at).max(0.0), 2.0 * HALF));
    }
    lines(canvas, axis, middle, HALF);
    if is_flushed {
        let path = format!("M{:.1} {:.1}v{:.1}", axis.at(FLASH_MIN_US), middle - HALF, 2.0 * HALF);
        canvas.path("limit", DASHES, &path);
    }
}

/// A range from the median to the slowest: a bar from the tenth to the ninetieth percentile, a
/// dot on the median, a line at the 99th percentile, a diamond on the slowest.
fn draw(canvas: &mut Canvas, axis: &Axis, row: &Row<'_>, top: f64) {
    for (place, line) in row.lines().iter().enumerate() {
        canvas.text(LEFT, top + place as f64 * LINE + 14.0, "", line);
    }
    let figures = [
        row.median(),
        row.p99_us.map_or("–".to_owned(), measured_microseconds),
        measured_microseconds(row.max_us),
    ];
    let classes = ["strong end", "end", "soft end"];
    for ((at, words), class) in FIGURES.iter().zip(&figures).zip(classes) {
        canvas.text(*at, top + 14.0, class, words);
    }
    let middle = top + row.middle();
    let (median, slowest) = (axis.at(row.median_range().0), axis.at(row.max_us));
    canvas.line("whisker", (median, middle), (slowest, middle));
    let (from, to) = (axis.at(row.p10_us), axis.at(row.p90_us));
    canvas.rect("bar", (from, middle - 5.0), ((to - from).max(BAR_MIN), 10.0));
    if let Some(p99) = row.p99_us {
        p99_mark(canvas, axis.at(p99), middle);
    }
    diamond(canvas, (slowest, middle));
    for median in &row.medians_us {
        canvas.circle("outlier", (axis.at(*median), middle), 3.5);
    }
}

/// Explains the marks and the axis, and returns the height below it.
fn key(canvas: &mut Canvas, axis: &Axis, (groups, mark): (&[Group<'_>], &Mark), top: f64) -> f64 {
    let rows = || groups.iter().flat_map(|group| &group.rows);
    let has_flushes = groups.iter().any(|group| group.is_flushed);
    let beyond = format!("beyond the mark of {}", mark.label);
    let flash = format!("{FLASH_MIN_US:.0} µs: a flush to the left did not wait for common flash");
    let entries = [
        (true, Glyph::Circle("outlier"), "median"),
        (true, Glyph::Bar("bar"), "10th to 90th percentile"),
        (true, Glyph::Line("whisker", ""), "to the slowest"),
        (
            rows().any(|row| row.p99_us.is_some()),
            Glyph::Upright("mark", ""),
            "p99: 99 % are faster",
        ),
        (true, Glyph::Diamond, "slowest"),
        (has_flushes, Glyph::Bar("zone"), beyond.as_str()),
        (has_flushes, Glyph::Upright("limit", DASHES), flash.as_str()),
        (true, Glyph::Circle("reference"), "a mean, measured by others"),
    ];
    let entries = entries.into_iter().filter(|(is_drawn, ..)| *is_drawn);
    let entries: Vec<_> = entries.map(|(_, glyph, words)| (glyph, words)).collect();
    let mut bottom = legend(canvas, top, &entries);
    bottom = note(canvas, bottom, scale(axis));
    if rows().any(|row| row.names.len() > 1) {
        let shared = "Calls whose medians are within a quarter share a row: it has a dot for each, and \
                      the widest of their ranges.";
        bottom = note(canvas, bottom, shared);
    }
    bottom = note(canvas, bottom, &writes(groups));
    let others = groups.iter().flat_map(|group| &group.others);
    let mut sources: Vec<_> = others.map(|one| one.source).collect();
    sources.sort_unstable();
    sources.dedup();
    match sources.is_empty() {
        true => bottom,
        false => note(canvas, bottom, &format!("By others: {}.", sources.join("; "))),
    }
}

/// The number of writes of all methods, in sentences.
fn writes(groups: &[Group<'_>]) -> String {
    let rows = || groups.iter().flat_map(|group| &group.rows);
    let least = rows().map(|row| row.counts.0).min().unwrap_or_default();
    let most = rows().map(|row| row.counts.1).max().unwrap_or_default();
    let fewer = match rows().any(|row| row.p99_us.is_none()) {
        true => " Fewer than 100 have no p99.",
        false => "",
    };
    let most_words = fsure_core::count(most);
    match least < most {
        true => format!("Medians of {} to {most_words} writes.{fewer}", fsure_core::count(least)),
        false => format!("Medians of {most_words} writes.{fewer}"),
    }
}

/// The meaning of a step on the axis, as a sentence.
fn scale(axis: &Axis) -> &'static str {
    let ticks = axis.ticks();
    let is_tenfold = ticks.windows(2).all(|two| two[1] > two[0] * 9.0);
    match (axis.is_log, is_tenfold) {
        (true, true) => {
            "Left is quicker: each line of the axis is ten times slower than the one before it."
        }
        (true, false) => "Left is quicker: equal steps to the right are equal factors.",
        (false, _) => "Left is quicker: the axis begins at zero.",
    }
}

fn description(groups: &[Group<'_>]) -> String {
    let group = |group: &Group<'_>| {
        let rows = group.rows.iter().map(|row| {
            let (median, max) = (row.median(), microseconds(row.max_us));
            let p99 = row
                .p99_us
                .map_or(String::new(), |p99| format!("99 % below {}, ", microseconds(p99)));
            let names = row.names.join(", ");
            format!("{names}: median {median}, {p99}slowest {max}")
        });
        format!("{}: {}", group.words, rows.collect::<Vec<_>>().join("; "))
    };
    format!("{}.", groups.iter().map(group).collect::<Vec<_>>().join(". "))
}
