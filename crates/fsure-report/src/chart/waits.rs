//! Waits of another program, a row for each way of reading beside it: from the time that 99 of
//! 100 of its reads did not exceed to the longest, on a logarithmic axis. They are below the rates,
//! since what costs no throughput can cost others a thousand times their wait.

use super::legend::diamond;
use super::number_format::microseconds;
use super::svg::{COLUMN, COLUMN_CHARACTER, Canvas, clipped};
use super::time_axis::{foot, lines, p99_mark, time_axis};

const LEFT: f64 = 8.0;
const RIGHT: f64 = COLUMN - 8.0;
/// Ends of the axis in microseconds, if no wait lies beyond.
const SHOWN_US: [f64; 2] = [10.0, 100_000.0];
const HEAD: f64 = 26.0;
const NAME: f64 = 18.0;
const STRIP: f64 = 20.0;
const TICKS: f64 = 24.0;

/// Waits of another program while a way of reading is measured, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waits {
    /// Time that 99 of 100 reads did not exceed; `None` of fewer than 100 reads.
    pub p99_us: Option<f64>,
    /// The longest.
    pub max_us: f64,
}

impl Waits {
    fn words(self) -> String {
        let longest = microseconds(self.max_us);
        match self.p99_us.map(microseconds) {
            Some(p99) => format!("99 % below {p99}, longest {longest}"),
            None => format!("longest {longest}"),
        }
    }
}

/// Draws the waits from a height on, each below the name of its way, and returns the height below.
pub(super) fn waits(canvas: &mut Canvas, rows: &[(String, Waits)], top: f64) -> f64 {
    let values = rows.iter().flat_map(|(_, waits)| waits.p99_us.into_iter().chain([waits.max_us]));
    let axis = time_axis(values, SHOWN_US);
    canvas.text(4.0, top + 17.0, "strong", "waits of another program meanwhile, for each read");
    let mut top = top + HEAD;
    for (name, waits) in rows {
        let words = waits.words();
        let room = (RIGHT - LEFT) / COLUMN_CHARACTER - words.chars().count() as f64 - 2.0;
        canvas.text(LEFT + 2.0, top + 13.0, "", &clipped(name, room as usize));
        canvas.text(RIGHT, top + 13.0, "end", &words);
        let middle = top + NAME + STRIP / 2.0 - 2.0;
        lines(canvas, &axis, middle, 7.0);
        let longest = axis.at(waits.max_us);
        if let Some(p99) = waits.p99_us.map(|p99| axis.at(p99)) {
            canvas.line("whisker", (p99, middle), (longest, middle));
            p99_mark(canvas, p99, middle);
        }
        diamond(canvas, (longest, middle));
        top += NAME + STRIP;
    }
    foot(canvas, &axis, top);
    top + TICKS
}
