//! Moments on an axis of time, in lanes.

use super::Chart;
use super::svg::{CHARACTER, Canvas, WIDTH};

const LANE: f64 = 30.0;
const TOP: f64 = 10.0;
const DAY_S: i64 = 86_400;

/// A moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// Seconds since 1970, in UTC.
    pub at_s: i64,
    /// Place of its lane.
    pub lane: usize,
    /// True if something was wrong.
    pub is_bad: bool,
}

/// Lanes with their moments; `date` gives a second as a date.
pub fn timeline(
    title: &str,
    lanes: &[&str],
    moments: &[Moment],
    date: &dyn Fn(i64) -> String,
) -> Chart {
    let longest = lanes.iter().map(|lane| lane.chars().count()).max().unwrap_or(0);
    let left = longest as f64 * CHARACTER + 24.0;
    let first = moments.iter().map(|moment| moment.at_s).min().unwrap_or(0);
    let last = moments.iter().map(|moment| moment.at_s).max().unwrap_or(0);
    let span = last.saturating_sub(first).max(DAY_S) as f64;
    let right = WIDTH - 30.0;
    let at = |second: i64| left + second.saturating_sub(first) as f64 / span * (right - left);
    let bottom = TOP + lanes.len() as f64 * LANE;
    let mut canvas = Canvas::default();
    for (place, lane) in lanes.iter().enumerate() {
        let y = TOP + (place as f64 + 0.5) * LANE;
        canvas.text(left - 12.0, y + 4.0, "end", lane);
        canvas.line("grid", (left, y), (right, y));
    }
    let mut drawn = None;
    for moment in moments {
        let y = TOP + (moment.lane as f64 + 0.5) * LANE;
        let place = (moment.lane, at(moment.at_s).round() as i64, moment.is_bad);
        // Thousands of moments at one place are one dot.
        if drawn.replace(place) == Some(place) {
            continue;
        }
        mark(&mut canvas, (at(moment.at_s), y), moment.is_bad);
    }
    canvas.text(left, bottom + 16.0, "soft", &date(first));
    canvas.text(right, bottom + 16.0, "soft end", &date(last));
    let rows = lanes.iter().enumerate().map(|(place, lane)| {
        let own = || moments.iter().filter(|moment| moment.lane == place);
        let bad = own().filter(|moment| moment.is_bad).count();
        format!("{lane}: {} times, {bad} of them with something wrong", own().count())
    });
    let rows = rows.collect::<Vec<_>>().join("; ");
    Chart {
        title: title.to_owned(),
        description: format!("From {} to {}. {rows}.", date(first), date(last)),
        width: WIDTH,
        height: bottom + 26.0,
        body: canvas.body,
    }
}

/// A dot where all was well, a diamond where it was not: no reader needs the colours.
fn mark(canvas: &mut Canvas, (x, y): (f64, f64), is_bad: bool) {
    if is_bad {
        canvas.path("badmark", "", &format!("M{:.1} {y:.1}l6 -6l6 6l-6 6Z", x - 6.0));
    } else {
        canvas.circle("goodmark", (x, y), 4.0);
    }
}
