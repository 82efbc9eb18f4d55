//! One figure of several results as bars from zero below each other, each under its name, with
//! the interval of each, what others have measured in grey, and the marks that programs set for
//! it as lines across.

use super::Chart;
use super::axis::Axis;
use super::svg::{CHARACTER, Canvas, WIDTH, clipped};

const ROW: f64 = 38.0;
const BAR: f64 = 14.0;
/// Room above, and for the name of each mark.
const TOP: f64 = 4.0;
const MARK: f64 = 16.0;
const LEFT: f64 = 8.0;
/// Room for a figure behind the longest bar.
const FIGURE: f64 = 130.0;
/// The shortest whisker that can be seen.
const WHISKER_MIN: f64 = 3.0;
const STYLES: [&str; 4] = ["first", "second", "third", "fourth"];

/// One bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Name of the result.
    pub label: String,
    /// The figure.
    pub value: f64,
    /// The interval in which the figure is, if it has one.
    pub interval: Option<(f64, f64)>,
    /// True if others have measured it, otherwise than the rest: it is drawn in grey.
    pub is_reference: bool,
}

impl Bar {
    /// A figure without an interval.
    pub fn new(label: impl Into<String>, value: f64) -> Self {
        Self { label: label.into(), value, interval: None, is_reference: false }
    }
}

/// A value that a program has published for the figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Name beside the line, with the source.
    pub label: String,
    /// The value.
    pub value: f64,
}

/// Bars with marks; `words` gives a value with its unit.
pub fn comparison(
    title: &str,
    bars: &[Bar],
    marks: &[Mark],
    words: &dyn Fn(f64) -> String,
) -> Chart {
    let ends = |bar: &Bar| bar.value.max(bar.interval.map_or(0.0, |(_, high)| high));
    let values = bars.iter().map(ends).chain(marks.iter().map(|mark| mark.value));
    let axis = Axis::straight(values, (LEFT, WIDTH - FIGURE));
    let top = TOP + marks.len() as f64 * MARK;
    let bottom = top + bars.len() as f64 * ROW + 4.0;
    let mut canvas = Canvas::default();
    for tick in axis.ticks() {
        canvas.line("grid", (axis.at(tick), top), (axis.at(tick), bottom));
        // The first is at the edge of the paper.
        let class = if tick > 0.0 { "soft mid" } else { "soft" };
        canvas.text(axis.at(tick), bottom + 16.0, class, &words(tick));
    }
    for (place, mark) in marks.iter().enumerate() {
        let (x, y) = (axis.at(mark.value), TOP + (place as f64 + 0.4) * MARK);
        canvas.path("limit", "6 3", &format!("M{x:.1} {y:.1}V{bottom:.1}"));
        // On the side of the line that has room.
        let is_right = x < WIDTH / 2.0;
        let (x, class) = if is_right { (x + 6.0, "soft") } else { (x - 6.0, "soft end") };
        canvas.text(x, y + 4.0, class, &mark.label);
    }
    for (place, bar) in bars.iter().enumerate() {
        draw(&mut canvas, &axis, bar, (place, top + place as f64 * ROW), words);
    }
    canvas.line("axis", (axis.at(0.0), top), (axis.at(0.0), bottom));
    Chart {
        title: title.to_owned(),
        description: description(bars, marks, words),
        width: WIDTH,
        height: bottom + 28.0,
        body: canvas.body,
    }
}

/// Characters of a line across the paper.
fn row_characters() -> usize {
    ((WIDTH - 2.0 * LEFT) / CHARACTER) as usize
}

/// A bar at its place from above, below its name.
fn draw(
    canvas: &mut Canvas,
    axis: &Axis,
    bar: &Bar,
    (place, y): (usize, f64),
    words: &dyn Fn(f64) -> String,
) {
    let middle = y + ROW - BAR / 2.0;
    let class = if bar.is_reference { "soft rim" } else { "rim" };
    canvas.text(LEFT + 2.0, y + 18.0, class, &clipped(&bar.label, row_characters()));
    let (zero, at) = (axis.at(0.0), axis.at(bar.value));
    let width = (at - zero).max(1.5);
    let style = if bar.is_reference { "reference" } else { STYLES[place % 4] };
    canvas.rect(style, (zero, middle - BAR / 2.0), (width, BAR));
    let mut right = zero + width;
    let interval = bar.interval.map(|(low, high)| (axis.at(low), axis.at(high)));
    // A shorter whisker would only hide the bar.
    if let Some((low, high)) = interval.filter(|(low, high)| high - low > WHISKER_MIN) {
        let above = middle - 4.0;
        let whisker =
            format!("M{low:.1} {above:.1}v8M{low:.1} {middle:.1}H{high:.1}M{high:.1} {above:.1}v8");
        // On paper first, or the half of it inside the bar could not be seen.
        canvas.path("halo", "", &whisker);
        canvas.path("whisker", "", &whisker);
        right = right.max(high);
    }
    let class = if bar.is_reference { "soft rim" } else { "strong rim" };
    canvas.text(right + 8.0, middle + 4.0, class, &words(bar.value));
}

fn description(bars: &[Bar], marks: &[Mark], words: &dyn Fn(f64) -> String) -> String {
    let rows = bars.iter().map(|bar| {
        let interval = bar
            .interval
            .map_or(String::new(), |(low, high)| format!(" ({} to {})", words(low), words(high)));
        let by = if bar.is_reference { "measured by others: " } else { "" };
        format!("{by}{}: {}{interval}", bar.label, words(bar.value))
    });
    let marks = marks.iter().map(|mark| format!("mark: {}", mark.label));
    format!("{}.", rows.chain(marks).collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(bars: &[Bar]) -> String {
        comparison("Time", bars, &[], &|value| format!("{value} ms")).body
    }

    /// The width of the bar of a class.
    fn width(body: &str, class: &str) -> f64 {
        let rect = body.split(&format!("<rect class=\"{class}\"")).nth(1).expect("a bar");
        let width = rect.split("width=\"").nth(1).and_then(|rest| rest.split('"').next());
        width.and_then(|width| width.parse().ok()).expect("a width")
    }

    #[test]
    fn bars_begin_at_zero_however_far_apart_they_are() {
        let body = drawn(&[Bar::new("a", 1000.0), Bar::new("b", 10.0)]);
        let ratio = width(&body, "first") / width(&body, "second");
        assert!((95.0..105.0).contains(&ratio), "{ratio}: {body}");
    }

    #[test]
    fn a_long_name_is_not_clipped_and_a_reference_is_grey() {
        let name = "B  a folder whose name is long, /srv/data/of/many/years, a drive of some maker";
        let grey = Bar { is_reference: true, ..Bar::new("grey", 5.0) };
        let body = drawn(&[Bar::new(name, 3.0), grey]);
        assert!(body.contains(name), "{body}");
        assert_eq!(body.matches("class=\"reference\"").count(), 1, "{body}");
        assert!(!body.contains("class=\"second\""), "{body}");
    }

    #[test]
    fn the_interval_is_drawn_and_fits_on_the_paper() {
        let bar = Bar { interval: Some((1.0, 40.0)), ..Bar::new("a", 2.0) };
        let chart = comparison("Time", &[bar], &[], &|value| format!("{value} ms"));
        assert!(chart.body.contains("class=\"whisker\""), "{}", chart.body);
        assert!(chart.description.contains("a: 2 ms (1 ms to 40 ms)"), "{}", chart.description);
        assert!(width(&chart.body, "first") < 40.0, "the end of the interval is on the axis");
    }
}
