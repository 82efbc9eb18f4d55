//! Bars that would take the whole axis from all others. The axis begins at zero and ends so that
//! the others can be read; what is longer is cut off, is marked as such, and has its figure.

use super::svg::Canvas;

/// Meaning of the mark, for the key of a chart.
pub(super) const MEANING: &str = "cut off: longer than the axis, read its figure";

/// Words for a reader who does not see the mark.
pub(super) const WORDS: &str = "bar cut off";

/// Two slanting gaps before the end of a bar, whose upper right corner is given.
pub(super) fn cut(canvas: &mut Canvas, (x, top): (f64, f64), height: f64) {
    let (above, slant) = (top - 1.0, height + 2.0);
    let gap = |at: f64| format!("M{at:.1} {:.1}l5 -{slant:.1}", above + slant);
    canvas.path("gap", "", &(gap(x - 14.0) + &gap(x - 8.0)));
}
