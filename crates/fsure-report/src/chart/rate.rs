//! The rate of a drive: over time, until its fast cache is used up, and over its area. Both
//! axes are straight, and the rate begins at zero.

use super::Chart;
use super::axis::Axis;
use super::number_format::figure;
use super::plot::{BOTTOM, HEIGHT, LEFT, TOP, extremes, frame, path};
use super::svg::{CHARACTER, Canvas, WIDTH};
use fsure_core::units;
use fsure_measure::results::{AreaLine, SustainedLine};

const RIGHT: f64 = WIDTH - 40.0;

/// The rate of a sustained write over time, with the moment at which it dropped.
pub fn sustained(title: &str, line: &SustainedLine) -> Chart {
    let x = Axis::straight(line.points.iter().map(|point| point.0), (LEFT, RIGHT));
    let y = Axis::straight(line.points.iter().map(|point| point.1), (BOTTOM, TOP));
    let mut canvas = Canvas::default();
    frame(&mut canvas, (&x, &y), RIGHT, &figure, &figure);
    let points = extremes(&line.points);
    let places = points.iter().map(|point| (x.at(point.0), y.at(point.1)));
    canvas.path("line ink0", "", &path(places));
    if let (Some(seconds), Some(bytes)) = (line.drop_s, line.fast_cache_bytes) {
        let at = x.at(seconds);
        canvas.path("mark", "6 3", &format!("M{at:.1} {TOP:.1}V{BOTTOM:.1}"));
        let words = format!("{} were written", units::size(bytes));
        // Beside the mark on whichever side there is room.
        let is_left = at + (words.len() as f64 + 2.0) * CHARACTER > RIGHT;
        let (at, class) = if is_left { (at - 8.0, "end") } else { (at + 8.0, "") };
        canvas.text(at, TOP + 10.0, class, &words);
    }
    canvas.text(LEFT, HEIGHT - 8.0, "soft", "MiB/s over seconds");
    let drop = match (line.after_mib_s, line.drop_s) {
        (Some(after), Some(seconds)) => {
            format!(", from {} s on {} MiB/s", figure(seconds), figure(after))
        }
        _ => String::new(),
    };
    let description = format!(
        "{}: {} MiB/s{drop}; {} were written.",
        line.name,
        figure(line.before_mib_s),
        units::size(line.bytes)
    );
    chart(title, description, canvas)
}

/// The rate of a device over its area. Places that could not be read are crosses at the foot.
pub fn area(title: &str, line: &AreaLine) -> Chart {
    let end = line.device_bytes as f64;
    let x = Axis::straight(std::iter::once(end / 1.08), (LEFT, RIGHT));
    let rates = line.points.iter().flat_map(|point| [point.mib_per_s, point.high]).flatten();
    let y = Axis::straight(rates, (BOTTOM, TOP));
    let mut canvas = Canvas::default();
    frame(&mut canvas, (&x, &y), RIGHT, &|_| String::new(), &figure);
    for quarter in 0..=4_u32 {
        let bytes = end * f64::from(quarter) / 4.0;
        canvas.text(x.at(bytes), BOTTOM + 18.0, "soft mid", &units::size(bytes as u64));
    }
    let mut read = Vec::new();
    for point in &line.points {
        let at = x.at(point.at_bytes as f64);
        match (point.mib_per_s, point.low, point.high) {
            (Some(rate), Some(low), Some(high)) => {
                let (low, high) = (y.at(low), y.at(high));
                canvas.path("range", "", &format!("M{at:.1} {low:.1}V{high:.1}"));
                read.push((at, y.at(rate)));
            }
            _ => {
                let foot = BOTTOM - 10.0;
                let cross = format!("M{:.1} {foot:.1}l8 8m0 -8l-8 8", at - 4.0);
                canvas.path("limit", "", &cross);
            }
        }
    }
    canvas.path("line ink0", "", &path(read.into_iter()));
    let unread = if line.unreadable > 0 { "; crosses: could not be read" } else { "" };
    let words = format!(
        "MiB/s at places from the beginning of the device to its end; lines up and down: slowest \
         and fastest pass{unread}"
    );
    canvas.text(LEFT, HEIGHT - 8.0, "soft", &words);
    let description = format!(
        "{}: median {} MiB/s, {} to {}; first tenth {}, last tenth {}; {} places not read.",
        line.device,
        figure(line.median_mib_s),
        figure(line.slowest_mib_s),
        figure(line.fastest_mib_s),
        figure(line.first_tenth_mib_s),
        figure(line.last_tenth_mib_s),
        line.unreadable
    );
    chart(title, description, canvas)
}

fn chart(title: &str, description: String, canvas: Canvas) -> Chart {
    Chart { title: title.to_owned(), description, width: WIDTH, height: HEIGHT, body: canvas.body }
}
