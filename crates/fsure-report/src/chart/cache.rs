//! The two pictures of `speed --tree`: each way of reading beside the one past the page cache,
//! and the course of a run. There, each way has the rate and below it the fill of the page cache,
//! on one axis of time that all ways share.

use super::Chart;
use super::axis::Axis;
use super::legend::{Glyph, interval, legend, note, whisker};
use super::number_format::figure;
use super::plot::{extremes, path};
use super::svg::{COLUMN, COLUMN_CHARACTER, Canvas, clipped};
use super::waits::{Waits, waits};
use crate::interval_words;
use fsure_core::units::{self, GIB, MIB};

const LEFT: f64 = 8.0;
const RIGHT: f64 = COLUMN - 8.0;
/// Height of the line of a name, of the bar of the reference, and of that of the rate.
const NAME: f64 = 21.0;
const REFERENCE: f64 = 8.0;
const ACTUAL: f64 = 22.0;
const GAP: f64 = 14.0;

/// A rate with the interval of its median, in MiB/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateBar {
    /// The median.
    pub median: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A way of reading, held against the same work past the page cache.
#[derive(Clone, Debug, PartialEq)]
pub struct RatePair {
    /// Name of the way.
    pub label: String,
    /// The rate past the page cache.
    pub reference: RateBar,
    /// The rate that was reached; `None` for the reference itself.
    pub actual: Option<RateBar>,
    /// The loss in words, such as `loss by round 8 %`; empty for none.
    pub loss: String,
    /// The waits of another program meanwhile; `None` if none ran.
    pub waits: Option<Waits>,
    /// Runs of which the rates are the medians.
    pub runs: usize,
}

/// Bars from zero: grey for the reference, green for the way itself. `conditions` are sentences
/// on how it was measured.
pub fn beside_reference(title: &str, pairs: &[RatePair], conditions: &str) -> Chart {
    let ends = pairs.iter().flat_map(|pair| {
        let actual = pair.actual.unwrap_or(pair.reference);
        [pair.reference.high, actual.median, actual.high]
    });
    let axis = Axis::straight(ends, (LEFT, RIGHT));
    let each = |pair: &RatePair| {
        let second = if pair.actual.is_some() { ACTUAL } else { 0.0 };
        NAME + REFERENCE + second + GAP
    };
    let bottom: f64 = pairs.iter().map(each).sum::<f64>() + 4.0;
    let mut canvas = Canvas::default();
    for tick in axis.ticks() {
        canvas.line("grid", (axis.at(tick), 4.0), (axis.at(tick), bottom));
        canvas.tick((axis.at(tick), bottom + 16.0), &figure(tick));
    }
    let mut top = 4.0;
    for pair in pairs {
        draw(&mut canvas, &axis, pair, top);
        top += each(pair);
    }
    canvas.line("axis", (LEFT, 4.0), (LEFT, bottom));
    let interval = interval_words::meaning(pairs.iter().map(|pair| pair.runs));
    // What is in brackets behind a name is of the rate.
    let name = |pair: &'_ RatePair| pair.label.split(" (").next().unwrap_or_default().to_owned();
    let waited: Vec<_> = pairs.iter().filter_map(|pair| Some((name(pair), pair.waits?))).collect();
    let mut below = bottom + 26.0;
    if !waited.is_empty() {
        below = waits(&mut canvas, &waited, below);
    }
    let entries = [
        (true, Glyph::Bar("reference"), "past the cache: the reference"),
        (true, Glyph::Bar("third"), "this way"),
        (true, Glyph::Whisker, interval.as_str()),
        (
            waited.iter().any(|(_, waits)| waits.p99_us.is_some()),
            Glyph::Upright("mark", ""),
            "99 of 100 reads are faster",
        ),
        (!waited.is_empty(), Glyph::Diamond, "longest"),
    ];
    let entries: Vec<_> = entries
        .into_iter()
        .filter(|entry| entry.0)
        .map(|(_, glyph, words)| (glyph, words))
        .collect();
    let height = legend(&mut canvas, below, &entries);
    let height = note(&mut canvas, height, conditions) + 6.0;
    let rows = pairs.iter().map(in_words).collect::<Vec<_>>().join("; ");
    let description = format!("Medians: {rows}.");
    Chart { title: title.to_owned(), description, width: COLUMN, height, body: canvas.body }
}

fn in_words(pair: &RatePair) -> String {
    let reference = figure(pair.reference.median);
    let Some(actual) = pair.actual else {
        return format!("{}: {reference} MiB/s, the reference", pair.label);
    };
    let loss = if pair.loss.is_empty() { String::new() } else { format!(", {}", pair.loss) };
    format!("{}: {} of {reference} MiB/s{loss}", pair.label, figure(actual.median))
}

fn draw(canvas: &mut Canvas, axis: &Axis, pair: &RatePair, top: f64) {
    let rate = pair.actual.unwrap_or(pair.reference);
    let words = format!("{} MiB/s", figure(rate.median));
    let room = RIGHT - LEFT - (words.chars().count() as f64 + 3.0) * COLUMN_CHARACTER;
    let name = match pair.actual {
        None => format!("{}: the reference", pair.label),
        Some(_) => pair.label.clone(),
    };
    let name = clipped(&name, (room / COLUMN_CHARACTER) as usize);
    canvas.text(LEFT + 2.0, top + 15.0, "rim", &name);
    canvas.text(RIGHT, top + 15.0, "strong end rim", &words);
    let (zero, top) = (axis.at(0.0), top + NAME);
    let width = |value: f64| (axis.at(value) - zero).max(0.5);
    let reference = pair.reference;
    canvas.rect("reference", (zero, top), (width(reference.median), REFERENCE));
    let Some(actual) = pair.actual else {
        // Without the paper around it, which would hide the end of so thin a bar.
        let (low, high, middle) = (axis.at(rate.low), axis.at(rate.high), top + REFERENCE / 2.0);
        canvas.path("whisker", "", &interval(low, high, middle));
        return;
    };
    let top = top + REFERENCE;
    let end = zero + width(actual.median);
    canvas.rect("third", (zero, top), (end - zero, ACTUAL));
    let words = (pair.loss.chars().count() as f64 + 2.0) * COLUMN_CHARACTER;
    let low = axis.at(actual.low).min(end);
    whisker(canvas, (axis.at(actual.low), axis.at(actual.high)), top + ACTUAL / 2.0);
    // On the bar if that has room, or else behind it.
    if words < low - zero {
        canvas.text(low - 8.0, top + 16.0, "onbar end", &pair.loss);
    } else {
        let behind = axis.at(actual.high).max(end) + 9.0;
        canvas.text(behind, top + 16.0, "strong rim", &pair.loss);
    }
}

/// The course of one way.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheCourse {
    /// Name of the way.
    pub name: String,
    /// Median rate of all runs of the way, in MiB/s.
    pub median_mib_s: f64,
    /// Seconds, MiB/s since the point before, and bytes in the page cache.
    pub points: Vec<(f64, f64, Option<u64>)>,
    /// Seconds after which memory was full.
    pub full_at_s: Option<f64>,
    /// Bytes of that memory.
    pub memory_bytes: Option<u64>,
    /// True if the page cache was emptied again and again.
    pub is_purged: bool,
}

/// The panels of a way: its name, the rate, the fill, and the room below. Above each panel is
/// a line with its quantity and unit.
const COURSE_LEFT: f64 = 62.0;
const COURSE_NAME: f64 = 24.0;
const UNIT: f64 = 27.0;
const RATE: f64 = 92.0;
const FILL: f64 = 38.0;
const BELOW: f64 = 20.0;
const EACH: f64 = COURSE_NAME + UNIT + RATE + UNIT + FILL + BELOW;
/// Dashes of the mean.
const MEAN_DASHES: &str = "2 3";
/// Points of the rate in the longest course.
const BINS: f64 = 40.0;
/// Meaning of the mark of full memory.
const FULL: &str = "From 'memory is full' on, an older page is thrown out for each page that is \
                    read. Each point of a rate is the mean since the one before.";
/// A fill below this share of the highest one is a line at most.
const FILL_SHOWN_SHARE: f64 = 0.02;
/// A purge takes at least this share of the most that was in the page cache.
const PURGE_SHARE: f64 = 0.25;

/// Axes that all courses share, so that they can be compared.
struct CourseAxes {
    time: Axis,
    rate_high: f64,
    fill_high: f64,
    /// Seconds that a point of the rate stands for.
    bin_s: f64,
    unit: &'static str,
    unit_bytes: u64,
}

impl CourseAxes {
    fn of(courses: &[CacheCourse]) -> Self {
        let points = || courses.iter().flat_map(|course| &course.points);
        let longest = points().map(|point| point.0).filter(|at| at.is_finite());
        let bin_s = longest.fold(0.0, f64::max) / BINS;
        let rates = courses.iter().flat_map(|course| means(&course.points, bin_s));
        let rates = rates.map(|point| point.1).filter(|rate| rate.is_finite());
        let memory = courses.iter().filter_map(|course| course.memory_bytes).max().unwrap_or(0);
        let most = points().filter_map(|point| point.2).max().unwrap_or(0);
        // The memory is the top if the page cache takes most of it.
        let cached = if most > memory / 2 { most.max(memory) } else { most };
        let (unit, unit_bytes) = if cached >= 2 * GIB { ("GiB", GIB) } else { ("MiB", MIB) };
        Self {
            time: Axis::straight(points().map(|point| point.0), (COURSE_LEFT, RIGHT)),
            rate_high: rates.fold(0.0, f64::max),
            fill_high: cached as f64 / unit_bytes as f64,
            bin_s,
            unit,
            unit_bytes,
        }
    }
}

/// The rate over time, and below it the page cache, for one way after the other.
pub fn cache_course(title: &str, courses: &[CacheCourse]) -> Chart {
    let axes = CourseAxes::of(courses);
    let mut canvas = Canvas::default();
    for (place, course) in courses.iter().enumerate() {
        panels(&mut canvas, &axes, course, place as f64 * EACH);
    }
    let bottom = courses.len() as f64 * EACH - BELOW;
    for tick in axes.time.ticks() {
        let words = format!("{} s", figure(tick));
        canvas.tick((axes.time.at(tick), bottom + 18.0), &words);
    }
    let has_purges = courses.iter().any(|course| !purges(course).is_empty());
    let entries = [
        (true, Glyph::Line("line ink2", ""), "read"),
        (true, Glyph::Line("tie", MEAN_DASHES), "mean of the run"),
        (true, Glyph::Bar("fill"), "files in the page cache"),
        (
            courses.iter().any(|one| full(one).is_some()),
            Glyph::Upright("limit", "4 3"),
            "memory is full",
        ),
        (has_purges, Glyph::Upright("mark", ""), "cache emptied by a purge"),
    ];
    let entries: Vec<_> = entries
        .into_iter()
        .filter(|entry| entry.0)
        .map(|(_, glyph, words)| (glyph, words))
        .collect();
    let mut height = legend(&mut canvas, bottom + 28.0, &entries);
    let notes = "One run of each way, the nearest to the median; all have the same scales. What is \
                 in memory already is read too fast to be shown.";
    height = note(&mut canvas, height, notes);
    if courses.iter().any(|one| full(one).is_some()) {
        height = note(&mut canvas, height, FULL);
    }
    height += 6.0;
    let description = described(courses);
    Chart { title: title.to_owned(), description, width: COLUMN, height, body: canvas.body }
}

/// The two panels of a way.
fn panels(canvas: &mut Canvas, axes: &CourseAxes, course: &CacheCourse, top: f64) {
    let rate_top = top + COURSE_NAME + UNIT;
    let fill_top = rate_top + RATE + UNIT;
    let rate = Axis::straight(std::iter::once(axes.rate_high), (rate_top + RATE, rate_top));
    let fill = Axis::straight(std::iter::once(axes.fill_high), (fill_top + FILL, fill_top));
    canvas.text(LEFT, top + 16.0, "strong", &clipped(&course.name, 34));
    if let Some(second) = full(course) {
        let memory = match course.memory_bytes {
            Some(bytes) => format!("{} of memory", units::size(bytes)),
            None => "memory".to_owned(),
        };
        let words = format!("{memory} is full after {} s", figure(second));
        canvas.text(RIGHT, top + 16.0, "soft end", &words);
    }
    panel(canvas, &rate, (rate_top, rate_top + RATE), rate.ticks());
    let fill_ticks = vec![0.0, axes.fill_high.round()];
    panel(canvas, &fill, (fill_top, fill_top + FILL), fill_ticks);
    let scaled = |bytes: u64| bytes as f64 / axes.unit_bytes as f64;
    let fills = course.points.iter().filter_map(|point| Some((point.0, scaled(point.2?))));
    let fills = extremes(&fills.collect::<Vec<_>>());
    let at = |axis: &Axis, (second, value): (f64, f64)| (axes.time.at(second), axis.at(value));
    if let (Some(first), Some(last)) = (fills.first(), fills.last()) {
        let line = path(fills.iter().map(|point| at(&fill, *point)));
        let (from, to, zero) = (axes.time.at(first.0), axes.time.at(last.0), fill.at(0.0));
        canvas.path("fill", "", &format!("{line}L{to:.1} {zero:.1}L{from:.1} {zero:.1}Z"));
    }
    for second in purges(course) {
        let x = axes.time.at(second);
        for (top, bottom) in [(rate_top, rate_top + RATE), (fill_top, fill_top + FILL)] {
            canvas.path("mark", "", &format!("M{x:.1} {top:.1}V{bottom:.1}"));
        }
    }
    let rates = means(&course.points, axes.bin_s);
    canvas.path("line ink2", "", &path(rates.iter().map(|point| at(&rate, *point))));
    if let Some(mean) = mean(&course.points) {
        let y = rate.at(mean);
        let end = axes.time.at(course.points.last().map_or(0.0, |point| point.0));
        canvas.path("tie", MEAN_DASHES, &format!("M{COURSE_LEFT:.1} {y:.1}H{end:.1}"));
        let median = figure(course.median_mib_s);
        let words = format!("this run {}, median of all {median}", figure(mean));
        canvas.text(RIGHT, rate_top - 6.0, "soft end rim", &words);
    }
    if let Some(second) = full(course) {
        let x = axes.time.at(second);
        // Not through the words between the panels.
        let lines = [(rate_top, rate_top + RATE), (fill_top, fill_top + FILL)];
        for (top, bottom) in lines {
            canvas.path("limit", "4 3", &format!("M{x:.1} {top:.1}V{bottom:.1}"));
        }
    }
    canvas.text(LEFT, rate_top - 6.0, "soft rim", "read, MiB/s");
    let cached = format!("files in the page cache, {}", axes.unit);
    canvas.text(LEFT, fill_top - 6.0, "soft rim", &cached);
    let most = fills.iter().map(|point| point.1).fold(0.0, f64::max);
    if most < axes.fill_high * FILL_SHOWN_SHARE {
        canvas.text(RIGHT, fill_top - 6.0, "soft end rim", "none");
    }
}

fn panel(canvas: &mut Canvas, axis: &Axis, (top, bottom): (f64, f64), ticks: Vec<f64>) {
    let every = ticks.len().div_ceil(5).max(1);
    for tick in ticks.into_iter().step_by(every) {
        let y = axis.at(tick);
        canvas.line("grid", (COURSE_LEFT, y), (RIGHT, y));
        // What would reach into the panel above or below is moved into its own.
        let base = (y + 5.0).clamp(top + 7.0, bottom + 4.0);
        canvas.text(COURSE_LEFT - 6.0, base, "soft end", &figure(tick));
    }
    canvas.line("axis", (COURSE_LEFT, bottom), (RIGHT, bottom));
}

/// The moment at which memory was full, if that is a number.
fn full(course: &CacheCourse) -> Option<f64> {
    course.full_at_s.filter(|second| second.is_finite())
}

/// The moments at which the page cache was emptied, as its fill shows.
fn purges(course: &CacheCourse) -> Vec<f64> {
    if !course.is_purged {
        return Vec::new();
    }
    let fills: Vec<_> =
        course.points.iter().filter_map(|point| Some((point.0, point.2?))).collect();
    let most = fills.iter().map(|fill| fill.1).max().unwrap_or(0);
    let least = (most as f64 * PURGE_SHARE) as u64;
    // One purge may take several points: the next one has something to empty again.
    let (mut moments, mut is_falling, mut end) = (Vec::new(), false, 0_u64);
    for (second, bytes) in fills {
        end = if is_falling { end.min(bytes) } else { end.max(bytes) };
        if end.abs_diff(bytes) > least {
            is_falling = !is_falling;
            end = bytes;
            moments.extend((is_falling && second.is_finite()).then_some(second));
        }
    }
    moments
}

/// The mean rate in equal spans of a run, each at its middle. The readers count what they have
/// hashed in pieces of megabytes, so that shorter spans show these pieces and nothing else.
fn means(points: &[(f64, f64, Option<u64>)], bin_s: f64) -> Vec<(f64, f64)> {
    let end = points.last().map_or(0.0, |point| point.0);
    let (mut means, mut mib, mut began, mut last) = (Vec::new(), 0.0, 0.0, 0.0);
    for (at, rate, _) in points {
        mib += rate * (at - last);
        last = *at;
        // The rest of a run is no span of its own.
        if *at > began && (*at >= end && means.is_empty() || *at - began >= bin_s) {
            means.push((f64::midpoint(began, *at), mib / (at - began)));
            (mib, began) = (0.0, *at);
        }
    }
    means
}

/// The mean rate of a run.
fn mean(points: &[(f64, f64, Option<u64>)]) -> Option<f64> {
    means(points, f64::INFINITY).last().map(|point| point.1).filter(|rate| rate.is_finite())
}

fn described(courses: &[CacheCourse]) -> String {
    let course = |course: &CacheCourse| {
        let seconds = course.points.last().map_or(0.0, |point| point.0);
        let most = course.points.iter().filter_map(|point| point.2).max().unwrap_or(0);
        let mut words = vec![format!("at most {} of files cached", units::size(most))];
        words.extend(full(course).map(|at| format!("memory full after {} s", figure(at))));
        let purges: Vec<_> = purges(course).into_iter().map(figure).collect();
        if !purges.is_empty() {
            words.push(format!("emptied after {} s", purges.join(", ")));
        }
        format!("{}: {} s, {}", course.name, figure(seconds), words.join(", "))
    };
    format!("{}.", courses.iter().map(course).collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_readable;
    use super::*;

    #[test]
    fn a_purge_is_where_the_page_cache_is_emptied() {
        let gib = 1_u64 << 30;
        let fill = [0, gib / 2, gib, gib, gib / 2, 0, gib / 2, gib, 0];
        let point = |(n, bytes): (usize, &u64)| (n as f64, 1_000.0, Some(*bytes));
        let points: Vec<_> = fill.iter().enumerate().map(point).collect();
        let purged = CacheCourse {
            name: "through a purged cache".to_owned(),
            median_mib_s: 990.0,
            points,
            full_at_s: Some(2.0),
            memory_bytes: Some(gib),
            is_purged: true,
        };
        let calm = CacheCourse { is_purged: false, full_at_s: None, ..purged.clone() };
        let chart = cache_course("t", &[purged, calm]);
        let own = chart.description.split(';').next().unwrap_or_default();
        assert!(
            own.contains("memory full after 2 s, emptied after 4, 8 s"),
            "{}",
            chart.description
        );
        for words in
            [">1.0 GiB of memory is full after 2 s<", ">this run 1,000, median of all 990<"]
        {
            assert!(chart.body.contains(words), "{words}: {}", chart.body);
        }
        assert_eq!(chart.description.matches("emptied").count(), 1, "{}", chart.description);
        // Each course marks its own moments, and the key explains them.
        assert_eq!(chart.body.matches("class=\"limit\"").count(), 3, "{}", chart.body);
        assert_eq!(chart.body.matches("class=\"mark\"").count(), 5, "{}", chart.body);
        assert_readable(&chart);
    }
}
