//! Throughput and waiting over time. Lines differ by dashes and have their names beside them.

use std::fmt::Write as _;

use super::Chart;
use super::axis::Axis;
use super::number_format::figure;
use super::svg::{Canvas, WIDTH, clipped};
use fsure_core::units;
use fsure_measure::results::Series;

pub(super) const TOP: f64 = 12.0;
pub(super) const BOTTOM: f64 = 262.0;
pub(super) const LEFT: f64 = 76.0;
pub(super) const HEIGHT: f64 = 310.0;
/// Room at the right for the lines' names.
const NAMES: f64 = 150.0;
const DASHES: [&str; 4] = ["", "7 3", "2 3", "9 3 2 3"];
/// Points beyond this are drawn as the extremes of their neighbourhood.
const BINS: usize = 300;

/// A line over time.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeLine {
    /// Its name.
    pub name: String,
    /// Seconds, and the value until then.
    pub points: Vec<(f64, f64)>,
    /// The same in words, for who does not see it.
    pub words: String,
}

/// Throughput over time.
pub fn throughput(title: &str, series: &[&Series]) -> Chart {
    let line = |series: &&Series| {
        let (rate, bytes) = (figure(series.mib_per_s), units::size(series.bytes));
        let words = format!("{}: {rate} MiB/s over {bytes}", series.name);
        TimeLine { name: series.name.clone(), points: series.points.clone(), words }
    };
    over_time(title, "MiB/s over seconds", &series.iter().map(line).collect::<Vec<_>>())
}

/// Values over seconds; `unit` names both.
pub fn over_time(title: &str, unit: &str, series: &[TimeLine]) -> Chart {
    let points = || series.iter().flat_map(|series| &series.points);
    let x = Axis::straight(points().map(|point| point.0), (LEFT, WIDTH - NAMES));
    let y = Axis::straight(points().map(|point| point.1), (BOTTOM, TOP));
    let mut canvas = Canvas::default();
    frame(&mut canvas, (&x, &y), WIDTH - NAMES, &|value| figure(value), &|value| figure(value));
    let mut names: Vec<(f64, usize)> = Vec::new();
    for (place, series) in series.iter().enumerate() {
        let points = extremes(&series.points);
        let class = format!("line ink{}", place % 4);
        let path = path(points.iter().map(|point| (x.at(point.0), y.at(point.1))));
        canvas.path(&class, DASHES[place % 4], &path);
        names.extend(points.last().map(|last| (y.at(last.1), place)));
    }
    names.sort_by(|one, two| one.0.total_cmp(&two.0));
    let mut free = TOP;
    for (at, place) in names {
        let at = at.max(free);
        free = at + 16.0;
        let end = WIDTH - NAMES;
        let class = format!("line ink{}", place % 4);
        canvas.path(&class, DASHES[place % 4], &format!("M{:.1} {at:.1}h22", end + 6.0));
        canvas.text(end + 32.0, at + 4.0, "", &clipped(&series[place].name, 17));
    }
    canvas.text(LEFT, HEIGHT - 8.0, "soft", unit);
    let rows: Vec<_> = series.iter().map(|series| &*series.words).collect();
    let description = format!("{}.", rows.join("; "));
    Chart { title: title.to_owned(), description, width: WIDTH, height: HEIGHT, body: canvas.body }
}

pub(super) type Label<'a> = &'a dyn Fn(f64) -> String;

pub(super) fn frame(
    canvas: &mut Canvas,
    (x, y): (&Axis, &Axis),
    right: f64,
    of_x: Label<'_>,
    of_y: Label<'_>,
) {
    for tick in y.ticks() {
        canvas.line("grid", (LEFT, y.at(tick)), (right, y.at(tick)));
        canvas.text(LEFT - 8.0, y.at(tick) + 4.0, "soft end", &of_y(tick));
    }
    for tick in x.ticks() {
        let text = of_x(tick);
        if !text.is_empty() {
            canvas.text(x.at(tick), BOTTOM + 18.0, "soft mid", &text);
        }
    }
    canvas.line("axis", (LEFT, BOTTOM), (right, BOTTOM));
}

/// The points as a path of SVG.
pub(super) fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    points.enumerate().fold(String::new(), |mut path, (place, (x, y))| {
        let _ = write!(path, "{}{x:.1} {y:.1}", if place == 0 { 'M' } else { 'L' });
        path
    })
}

/// At most two points for each bin, the lowest and the highest, so that no
/// dip is averaged away.
pub(super) fn extremes(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let size = points.len().div_ceil(BINS).max(1);
    if size <= 2 {
        return points.to_vec();
    }
    let ends = points.chunks(size).flat_map(|bin| {
        let by_y = |one: &&(f64, f64), two: &&(f64, f64)| one.1.total_cmp(&two.1);
        let mut ends: Vec<_> =
            bin.iter().min_by(by_y).into_iter().chain(bin.iter().max_by(by_y)).copied().collect();
        ends.sort_by(|one, two| one.0.total_cmp(&two.0));
        ends
    });
    ends.collect()
}
