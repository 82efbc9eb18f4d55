//! Latencies of single operations: a row for each method on one axis, the fastest first, from
//! its median to its slowest, with its figures above. Those that are far too fast to have
//! waited for the drive are grey and stand apart: what is fast because it does not flush is no
//! fast flush.

use super::Chart;
use super::Mark;
use super::axis::Axis;
use super::legend::{Glyph, diamond, legend, note};
use super::number_format::{measured_microseconds, microseconds};
use super::svg::{COLUMN, COLUMN_CHARACTER, Canvas, clipped};
use fsure_measure::comparison::{REFERENCES, Reference, UNFLUSHED_REFERENCE};
use fsure_measure::results::MethodLine;

const LEFT: f64 = 10.0;
const RIGHT: f64 = COLUMN - 16.0;
/// Right ends of the columns of figures, and their names: how many were measured, and three times.
const FIGURES: [f64; 4] = [300.0, 370.0, 440.0, COLUMN - 8.0];
const NAMES: [&str; 4] = ["n", "median", "p99", "slowest"];
/// Room of a count, and of a mean.
const COUNT: f64 = 56.0;
const MEAN: f64 = 106.0;
/// A range that is shorter than this is hidden by the circle of its median.
const CIRCLE: f64 = 8.0;
/// Dashes of the mark of a program, which differs by them from a percentile.
const DASHES: &str = "4 3";
/// Height of a line of text, of a range below it, and of the names of the columns.
const LINE: f64 = 18.0;
const RANGE: f64 = 16.0;
const HEAD: f64 = 24.0;
/// Height of the words above a group.
const GROUP: f64 = 26.0;
/// A method that takes less than this share of `fsync` has not waited for the same drive.
const UNFLUSHED_SHARE: f64 = 0.05;
/// Methods that end without a flush, by what they are.
const UNFLUSHED: [&str; 3] = ["write only", "sync_file_range", "O_DIRECT"];
/// The flushes that others are held against, the best first.
const FLUSHES: [&str; 2] = ["fsync", "fdatasync"];

/// A group of rows, with words above it.
struct Group<'a> {
    words: &'static str,
    class: &'static str,
    methods: Vec<&'a MethodLine>,
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
    let unflushed =
        Group { words: "returns before the write is durable", class: "idle", methods: unflushed };
    let flushed = Group { words: "waits for a flush", class: "bar", methods: flushed };
    [unflushed, flushed].into_iter().filter(|group| !group.methods.is_empty()).collect()
}

/// Writes that others have measured, the fastest first.
fn others() -> impl Iterator<Item = &'static Reference> {
    std::iter::once(&UNFLUSHED_REFERENCE).chain(REFERENCES.iter().rev())
}

/// The latencies of the methods of one target, with the mark that a program sets for them.
/// `conditions` are sentences on how they were measured.
pub fn latency(title: &str, methods: &[&MethodLine], mark: &Mark, conditions: &str) -> Chart {
    let values = methods.iter().flat_map(|one| [one.p10_us, one.p50_us, one.p99_us, one.max_us]);
    let of_others = others().map(Reference::microseconds);
    let values: Vec<_> = values.chain(of_others).chain([mark.value]).collect();
    let axis = Axis::tight(values.into_iter(), (LEFT, RIGHT));
    let groups = groups(methods);
    let mut canvas = Canvas::default();
    for (at, name) in FIGURES.iter().zip(NAMES) {
        canvas.text(*at, 15.0, "soft end", name);
    }
    let mut top = HEAD;
    for group in &groups {
        canvas.text(4.0, top + 18.0, "strong rim", group.words);
        top += GROUP;
        for method in &group.methods {
            strip(&mut canvas, &axis, mark, top);
            row(&mut canvas, &axis, (method, group.class), top);
            top += LINE + RANGE;
        }
    }
    canvas.text(4.0, top + 18.0, "strong rim", "measured by others");
    top += GROUP;
    for other in others() {
        let time = other.microseconds();
        strip(&mut canvas, &axis, mark, top);
        name(&mut canvas, (other.what, "soft rim"), top, FIGURES[3] - MEAN);
        canvas.text(
            FIGURES[3],
            top + 14.0,
            "soft end",
            &format!("mean {}", measured_microseconds(time)),
        );
        canvas.circle("reference", (axis.at(time), top + LINE + 6.0), 5.0);
        top += LINE + RANGE;
    }
    for tick in axis.ticks() {
        canvas.tick((axis.at(tick), top + 17.0), &microseconds(tick));
    }
    canvas.line("axis", (LEFT, top), (RIGHT, top));
    let height = key(&mut canvas, &axis, (mark, &groups), top + 26.0);
    let height = note(&mut canvas, height, conditions) + 6.0;
    let description = description(&groups);
    Chart { title: title.to_owned(), description, width: COLUMN, height, body: canvas.body }
}

fn name(canvas: &mut Canvas, (words, class): (&str, &str), top: f64, right: f64) {
    let room = ((right - LEFT) / COLUMN_CHARACTER) as usize;
    canvas.text(LEFT, top + 14.0, class, &clipped(words, room));
}

/// The lines of the axis and the mark of a program, below the figures of a row.
fn strip(canvas: &mut Canvas, axis: &Axis, mark: &Mark, top: f64) {
    let top = top + LINE - 1.0;
    for tick in axis.ticks() {
        canvas.line("grid", (axis.at(tick), top), (axis.at(tick), top + 14.0));
    }
    canvas.path("limit", DASHES, &format!("M{:.1} {top:.1}v14", axis.at(mark.value)));
}

/// Returns the ends of the bar from the tenth to the ninetieth percentile.
fn most(axis: &Axis, method: &MethodLine) -> (f64, f64) {
    (axis.at(method.p10_us), axis.at(method.p90_us))
}

/// A range from the median to the slowest: a bar from the tenth to the ninetieth percentile, a
/// dot on the median, a line at the 99th percentile, a diamond on the slowest.
fn row(canvas: &mut Canvas, axis: &Axis, (method, class): (&MethodLine, &str), top: f64) {
    name(canvas, (&method.name, "rim"), top, FIGURES[0] - COUNT);
    let figures = [
        fsure_core::count(method.count),
        measured_microseconds(method.p50_us),
        method.known_p99_us().map_or("–".to_owned(), measured_microseconds),
        measured_microseconds(method.max_us),
    ];
    for ((at, words), class) in
        FIGURES.iter().zip(&figures).zip(["soft end", "strong end", "end", "soft end"])
    {
        canvas.text(*at, top + 14.0, class, words);
    }
    let middle = top + LINE + 6.0;
    let (median, slowest) = (axis.at(method.p50_us), axis.at(method.max_us));
    canvas.line("whisker", (median, middle), (slowest, middle));
    let (from, to) = most(axis, method);
    if to - from > CIRCLE {
        canvas.rect(class, (from, middle - 5.0), (to - from, 10.0));
    }
    if let Some(p99) = method.known_p99_us() {
        canvas.path("mark", "", &format!("M{:.1} {:.1}v14", axis.at(p99), middle - 7.0));
    }
    diamond(canvas, (slowest, middle));
    canvas.circle("outlier", (median, middle), 3.5);
}

/// Explains the marks and the axis, and returns the height below it.
fn key(canvas: &mut Canvas, axis: &Axis, (mark, groups): (&Mark, &[Group<'_>]), top: f64) -> f64 {
    let methods = || groups.iter().flat_map(|group| &group.methods);
    let width = |method: &&&MethodLine| most(axis, method).1 - most(axis, method).0;
    let has_bar = |group: &&Group<'_>| group.methods.iter().any(|one| width(&one) > CIRCLE);
    let bar = groups.iter().rfind(has_bar).map(|group| group.class);
    let all_have_bars = methods().all(|method| width(&method) > CIRCLE);
    let median = match all_have_bars {
        true => "median",
        false if bar.is_some() => "median; if no bar is seen, 80 % of all lie in the circle",
        false => "median; 80 % of all lie in this circle",
    };
    let entries = [
        (true, Glyph::Circle("outlier"), median),
        (bar.is_some(), Glyph::Bar(bar.unwrap_or_default()), "80 % of all"),
        (
            methods().any(|method| method.known_p99_us().is_some()),
            Glyph::Upright("mark", ""),
            "p99: 99 % are faster",
        ),
        (true, Glyph::Diamond, "slowest"),
        (true, Glyph::Upright("limit", DASHES), mark.label.as_str()),
    ];
    let entries = entries.into_iter().filter(|(is_drawn, ..)| *is_drawn);
    let entries: Vec<_> = entries.map(|(_, glyph, words)| (glyph, words)).collect();
    let mut bottom = legend(canvas, top, &entries);
    if methods().any(|method| method.known_p99_us().is_none()) {
        bottom = note(canvas, bottom, "n: writes measured. Fewer than 100 have no p99.");
    }
    let scale = match axis.is_log {
        true => {
            "One axis for all rows, in equal factors: each step to the right is so many \
                 times slower."
        }
        false => "One axis for all rows, from zero.",
    };
    let mut sources: Vec<_> = others().map(|one| one.source).collect();
    sources.sort_unstable();
    sources.dedup();
    let bottom = note(canvas, bottom, scale);
    note(canvas, bottom, &format!("Grey dots: {}.", sources.join("; ")))
}

fn description(groups: &[Group<'_>]) -> String {
    let group = |group: &Group<'_>| {
        let rows = group.methods.iter().map(|method| {
            let [p50, max] = [method.p50_us, method.max_us].map(microseconds);
            let p99 = method
                .known_p99_us()
                .map_or(String::new(), |p99| format!("99 % below {}, ", microseconds(p99)));
            let count = fsure_core::count(method.count);
            format!("{}: median {p50}, {p99}slowest {max} of {count}", method.name)
        });
        format!("{}: {}", group.words, rows.collect::<Vec<_>>().join("; "))
    };
    format!("{}.", groups.iter().map(group).collect::<Vec<_>>().join(". "))
}
