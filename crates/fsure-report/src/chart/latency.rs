//! Latencies of single operations: a row for each method on one axis, the fastest first, from
//! its median to its slowest, with its three figures above. Those that are far too fast to have
//! waited for the drive are grey and stand apart: what is fast because it does not flush is no
//! fast flush.

use super::Chart;
use super::Mark;
use super::axis::Axis;
use super::legend::{Glyph, diamond, legend, note};
use super::number_format::microseconds;
use super::svg::{COLUMN, COLUMN_CHARACTER, Canvas, clipped};
use fsure_measure::comparison::REFERENCES;
use fsure_measure::results::MethodLine;

const LEFT: f64 = 10.0;
const RIGHT: f64 = COLUMN - 16.0;
/// Right ends of the columns of the three figures.
const FIGURES: [f64; 3] = [350.0, 430.0, COLUMN - 8.0];
/// Height of a line of text, of a range below it, and of the names of the columns.
const LINE: f64 = 18.0;
const RANGE: f64 = 16.0;
const HEAD: f64 = 24.0;
/// Height of the words above a group.
const GROUP: f64 = 26.0;
/// A method that takes less than this share of `fsync` has not waited for the same drive.
const UNFLUSHED_SHARE: f64 = 0.05;
/// The flushes that others are held against, the best first.
const FLUSHES: [&str; 2] = ["fsync", "fdatasync"];

/// A group of rows, with words above it.
struct Group<'a> {
    words: &'static str,
    class: &'static str,
    methods: Vec<&'a MethodLine>,
}

/// Divides methods into those that wait for the drive and those that are too fast for it.
fn groups<'a>(methods: &[&'a MethodLine]) -> Vec<Group<'a>> {
    let mut sorted = methods.to_vec();
    sorted.sort_by(|one, two| one.p50_us.total_cmp(&two.p50_us));
    let flush = FLUSHES.iter().find_map(|name| methods.iter().find(|one| one.name == *name));
    let is_unflushed = |method: &&MethodLine| {
        flush.is_some_and(|flush| method.p50_us < flush.p50_us * UNFLUSHED_SHARE)
    };
    let (unflushed, flushed): (Vec<_>, Vec<_>) = sorted.into_iter().partition(is_unflushed);
    let unflushed =
        Group { words: "returns before the drive has the data", class: "idle", methods: unflushed };
    let flushed = Group { words: "waits for the drive", class: "bar", methods: flushed };
    [unflushed, flushed].into_iter().filter(|group| !group.methods.is_empty()).collect()
}

/// The latencies of the methods of one target, with the mark that a program sets for them.
pub fn latency(title: &str, methods: &[&MethodLine], mark: &Mark) -> Chart {
    let values = methods.iter().flat_map(|one| [one.p10_us, one.p50_us, one.p99_us, one.max_us]);
    let others = REFERENCES.iter().map(|one| one.microseconds());
    let values: Vec<_> = values.chain(others).chain([mark.value]).collect();
    let axis = Axis::tight(values.into_iter(), (LEFT, RIGHT));
    let groups = groups(methods);
    let rows = methods.len() as f64 * (LINE + RANGE);
    let founders = GROUP + REFERENCES.len() as f64 * (LINE + RANGE);
    let bottom = HEAD + groups.len() as f64 * GROUP + rows + founders;
    let mut canvas = Canvas::default();
    for tick in axis.ticks() {
        canvas.line("grid", (axis.at(tick), HEAD), (axis.at(tick), bottom));
        canvas.tick((axis.at(tick), bottom + 17.0), &microseconds(tick));
    }
    for (at, name) in FIGURES.iter().zip(["median", "p99", "slowest"]) {
        canvas.text(*at, 15.0, "soft end", name);
    }
    let mut top = HEAD;
    for group in &groups {
        canvas.text(4.0, top + 18.0, "strong rim", group.words);
        top += GROUP;
        for method in &group.methods {
            limit(&mut canvas, axis.at(mark.value), top);
            row(&mut canvas, &axis, (method, group.class), top);
            top += LINE + RANGE;
        }
    }
    canvas.text(4.0, top + 18.0, "strong rim", "measured by others, means");
    top += GROUP;
    for other in &REFERENCES {
        let time = other.microseconds();
        limit(&mut canvas, axis.at(mark.value), top);
        name(&mut canvas, (other.what, "soft rim"), top, FIGURES[1]);
        canvas.text(FIGURES[2], top + 14.0, "soft end rim", &microseconds(time));
        canvas.circle("reference", (axis.at(time), top + LINE + 7.0), 5.0);
        top += LINE + RANGE;
    }
    canvas.line("axis", (LEFT, bottom), (RIGHT, bottom));
    let height = key(&mut canvas, &axis, mark, bottom + 26.0);
    let description = description(&groups);
    Chart { title: title.to_owned(), description, width: COLUMN, height, body: canvas.body }
}

fn name(canvas: &mut Canvas, (words, class): (&str, &str), top: f64, right: f64) {
    let room = ((right - LEFT) / COLUMN_CHARACTER) as usize;
    canvas.text(LEFT, top + 14.0, class, &clipped(words, room));
}

/// The mark of a program, between two lines of text.
fn limit(canvas: &mut Canvas, x: f64, top: f64) {
    canvas.path("limit", "", &format!("M{x:.1} {:.1}v14", top + LINE - 1.0));
}

/// A range from the median to the slowest: a bar from the tenth to the ninetieth percentile, a
/// dot on the median, a line at the 99th percentile, a diamond on the slowest.
fn row(canvas: &mut Canvas, axis: &Axis, (method, class): (&MethodLine, &str), top: f64) {
    name(canvas, (&method.name, "rim"), top, FIGURES[0] - 66.0);
    let times = [method.p50_us, method.p99_us, method.max_us];
    for ((at, time), class) in
        FIGURES.iter().zip(times).zip(["strong end rim", "end rim", "soft end rim"])
    {
        canvas.text(*at, top + 14.0, class, &microseconds(time));
    }
    let middle = top + LINE + 6.0;
    let [median, p99, slowest] = times.map(|time| axis.at(time));
    canvas.line("whisker", (median, middle), (slowest, middle));
    let (from, to) = (axis.at(method.p10_us), axis.at(method.p90_us));
    canvas.rect(class, (from, middle - 5.0), ((to - from).max(3.0), 10.0));
    canvas.path("mark", "", &format!("M{p99:.1} {:.1}v14", middle - 7.0));
    diamond(canvas, (slowest, middle));
    canvas.circle("outlier", (median, middle), 3.5);
}

/// Explains the marks and the axis, and returns the height below.
fn key(canvas: &mut Canvas, axis: &Axis, mark: &Mark, top: f64) -> f64 {
    let entries = [
        (Glyph::Circle("outlier"), "median"),
        (Glyph::Bar("bar"), "80 % of all"),
        (Glyph::Upright("mark", ""), "p99: 99 % are faster"),
        (Glyph::Diamond, "slowest"),
        (Glyph::Upright("limit", ""), mark.label.as_str()),
    ];
    let bottom = legend(canvas, top, &entries);
    let scale = match axis.is_log {
        true => {
            "One axis for all rows, in equal factors: each step to the right is so many \
                 times slower."
        }
        false => "One axis for all rows, from zero.",
    };
    let mut sources: Vec<_> = REFERENCES.iter().map(|one| one.source).collect();
    sources.dedup();
    let bottom = note(canvas, bottom, scale);
    note(canvas, bottom, &format!("Grey dots: {}.", sources.join("; "))) + 6.0
}

fn description(groups: &[Group<'_>]) -> String {
    let group = |group: &Group<'_>| {
        let rows = group.methods.iter().map(|method| {
            let [p50, p99, max] = [method.p50_us, method.p99_us, method.max_us].map(microseconds);
            format!("{}: median {p50}, 99 % below {p99}, slowest {max}", method.name)
        });
        format!("{}: {}", group.words, rows.collect::<Vec<_>>().join("; "))
    };
    format!("{}.", groups.iter().map(group).collect::<Vec<_>>().join(". "))
}
