//! Curves of figures by load or by size: a point for each with its figure beside it. Both axes run
//! in equal factors if the values are far apart, and say so. Up to three curves share the axes, so
//! that their heights can be compared.

use super::Chart;
use super::axis::Axis;
use super::legend::{Glyph, legend, note, upright_interval};
use super::number_format::{figure, measured, measured_microseconds, microseconds, whole_size};
use super::plot::path;
use super::svg::{COLUMN, COLUMN_CHARACTER, Canvas};
use fsure_measure::results::{Curve, Point};

const TOP: f64 = 22.0;
const BOTTOM: f64 = 262.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = COLUMN - 34.0;
/// Room at the left of the first point, for its figure.
const FIRST: f64 = 46.0;
/// Figures that are so far above each other do not touch.
const FIGURE_HEIGHT: f64 = 15.0;
/// Between the middles of two names below the axis.
const NAME: f64 = 56.0;
/// Radius of a point.
const POINT: f64 = 4.0;
/// A tick nearer than this factor to an end of an axis gives way to the figure of the end.
const END_ROOM: f64 = 1.3;
/// Foot of the axis as a share of the least value: no point lies on it, and there is room for the
/// figures below the lower one of two curves.
const POINT_ABOVE: f64 = 0.95;
const FIGURES_BELOW: f64 = 0.6;
/// Style and dashes of each line.
const LINES: [(&str, &str); 3] = [("ink0", ""), ("ink1", "7 3"), ("ink2", "2 3")];

/// Style of the figures of each line.
const TINTS: [&str; 3] = ["tint0", "tint1", "tint2"];

/// A curve as it is drawn.
#[derive(Clone, Copy, Debug)]
pub struct CurveLine<'a> {
    /// Name in the key; it is left out if there is one curve.
    pub name: &'a str,
    /// The points, and the units of both axes.
    pub curve: &'a Curve,
}

impl<'a> CurveLine<'a> {
    fn points(&self) -> Vec<&'a Point> {
        self.curve.points.iter().filter(|p| p.x.is_finite() && p.y.is_finite()).collect()
    }
}

/// Up to three curves of the same units, with the interval of each point. `x_name` is what their
/// values are over, and `conditions` are sentences on what was measured.
pub fn curves(title: &str, lines: &[CurveLine<'_>], (x_name, conditions): (&str, &str)) -> Chart {
    let all: Vec<_> = lines.iter().flat_map(CurveLine::points).collect();
    let y_unit = lines.first().map_or("", |line| &*line.curve.y);
    let x = Axis::tight(all.iter().map(|point| point.x), (LEFT + FIRST, RIGHT));
    let values = all.iter().flat_map(|point| [point.low, point.y, point.high]);
    let below = if lines.len() > 1 { FIGURES_BELOW } else { POINT_ABOVE };
    let values = values.collect::<Vec<_>>().into_iter();
    // What grows by the same factor in each step is a straight line then, and several can be
    // compared also where they are low.
    let y = match x.is_log && lines.len() > 1 {
        true => Axis::logarithmic(values, below, (BOTTOM, TOP)),
        false => Axis::ended(values, below, (BOTTOM, TOP)),
    };
    let is_bytes = x_name.contains("bytes");
    let of_x = |value: f64| if is_bytes { whole_size(value as u64) } else { figure(value) };
    let is_time = matches!(y_unit, "us" | "µs");
    let of_y = |value: f64| if is_time { microseconds(value) } else { figure(value) };
    let of_point = |value: f64| match is_time {
        true => measured_microseconds(value),
        false => measured(value),
    };
    let mut canvas = Canvas::default();
    for tick in ticks(&y) {
        canvas.line("grid", (LEFT, y.at(tick)), (COLUMN - 8.0, y.at(tick)));
        canvas.text(LEFT - 6.0, y.at(tick) + 5.0, "soft end", &of_y(tick));
    }
    canvas.line("axis", (LEFT, BOTTOM), (COLUMN - 8.0, BOTTOM));
    for (place, line) in lines.iter().enumerate() {
        let points = draw_line(&mut canvas, (&x, &y), &line.points(), LINES[place % 3]);
        // The figures of one line need no colour.
        let style = if lines.len() < 2 { "" } else { TINTS[place % 3] };
        figures(&mut canvas, (&points, style), (place, lines), &of_point);
    }
    names_below(&mut canvas, &x, &all, &of_x);
    let (unit, better) = match is_time {
        true => ("time", "lower is better"),
        false => (y_unit, "higher is better"),
    };
    canvas.text(RIGHT + 26.0, BOTTOM + 38.0, "soft end", x_name);
    canvas.text(4.0, 10.0, "soft", &format!("{unit}, {better}"));
    let mut height = key(&mut canvas, (&y, lines, &all), BOTTOM + 46.0);
    let scale = match (x.is_log, y.is_log) {
        (true, true) => "Equal steps are equal factors on both axes.",
        (true, false) => "Equal steps to the right are equal factors.",
        (false, true) => "Equal steps upwards are equal factors.",
        (false, false) => "",
    };
    height = note(&mut canvas, height, scale);
    height = note(&mut canvas, height, conditions) + 6.0;
    let rows = lines.iter().map(|line| {
        let points = line.points().into_iter();
        let points = points.map(|point| format!("{} at {}", of_y(point.y), of_x(point.x)));
        format!("{}: {}", line.curve.name, points.collect::<Vec<_>>().join(", "))
    });
    let rows = rows.collect::<Vec<_>>().join("; ");
    let description = format!("{unit} over {x_name}: {rows}.");
    Chart { title: title.to_owned(), description, width: COLUMN, height, body: canvas.body }
}

/// The ticks of an axis, and the ends of a logarithmic one.
fn ticks(axis: &Axis) -> Vec<f64> {
    let mut ticks = axis.ticks();
    if axis.is_log {
        ticks.retain(|tick| *tick >= axis.low * END_ROOM && *tick * END_ROOM <= axis.high);
        ticks.insert(0, axis.low);
        ticks.push(axis.high);
    }
    ticks
}

/// A point with its place on the paper, and the upper and lower end of its interval there.
struct Placed<'a> {
    point: &'a Point,
    at: (f64, f64),
    top: f64,
    bottom: f64,
}

/// Returns true for an interval of so many pixels that could not be seen behind its point.
fn is_smaller_than_point(height: f64) -> bool {
    height <= 2.0 * POINT
}

fn draw_line<'a>(
    canvas: &mut Canvas,
    (x, y): (&Axis, &Axis),
    points: &[&'a Point],
    (class, dashes): (&str, &str),
) -> Vec<Placed<'a>> {
    let place = |point: &&'a Point| {
        let at = (x.at(point.x), y.at(point.y));
        let (top, bottom) = (y.at(point.high).min(at.1), y.at(point.low).max(at.1));
        Placed { point, at, top, bottom }
    };
    let points: Vec<_> = points.iter().map(place).collect();
    for Placed { at, top, bottom, .. } in &points {
        if is_smaller_than_point(bottom - top) {
            continue;
        }
        // With ends, and in the colour of the line: those of two lines may cross.
        let interval = upright_interval(at.0, [*top, *bottom]);
        canvas.path(&format!("line {class}"), "", &interval);
    }
    let line = path(points.iter().map(|point| point.at));
    canvas.path(&format!("line {class}"), dashes, &line);
    for point in &points {
        canvas.circle(&format!("dot {class}"), point.at, POINT);
    }
    points
}

/// The place of a point among those of the other lines at the same value.
enum Among {
    Highest,
    Lowest,
    Between,
}

/// The points of all lines at one value, each with the number of its line.
fn points_at<'a>(x: f64, lines: &[CurveLine<'a>]) -> impl Iterator<Item = (usize, &'a Point)> {
    let points = lines.iter().map(CurveLine::points).enumerate();
    points.filter_map(move |(place, points)| {
        Some((place, points.into_iter().find(|point| point.x.total_cmp(&x).is_eq())?))
    })
}

/// Finds the place of a point of one of the lines, which is given by its number.
fn among(point: &Point, (own, lines): (usize, &[CurveLine<'_>])) -> Among {
    let others = points_at(point.x, lines).filter(|(place, _)| *place != own);
    // Of equal ones, the first line counts as the higher.
    let is_higher: Vec<_> = others
        .map(|(place, other)| point.y > other.y || (point.y >= other.y && own < place))
        .collect();
    match () {
        () if is_higher.iter().all(|is| *is) => Among::Highest,
        () if is_higher.iter().all(|is| !*is) => Among::Lowest,
        () => Among::Between,
    }
}

/// Factor up to which points at one value count as equal.
const ALIKE_MAX: f64 = 1.05;

/// Returns true if the highest of all lines is well above a point.
fn is_well_below(point: &Point, lines: &[CurveLine<'_>]) -> bool {
    let highest = points_at(point.x, lines).map(|(_, one)| one.y).fold(0.0, f64::max);
    highest > point.y * ALIKE_MAX
}

/// Writes the figure of each point on the side that the line leaves free: above the highest and
/// below the lowest of the lines, and before it if the line rises. A point between two others has
/// its figure beside it if its line ends there, or begins there at another height than the
/// highest, and else none.
fn figures(
    canvas: &mut Canvas,
    (points, style): (&[Placed<'_>], &str),
    among_lines: (usize, &[CurveLine<'_>]),
    words: Label<'_>,
) {
    let begins_apart = points.len() > 1 && is_well_below(points[0].point, among_lines.1);
    // The right end and the base line of the last figure on each side.
    let (mut last_above, mut last_below) = ((0.0, 0.0), (0.0, 0.0));
    for (place, one) in points.iter().enumerate() {
        let (is_begin, is_end) = (place == 0 && begins_apart, place + 1 == points.len());
        let is_above = match among(one.point, among_lines) {
            Among::Highest => true,
            // Below several lines, the figures of one would be read as those of another.
            Among::Lowest if among_lines.1.len() > 2 && !is_begin && !is_end => continue,
            Among::Lowest => false,
            Among::Between => {
                let (x, y) = (POINT + 6.0, one.at.1 + 5.0);
                let words = words(one.point.y);
                if is_begin {
                    let style = format!("strong rim end {style}");
                    canvas.text(one.at.0 - x, y, style.trim_end(), &words);
                } else if is_end {
                    let style = format!("strong rim {style}");
                    canvas.text(one.at.0 + x, y, style.trim_end(), &words);
                }
                continue;
            }
        };
        let before = points[place.saturating_sub(1)].at.1;
        let after = points[(place + 1).min(points.len() - 1)].at.1;
        let words = words(one.point.y);
        let width = words.chars().count() as f64 * COLUMN_CHARACTER;
        let is_rising = after < before;
        let left = if is_rising == is_above { one.at.0 - width + 6.0 } else { one.at.0 - 6.0 };
        let left = left.max(LEFT + 2.0).min(COLUMN - width - 2.0);
        let above = (one.top - 9.0).max(TOP - 6.0);
        let at = if is_above { above } else { (one.bottom + 19.0).min(BOTTOM - 3.0) };
        let last = if is_above { &mut last_above } else { &mut last_below };
        if left >= last.0 || (at - last.1).abs() >= FIGURE_HEIGHT {
            canvas.text(left, at, format!("strong rim {style}").trim_end(), &words);
            *last = (left + width + 4.0, at);
        }
    }
}

/// Writes the values of the axis below the points, as far as there is room.
fn names_below(canvas: &mut Canvas, x: &Axis, points: &[&Point], words: Label<'_>) {
    let mut values: Vec<_> = points.iter().map(|point| point.x).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let mut free = 0.0;
    for value in values {
        if x.at(value) >= free {
            canvas.tick((x.at(value), BOTTOM + 18.0), &words(value));
            free = x.at(value) + NAME;
        }
    }
}

/// Explains the marks, and returns the height below.
fn key(
    canvas: &mut Canvas,
    (y, lines, points): (&Axis, &[CurveLine<'_>], &[&Point]),
    top: f64,
) -> f64 {
    let is_hidden = |point: &&Point| is_smaller_than_point(y.at(point.low) - y.at(point.high));
    let all_hidden = points.iter().all(is_hidden);
    let median = match all_hidden {
        true => "median, with a 95 % interval that is smaller than the point",
        false => "median",
    };
    let styles = LINES.map(|(class, dashes)| (format!("line {class}"), dashes));
    let named = lines.iter().zip(&styles).filter(|_| lines.len() > 1);
    let mut entries: Vec<_> =
        named.map(|(line, (class, dashes))| (Glyph::Line(class, dashes), line.name)).collect();
    entries.push((Glyph::Circle("dot ink0"), median));
    if !all_hidden {
        entries.push((Glyph::Interval, "95 % interval, if larger than the point"));
    }
    legend(canvas, top, &entries)
}

/// Words for a value.
type Label<'a> = &'a dyn Fn(f64) -> String;

#[cfg(test)]
mod tests {
    use super::super::tests::assert_readable;
    use super::*;

    #[test]
    fn every_point_of_a_curve_has_its_figure() {
        let figures = [45.6, 91.1, 182.1, 364.0, 725.0, 1_436.0, 2_828.0];
        let points = figures.iter().enumerate().map(|(n, y)| {
            let x = 2_f64.powi(i32::try_from(n).unwrap());
            Point { x, y: *y, low: y * 0.98, high: y * 1.02, flushes_per_op: None }
        });
        let line = Curve {
            name: "commits per flush".to_owned(),
            target: "drive".to_owned(),
            x: "commits per flush".to_owned(),
            y: "commits/s".to_owned(),
            points: points.collect(),
            measured: String::new(),
        };
        let chart = curves("t", &[CurveLine { name: "commits", curve: &line }], ("per flush", ""));
        for value in ["45.6", "91.1", "182", "364", "725", "1,436", "2,828"] {
            assert!(chart.body.contains(&format!("strong rim\">{value}</text>")), "{value}");
        }
        assert!(chart.body.contains("equal factors on both axes"), "{}", chart.body);
        assert!(chart.body.contains(">40</text>"), "the foot of the axis has a figure");
        assert!(!chart.body.contains(">commits</text>"), "one curve needs no name");
        assert_readable(&chart);
    }

    #[test]
    fn two_curves_share_their_axes_and_have_names() {
        let of = |name: &str, figures: [f64; 6]| {
            let points = figures.iter().enumerate().map(|(n, y)| {
                let x = 4096.0 * 4_f64.powi(i32::try_from(n).unwrap());
                Point { x, y: *y, low: y * 0.9, high: y * 1.1, flushes_per_op: None }
            });
            Curve {
                name: format!("{name} by request size"),
                target: "disk".to_owned(),
                x: "bytes of a request".to_owned(),
                y: "MiB/s".to_owned(),
                points: points.collect(),
                measured: String::new(),
            }
        };
        let read = of("read", [83.6, 326.0, 1_050.0, 2_450.0, 3_500.0, 3_807.0]);
        let write = of("write", [62.9, 237.0, 806.0, 2_541.0, 4_929.0, 6_196.0]);
        let lines = [("read", &read), ("write", &write)];
        let lines = lines.map(|(name, curve)| CurveLine { name, curve });
        let chart = curves("t", &lines, ("bytes of a request", ""));
        assert_readable(&chart);
        for word in ["read", "write", "83.6", "62.9", "3,807", "6,196", "4 KiB", "4 MiB", "30"] {
            assert!(chart.body.contains(&format!(">{word}</text>")), "{word}: {}", chart.body);
        }
        assert!(chart.description.contains("write by request size: 62.9 at 4 KiB"));
    }

    #[test]
    fn of_three_curves_only_the_highest_has_figures_before_its_end() {
        let of = |figures: &[f64]| {
            let points = figures.iter().enumerate().map(|(n, y)| {
                let x = 2_f64.powi(i32::try_from(n).unwrap());
                Point { x, y: *y, low: y * 0.99, high: y * 1.01, flushes_per_op: None }
            });
            Curve {
                name: "n".to_owned(),
                target: "drive".to_owned(),
                x: "n".to_owned(),
                y: "commits/s".to_owned(),
                points: points.collect(),
                measured: String::new(),
            }
        };
        let all = [
            of(&[45.6, 91.1, 182.0, 363.0, 722.0]),
            of(&[45.3, 46.3, 52.9, 81.4]),
            of(&[45.3, 45.4, 45.5, 45.7]),
        ];
        let line = |(place, curve)| CurveLine { name: ["one", "two", "three"][place], curve };
        let lines: Vec<_> = all.iter().enumerate().map(line).collect();
        let chart = curves("t", &lines, ("commits at once", ""));
        assert_readable(&chart);
        for figure in ["45.6", "363", "722", "81.4", "45.7"] {
            assert!(chart.body.contains(&format!(">{figure}</text>")), "{figure}: {}", chart.body);
        }
        assert!(!chart.body.contains(">52.9</text>"), "a figure between two lines");
        assert!(!chart.body.contains(">45.3</text>"), "a figure below several lines");
        assert!(chart.body.contains(">commits at once</text>") && chart.body.contains(">three<"));
    }
}
