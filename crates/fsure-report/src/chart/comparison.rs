//! One figure of several results as bars below each other, with the marks that programs set
//! for it as lines across.

use super::Chart;
use super::axis::Axis;
use super::svg::{CHARACTER, Canvas, WIDTH, clipped};

const ROW: f64 = 26.0;
const BAR: f64 = 14.0;
/// Room above for the names of the marks.
const MARK: f64 = 16.0;
const STYLES: [&str; 4] = ["first", "second", "third", "fourth"];

/// One bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Name of the result.
    pub label: String,
    /// The figure.
    pub value: f64,
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
    let longest = bars.iter().map(|bar| bar.label.chars().count()).max().unwrap_or(0);
    let label = (longest as f64 * CHARACTER + 16.0).clamp(90.0, 240.0);
    let characters_max = ((label - 16.0) / CHARACTER).round() as usize;
    let values = bars.iter().map(|bar| bar.value).chain(marks.iter().map(|mark| mark.value));
    let axis = Axis::of(values.collect::<Vec<_>>().into_iter(), (label, WIDTH - 100.0));
    let top = 8.0 + marks.len() as f64 * MARK;
    let bottom = top + bars.len() as f64 * ROW;
    let mut canvas = Canvas::default();
    for tick in axis.ticks() {
        canvas.line("grid", (axis.at(tick), top), (axis.at(tick), bottom));
        canvas.text(axis.at(tick), bottom + 16.0, "soft mid", &words(tick));
    }
    for (place, mark) in marks.iter().enumerate() {
        let (x, y) = (axis.at(mark.value), 6.0 + (place as f64 + 0.5) * MARK);
        canvas.path("limit", "6 3", &format!("M{x:.1} {y:.1}V{bottom:.1}"));
        // On the side of the line that has room.
        let is_right = x < WIDTH / 2.0;
        let (x, class) = if is_right { (x + 6.0, "soft") } else { (x - 6.0, "soft end") };
        canvas.text(x, y + 4.0, class, &mark.label);
    }
    for (place, bar) in bars.iter().enumerate() {
        let middle = top + (place as f64 + 0.5) * ROW;
        canvas.text(label - 8.0, middle + 4.0, "end", &clipped(&bar.label, characters_max));
        let (zero, at) = (axis.at(0.0), axis.at(bar.value));
        let width = (at - zero).max(0.5);
        canvas.rect(STYLES[place % 4], (zero, middle - BAR / 2.0), (width, BAR));
        canvas.text(zero + width + 8.0, middle + 4.0, "strong rim", &words(bar.value));
    }
    canvas.line("axis", (label, top), (label, bottom));
    let mut height = bottom + 28.0;
    if axis.is_log {
        height += 18.0;
        let words = "logarithmic: equal steps are equal factors";
        canvas.text(label, bottom + 34.0, "soft", words);
    }
    let rows = bars.iter().map(|bar| format!("{}: {}", bar.label, words(bar.value)));
    let marks = marks.iter().map(|mark| format!("mark: {}", mark.label));
    Chart {
        title: title.to_owned(),
        description: format!("{}.", rows.chain(marks).collect::<Vec<_>>().join("; ")),
        width: WIDTH,
        height,
        body: canvas.body,
    }
}
