//! Random requests by direction and queue depth: a bar from zero for the requests of a second,
//! a whisker for what the median may be, and behind it the time that 99 % of them keep.

use super::Chart;
use super::axis::Axis;
use super::legend::whisker;
use super::number_format::{figure, microseconds};
use super::svg::{CHARACTER, Canvas, WIDTH, clipped};
use crate::interval_words;
use fsure_measure::results::RandomLine;

const ROW: f64 = 26.0;
const BAR: f64 = 14.0;
const TOP: f64 = 12.0;
/// Room behind the axis for a figure, and for a time.
const FIGURE: f64 = 76.0;
const TIME: f64 = 84.0;

/// The random requests of one folder.
pub fn requests(title: &str, lines: &[&RandomLine]) -> Chart {
    let labels: Vec<_> = lines.iter().map(|line| label(line)).collect();
    let longest = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let left = (longest as f64 * CHARACTER + 12.0).clamp(120.0, 260.0);
    let values = lines.iter().flat_map(|line| [line.low, line.iops, line.high]);
    let axis = Axis::straight(values, (left, WIDTH - FIGURE - TIME));
    let bottom = TOP + lines.len() as f64 * ROW;
    let mut canvas = Canvas::default();
    for tick in axis.ticks() {
        canvas.line("grid", (axis.at(tick), TOP - 4.0), (axis.at(tick), bottom));
        canvas.text(axis.at(tick), bottom + 16.0, "soft mid", &figure(tick));
    }
    for (place, (line, label)) in lines.iter().zip(&labels).enumerate() {
        let middle = TOP + (place as f64 + 0.5) * ROW;
        canvas.text(left - 8.0, middle + 4.0, "end", &clipped(label, 38));
        draw(&mut canvas, &axis, line, middle);
        canvas.text(WIDTH - 4.0, middle + 4.0, "soft end", &microseconds(line.p99_us));
    }
    canvas.line("axis", (left, TOP - 4.0), (left, bottom));
    canvas.text(left, bottom + 34.0, "soft", "requests of 4 KiB a second, median");
    canvas.text(WIDTH - 4.0, bottom + 34.0, "soft end", "99 % take less than");
    let interval = interval_words::meaning(lines.iter().map(|line| line.samples.len()));
    canvas.text(left, bottom + 51.0, "soft", &format!("whiskers: {interval}"));
    Chart {
        title: title.to_owned(),
        description: description(lines),
        width: WIDTH,
        height: bottom + 61.0,
        body: canvas.body,
    }
}

fn label(line: &RandomLine) -> String {
    format!("{}, {} at a time", line.name, line.queue_depth)
}

fn draw(canvas: &mut Canvas, axis: &Axis, line: &RandomLine, middle: f64) {
    let zero = axis.at(0.0);
    let (low, at, high) = (axis.at(line.low), axis.at(line.iops), axis.at(line.high));
    let class = if line.name.contains("write") { "second" } else { "bar" };
    canvas.rect(class, (zero, middle - BAR / 2.0), ((at - zero).max(0.5), BAR));
    whisker(canvas, (low, high), middle);
    canvas.text(high.max(at) + 9.0, middle + 4.0, "strong", &figure(line.iops));
}

fn description(lines: &[&RandomLine]) -> String {
    let rows = lines.iter().map(|line| {
        let (iops, p99) = (figure(line.iops), microseconds(line.p99_us));
        format!("{}: {iops} a second, 99 % below {p99}", label(line))
    });
    format!("{}.", rows.collect::<Vec<_>>().join("; "))
}
