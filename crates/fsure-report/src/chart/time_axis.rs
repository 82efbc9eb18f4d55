//! The axis of single times: logarithmic over the width of a chart, the same in all charts of its
//! kind, with its lines behind each range only and its figures below the last one.

use super::axis::Axis;
use super::number_format::microseconds;
use super::svg::{COLUMN, Canvas};

/// Ends of the axis on the paper, with room for half of the figures at its ends.
pub(super) const ENDS: (f64, f64) = (20.0, COLUMN - 28.0);
/// Half of the height of the line at a 99th percentile.
const MARK_HALF: f64 = 7.0;

/// An axis in microseconds that shows these values and at least this span.
pub(super) fn time_axis(values: impl Iterator<Item = f64>, shown_us: [f64; 2]) -> Axis {
    let values: Vec<_> = values.chain(shown_us).collect();
    Axis::ended(values.into_iter(), 1.0, ENDS)
}

/// Draws the lines of the axis around the middle of a range, so far up and down.
pub(super) fn lines(canvas: &mut Canvas, axis: &Axis, middle: f64, half: f64) {
    for tick in axis.ticks() {
        let at = axis.at(tick);
        canvas.line("grid", (at, middle - half), (at, middle + half));
    }
}

/// Draws the axis itself and its figures.
pub(super) fn foot(canvas: &mut Canvas, axis: &Axis, bottom: f64) {
    for tick in axis.ticks() {
        canvas.tick((axis.at(tick), bottom + 17.0), &microseconds(tick));
    }
    canvas.line("axis", (ENDS.0, bottom), (ENDS.1, bottom));
}

/// Draws the line at a 99th percentile.
pub(super) fn p99_mark(canvas: &mut Canvas, at: f64, middle: f64) {
    let (top, height) = (middle - MARK_HALF, 2.0 * MARK_HALF);
    canvas.path("mark", "", &format!("M{at:.1} {top:.1}v{height}"));
}
