//! The curves of a flush: a point for each load with its figure beside it. Both axes run in
//! equal factors if the values are far apart, and say so.

use super::Chart;
use super::axis::Axis;
use super::legend::{Glyph, legend, note};
use super::number_format::{figure, measured, measured_microseconds, microseconds};
use super::plot::path;
use super::svg::{COLUMN, COLUMN_CHARACTER, Canvas};
use fsure_core::units;
use fsure_measure::results::{Curve, Point};

const TOP: f64 = 22.0;
const BOTTOM: f64 = 262.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = COLUMN - 34.0;
/// Between the middles of two names below the axis.
const NAME: f64 = 62.0;
/// Radius of a point.
const POINT: f64 = 4.0;

/// A curve with the interval of each point. `conditions` are sentences on what was measured.
pub fn curve(title: &str, curve: &Curve, conditions: &str) -> Chart {
    let points: Vec<_> =
        curve.points.iter().filter(|p| p.x.is_finite() && p.y.is_finite()).collect();
    let x = Axis::tight(points.iter().map(|point| point.x), (LEFT + 14.0, RIGHT));
    let values = points.iter().flat_map(|point| [point.low, point.y, point.high]);
    let y = Axis::tight(values.collect::<Vec<_>>().into_iter(), (BOTTOM, TOP));
    let is_bytes = curve.x.contains("bytes");
    let of_x = |value: f64| if is_bytes { whole_size(value) } else { figure(value) };
    let is_time = matches!(curve.y.as_str(), "us" | "µs");
    let of_y = |value: f64| if is_time { microseconds(value) } else { figure(value) };
    let of_point = |value: f64| match is_time {
        true => measured_microseconds(value),
        false => measured(value),
    };
    let mut canvas = Canvas::default();
    for tick in y.ticks() {
        canvas.line("grid", (LEFT, y.at(tick)), (COLUMN - 8.0, y.at(tick)));
        canvas.text(LEFT - 6.0, y.at(tick) + 5.0, "soft end", &of_y(tick));
    }
    canvas.line("axis", (LEFT, BOTTOM), (COLUMN - 8.0, BOTTOM));
    draw(&mut canvas, (&x, &y), &points, (&of_x, &of_point));
    let unit = if is_time { "time" } else { curve.y.as_str() };
    canvas.text(RIGHT + 26.0, BOTTOM + 38.0, "soft end", &curve.x);
    canvas.text(4.0, 10.0, "soft", unit);
    let is_hidden = |point: &&Point| y.at(point.low) - y.at(point.high) <= 2.0 * POINT;
    let entries: &[_] = match points.iter().all(is_hidden) {
        true => &[(
            Glyph::Circle("dot ink0"),
            "median, with a 95 % interval that is smaller than the point",
        )],
        false => &[
            (Glyph::Circle("dot ink0"), "median"),
            (Glyph::Upright("whisker", ""), "95 % interval"),
        ],
    };
    let mut height = legend(&mut canvas, BOTTOM + 46.0, entries);
    let scale = match (x.is_log, y.is_log) {
        (true, true) => "Equal steps are equal factors on both axes.",
        (true, false) => "Equal steps to the right are equal factors.",
        (false, true) => "Equal steps upwards are equal factors.",
        (false, false) => "",
    };
    height = note(&mut canvas, height, scale);
    height = note(&mut canvas, height, conditions) + 6.0;
    let rows = points.iter().map(|point| format!("{} at {}", of_y(point.y), of_x(point.x)));
    let rows = rows.collect::<Vec<_>>().join(", ");
    let description = format!("{}, {unit} over {}: {rows}.", curve.name, curve.x);
    Chart { title: title.to_owned(), description, width: COLUMN, height, body: canvas.body }
}

/// A size without a digit behind the point if that is a zero: `4 KiB`.
fn whole_size(bytes: f64) -> String {
    units::size(bytes as u64).replace(".0 ", " ")
}

/// Words for a value.
type Label<'a> = &'a dyn Fn(f64) -> String;

fn draw(
    canvas: &mut Canvas,
    (x, y): (&Axis, &Axis),
    points: &[&Point],
    (of_x, of_y): (Label<'_>, Label<'_>),
) {
    let places: Vec<_> = points.iter().map(|point| (x.at(point.x), y.at(point.y))).collect();
    for (point, (at, _)) in points.iter().zip(&places) {
        let (low, high) = (y.at(point.low), y.at(point.high));
        canvas.path("whisker", "", &format!("M{at:.1} {low:.1}V{high:.1}"));
    }
    canvas.path("line ink0", "", &path(places.iter().copied()));
    let (mut free, mut free_value) = (0.0, 0.0);
    for (point, (at, height)) in points.iter().zip(&places) {
        canvas.circle("dot ink0", (*at, *height), POINT);
        let words = of_y(point.y);
        let half = words.chars().count() as f64 * COLUMN_CHARACTER / 2.0;
        if at - half >= free_value {
            let above = y.at(point.high).min(*height) - 9.0;
            canvas.text(*at, above.max(TOP - 6.0), "strong mid rim", &words);
            free_value = at + half + 4.0;
        }
        if *at >= free {
            canvas.tick((*at, BOTTOM + 18.0), &of_x(point.x));
            free = at + NAME;
        }
    }
}
