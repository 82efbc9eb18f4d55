//! Draws the latencies of single operations: a row for each method, so that the
//! distribution is visible and not only three figures of it.

use std::fmt::Write as _;

use super::Chart;
use super::Mark;
use super::axis::Axis;
use super::number_format::microseconds;
use super::svg::{CHARACTER, Canvas, WIDTH, clipped};
use fsure_measure::results::MethodLine;

const ROW: f64 = 46.0;
const HILL: f64 = 26.0;
const TOP: f64 = 34.0;

/// The latencies of the methods of one target, with the mark that a program sets for them.
pub fn latency(title: &str, methods: &[&MethodLine], mark: &Mark) -> Chart {
    let longest = methods.iter().map(|method| method.name.chars().count()).max().unwrap_or(0);
    let label = (longest as f64 * CHARACTER + 16.0).clamp(100.0, 260.0);
    let characters_max = ((label - 16.0) / CHARACTER).round() as usize;
    let values = methods.iter().flat_map(|method| {
        let ends = method.histogram.iter().map(|bucket| bucket.0);
        ends.chain([method.p50_us, method.p99_us, method.max_us])
    });
    let values = values.chain([mark.value]).collect::<Vec<_>>();
    let axis = Axis::tight(values.into_iter(), (label, WIDTH - 20.0));
    let bottom = TOP + methods.len() as f64 * ROW;
    let mut canvas = Canvas::default();
    for tick in axis.ticks() {
        canvas.line("grid", (axis.at(tick), TOP - 4.0), (axis.at(tick), bottom));
        canvas.text(axis.at(tick), bottom + 16.0, "soft mid", &microseconds(tick));
    }
    legend(&mut canvas, label, mark);
    let limit = format!("M{:.1} {:.1}V{bottom:.1}", axis.at(mark.value), TOP - 4.0);
    canvas.path("limit", "6 3", &limit);
    for (place, method) in methods.iter().enumerate() {
        let base = TOP + (place as f64 + 1.0) * ROW - 6.0;
        canvas.text(label - 8.0, base - 8.0, "end", &clipped(&method.name, characters_max));
        canvas.line("grid", (label, base), (WIDTH - 20.0, base));
        hill(&mut canvas, &axis, method, base);
        marks(&mut canvas, &axis, method, base);
    }
    let note = if axis.is_log { ", logarithmic" } else { "" };
    let words = format!("time of one operation{note}; the height is the share of operations");
    canvas.text(label, bottom + 34.0, "soft", &words);
    Chart {
        title: title.to_owned(),
        description: description(methods),
        width: WIDTH,
        height: bottom + 44.0,
        body: canvas.body,
    }
}

fn legend(canvas: &mut Canvas, x: f64, mark: &Mark) {
    let y = 14.0;
    canvas.line("whisker", (x + 2.0, y - 10.0), (x + 2.0, y + 2.0));
    canvas.text(x + 10.0, y, "soft", "median");
    canvas.path("mark", "3 2", &format!("M{:.1} {:.1}V{:.1}", x + 74.0, y - 10.0, y + 2.0));
    canvas.text(x + 82.0, y, "soft", "99 % are faster");
    diamond(canvas, (x + 188.0, y - 4.0));
    canvas.text(x + 198.0, y, "soft", "slowest");
    canvas.path("limit", "6 3", &format!("M{:.1} {:.1}V{:.1}", x + 258.0, y - 10.0, y + 2.0));
    canvas.text(x + 266.0, y, "soft", &mark.label);
}

/// Steps of the histogram. Buckets are a tenth wide, so they are of one width
/// where the axis is logarithmic; what happened once is still a line.
fn hill(canvas: &mut Canvas, axis: &Axis, method: &MethodLine, base: f64) {
    let most = method.histogram.iter().map(|bucket| bucket.1).max().unwrap_or(0).max(1);
    let (mut path, mut end_before) = (String::new(), 0.0);
    for (end, count) in &method.histogram {
        let begin = f64::max(end / 1.1, end_before);
        let height = (*count as f64 / most as f64 * HILL).max(1.5);
        let (from, to) = (axis.at(begin), axis.at(*end).max(axis.at(begin) + 0.6));
        let _ = write!(path, "M{from:.1} {base:.1}v-{height:.1}H{to:.1}V{base:.1}Z");
        end_before = *end;
    }
    if !path.is_empty() {
        canvas.path("bar", "", &path);
    }
}

fn marks(canvas: &mut Canvas, axis: &Axis, method: &MethodLine, base: f64) {
    let top = base - HILL - 4.0;
    let (median, p99) = (axis.at(method.p50_us), axis.at(method.p99_us));
    canvas.line("halo", (median, top), (median, base));
    canvas.line("whisker", (median, top), (median, base + 3.0));
    canvas.path("mark", "3 2", &format!("M{p99:.1} {top:.1}V{:.1}", base + 3.0));
    diamond(canvas, (axis.at(method.max_us), base));
}

fn diamond(canvas: &mut Canvas, (x, y): (f64, f64)) {
    canvas.path("peak", "", &format!("M{:.1} {y:.1}l5 -5l5 5l-5 5Z", x - 5.0));
}

fn description(methods: &[&MethodLine]) -> String {
    let rows = methods.iter().map(|method| {
        let [p50, p99, max] = [method.p50_us, method.p99_us, method.max_us].map(microseconds);
        format!("{}: median {p50}, 99 % below {p99}, slowest {max}", method.name)
    });
    format!("{}.", rows.collect::<Vec<_>>().join("; "))
}
