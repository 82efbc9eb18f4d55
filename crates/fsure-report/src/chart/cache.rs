//! The two pictures of `speed --tree`: the rate past the page cache in grey and the rate that
//! is really reached in green, side by side; and the course of a run, with the fill of the page
//! cache below the rate on the same axis of time.

use super::Chart;
use super::axis::Axis;
use super::number_format::figure;
use super::plot::{extremes, path};
use super::svg::{CHARACTER, Canvas, WIDTH, clipped};
use fsure_core::units::{self, GIB, MIB};

const BAR: f64 = 13.0;
const GROUP: f64 = 2.0 * BAR + 14.0;
const TOP: f64 = 12.0;
/// Room at the right for the figures of a bar.
const FIGURES: f64 = 150.0;

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

/// Two rates that are held against each other.
#[derive(Clone, Debug, PartialEq)]
pub struct RatePair {
    /// Name of the way that is held against the potential.
    pub label: String,
    /// The rate that the device can give.
    pub potential: RateBar,
    /// The rate that was reached.
    pub actual: RateBar,
    /// The loss in words; empty for none.
    pub loss: String,
}

/// Pairs of bars from zero: grey for the potential, green for the actual rate.
pub fn potential_and_actual(title: &str, pairs: &[RatePair]) -> Chart {
    let longest = pairs.iter().map(|pair| pair.label.chars().count()).max().unwrap_or(0);
    let left = (longest as f64 * CHARACTER + 16.0).clamp(90.0, 340.0);
    let characters_max = ((left - 12.0) / CHARACTER).round() as usize;
    let bars = pairs.iter().flat_map(|pair| [pair.potential, pair.actual]);
    let values = bars.flat_map(|bar| [bar.median, bar.high]);
    let axis = Axis::straight(values, (left, WIDTH - FIGURES));
    let bottom = TOP + pairs.len() as f64 * GROUP;
    let mut canvas = Canvas::default();
    for tick in axis.ticks() {
        canvas.line("grid", (axis.at(tick), TOP - 4.0), (axis.at(tick), bottom));
        canvas.text(axis.at(tick), bottom + 16.0, "soft mid", &figure(tick));
    }
    for (place, pair) in pairs.iter().enumerate() {
        let top = TOP + place as f64 * GROUP + 7.0;
        canvas.text(left - 8.0, top + BAR + 4.0, "end", &clipped(&pair.label, characters_max));
        bar(&mut canvas, &axis, "reference", pair.potential, top, "");
        bar(&mut canvas, &axis, "third", pair.actual, top + BAR, &pair.loss);
    }
    canvas.line("axis", (left, TOP - 4.0), (left, bottom));
    legend(&mut canvas, left, bottom + 34.0);
    let rows = pairs.iter().map(|pair| {
        let (potential, actual) = (figure(pair.potential.median), figure(pair.actual.median));
        let loss = if pair.loss.is_empty() { String::new() } else { format!(", {}", pair.loss) };
        format!("{}: {actual} of {potential} MiB/s{loss}", pair.label)
    });
    let rows = rows.collect::<Vec<_>>().join("; ");
    Chart {
        title: title.to_owned(),
        description: format!("Medians with their intervals: {rows}."),
        width: WIDTH,
        height: bottom + 44.0,
        body: canvas.body,
    }
}

fn bar(canvas: &mut Canvas, axis: &Axis, class: &str, rate: RateBar, top: f64, words: &str) {
    let (zero, middle) = (axis.at(0.0), top + BAR / 2.0);
    let (low, at, high) = (axis.at(rate.low), axis.at(rate.median), axis.at(rate.high));
    canvas.rect(class, (zero, top + 0.5), ((at - zero).max(0.5), BAR - 1.0));
    let whisker = format!(
        "M{low:.1} {0:.1}v6M{low:.1} {middle:.1}H{high:.1}M{high:.1} {0:.1}v6",
        middle - 3.0
    );
    canvas.path("whisker", "", &whisker);
    let figures = format!("{} {words}", figure(rate.median));
    canvas.text(high.max(at) + 8.0, middle + 4.0, "strong", figures.trim_end());
}

fn legend(canvas: &mut Canvas, left: f64, y: f64) {
    let entries = [("reference", "potential: past the page cache"), ("third", "actual")];
    let mut x = left;
    for (class, words) in entries {
        canvas.rect(class, (x, y - 9.0), (10.0, 10.0));
        canvas.text(x + 15.0, y, "soft", words);
        x += 15.0 + words.chars().count() as f64 * CHARACTER + 12.0;
    }
    canvas.text(x, y, "soft", "median, MiB/s");
}

/// The course of one way.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheCourse {
    /// Name of the way.
    pub name: String,
    /// Seconds, MiB/s since the point before, and bytes in the page cache.
    pub points: Vec<(f64, f64, Option<u64>)>,
    /// Seconds after which memory was full.
    pub full_at_s: Option<f64>,
}

const LEFT: f64 = 76.0;
/// Room at the right for the names of the lines.
const NAMES: f64 = 196.0;
const DASHES: [&str; 4] = ["", "7 3", "2 3", "9 3 2 3"];
/// The panel of the rate, and that of the page cache below it: top and bottom.
const RATE: (f64, f64) = (24.0, 194.0);
const FILL: (f64, f64) = (236.0, 346.0);
/// Points of the rate.
const BINS: f64 = 40.0;
const COURSE_HEIGHT: f64 = 392.0;

/// The rate over time, and below it the page cache.
pub fn cache_course(title: &str, courses: &[CacheCourse]) -> Chart {
    let points = || courses.iter().flat_map(|course| &course.points);
    let x = Axis::straight(points().map(|point| point.0), (LEFT, WIDTH - NAMES));
    let rates = courses.iter().flat_map(|course| means(&course.points));
    let rates: Vec<_> = rates.map(|point| point.1).collect();
    let rate = Axis::straight(rates.into_iter(), (RATE.1, RATE.0));
    let cached = points().filter_map(|point| point.2).max().unwrap_or(0);
    let (unit, unit_bytes) = if cached >= 2 * GIB { ("GiB", GIB) } else { ("MiB", MIB) };
    let scaled = |bytes: u64| bytes as f64 / unit_bytes as f64;
    let fills = points().filter_map(|point| point.2).map(scaled);
    let fill = Axis::straight(fills, (FILL.1, FILL.0));
    let mut canvas = Canvas::default();
    panel(&mut canvas, "MiB/s", &rate, RATE);
    panel(&mut canvas, &format!("files in the page cache, {unit}"), &fill, FILL);
    for tick in x.ticks() {
        canvas.text(x.at(tick), FILL.1 + 18.0, "soft mid", &figure(tick));
    }
    canvas.text(LEFT, COURSE_HEIGHT - 8.0, "soft", "seconds");
    for (place, course) in courses.iter().enumerate() {
        let class = format!("line ink{}", place % 4);
        let dashes = DASHES[place % 4];
        let rates = means(&course.points);
        let at = |axis: &Axis, (second, value): (f64, f64)| (x.at(second), axis.at(value));
        canvas.path(&class, dashes, &path(rates.iter().map(|point| at(&rate, *point))));
        let fills = course.points.iter().filter_map(|point| Some((point.0, scaled(point.2?))));
        let fills: Vec<_> = fills.collect();
        canvas.path(&class, dashes, &path(extremes(&fills).into_iter().map(|p| at(&fill, p))));
        let y = RATE.0 + 8.0 + place as f64 * 18.0;
        let names = WIDTH - NAMES + 8.0;
        canvas.path(&class, dashes, &format!("M{names:.1} {y:.1}h22"));
        canvas.text(names + 28.0, y + 4.0, "", &clipped(&course.name, 25));
    }
    let full = courses.iter().find_map(|course| course.full_at_s);
    if let Some(second) = full.filter(|second| second.is_finite()) {
        canvas.path("limit", "4 3", &format!("M{:.1} {:.1}V{:.1}", x.at(second), RATE.0, FILL.1));
        canvas.label((x.at(second) + 5.0, RATE.0 + 10.0), "memory is full");
    }
    Chart {
        title: title.to_owned(),
        description: described(courses),
        width: WIDTH,
        height: COURSE_HEIGHT,
        body: canvas.body,
    }
}

/// The mean rate in each of [`BINS`] equal spans of a run. The readers count what they have
/// hashed in pieces of megabytes, so that shorter spans show these pieces and nothing else.
fn means(points: &[(f64, f64, Option<u64>)]) -> Vec<(f64, f64)> {
    let end = points.last().map_or(0.0, |point| point.0);
    let (mut means, mut mib, mut began, mut last) = (Vec::new(), 0.0, 0.0, 0.0);
    for (at, rate, _) in points {
        mib += rate * (at - last);
        last = *at;
        if *at > began && (*at >= end || *at - began >= end / BINS) {
            means.push((*at, mib / (at - began)));
            (mib, began) = (0.0, *at);
        }
    }
    means
}

fn panel(canvas: &mut Canvas, name: &str, axis: &Axis, (top, bottom): (f64, f64)) {
    let right = WIDTH - NAMES;
    for tick in axis.ticks() {
        canvas.line("grid", (LEFT, axis.at(tick)), (right, axis.at(tick)));
        canvas.text(LEFT - 8.0, axis.at(tick) + 4.0, "soft end", &figure(tick));
    }
    canvas.line("axis", (LEFT, bottom), (right, bottom));
    canvas.text(LEFT, top - 10.0, "soft", name);
}

fn described(courses: &[CacheCourse]) -> String {
    let course = |course: &CacheCourse| {
        let seconds = course.points.last().map_or(0.0, |point| point.0);
        let most = course.points.iter().filter_map(|point| point.2).max().unwrap_or(0);
        let full = course
            .full_at_s
            .map_or(String::new(), |second| format!(", memory full after {} s", figure(second)));
        let most = units::size(most);
        format!("{}: {} s, at most {most} of files cached{full}", course.name, figure(seconds))
    };
    format!("{}.", courses.iter().map(course).collect::<Vec<_>>().join("; "))
}
