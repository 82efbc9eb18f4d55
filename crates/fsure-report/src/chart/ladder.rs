//! The ladder: a bar for the median of each rung, a whisker for what the
//! median may be, and no rank where two whiskers share a value. Memory and the disk are in
//! one picture, and beside each bar is how many times as fast as the disk it is.

use super::Chart;
use super::axis::Axis;
use super::number_format::figure;
use super::svg::{CHARACTER, Canvas, WIDTH, clipped};
use crate::disk_factor::{self, factors};
use crate::rank::{Rank, longest, ranks};
use fsure_measure::results::Rung;

const ROW: f64 = 26.0;
const BAR: f64 = 14.0;
const TOP: f64 = 12.0;
/// Between a rank and the name of its rung, for what ties it to the next.
const TIE: f64 = 22.0;
/// Room behind the axis for a figure, and for how many times the disk that is.
const FIGURE: f64 = 76.0;
const FACTOR: f64 = 62.0;
/// The target of rungs that measure no folder.
const MEMORY: &str = "memory";

/// Rungs with the fastest first.
pub fn sorted<'a>(rungs: &[&'a Rung]) -> Vec<&'a Rung> {
    let mut sorted = rungs.to_vec();
    sorted.sort_by(|one, two| two.median.total_cmp(&one.median));
    sorted
}

/// The rungs of one folder and of memory, of one unit. The length of a bar is its figure:
/// the axis is straight and begins at zero.
pub fn ladder(title: &str, rungs: &[&Rung]) -> Chart {
    let rungs = sorted(rungs);
    let (ranks, factors) = (ranks(&rungs), factors(&rungs));
    let has_factors = factors.iter().any(Option::is_some);
    let is_mixed = rungs.iter().any(|rung| rung.target == MEMORY)
        && rungs.iter().any(|rung| rung.target != MEMORY);
    let unit = rungs.first().map_or("", |rung| rung.unit.as_str());
    let rank_end = (longest(&ranks) as f64 * CHARACTER + 4.0).max(30.0);
    let before_names = rank_end + TIE;
    let name = rungs.iter().map(|rung| rung.name.chars().count()).max().unwrap_or(0);
    let label = (name as f64 * CHARACTER + before_names).clamp(120.0, 248.0 + before_names);
    let characters_max = ((label - before_names) / CHARACTER).round() as usize;
    let values = rungs.iter().flat_map(|rung| [rung.low, rung.median, rung.high]);
    let room = FIGURE + if has_factors { FACTOR } else { 0.0 };
    let axis = Axis::straight(values, (label, WIDTH - room));
    let bottom = TOP + rungs.len() as f64 * ROW;
    let mut canvas = Canvas::default();
    for tick in axis.ticks() {
        canvas.line("grid", (axis.at(tick), TOP - 4.0), (axis.at(tick), bottom));
        canvas.text(axis.at(tick), bottom + 16.0, "soft mid", &figure(tick));
    }
    for (place, (rung, rank)) in rungs.iter().zip(&ranks).enumerate() {
        let middle = TOP + (place as f64 + 0.5) * ROW;
        canvas.text(rank_end, middle + 4.0, "soft end", &rank.to_string());
        canvas.text(label - 8.0, middle + 4.0, "end", &clipped(&rung.name, characters_max));
        let class = if is_mixed && rung.target != MEMORY { "second" } else { "bar" };
        draw(&mut canvas, &axis, rung, (class, middle));
        if let Some(factor) = factors[place] {
            canvas.text(WIDTH - 4.0, middle + 4.0, "soft end", &disk_factor::words(factor));
        }
        let overlaps = rungs.get(place + 1).is_some_and(|next| next.high >= rung.low);
        if overlaps {
            let next = middle + ROW;
            let (from, to) = (middle + 2.0, next - 2.0);
            let path = format!("M{:.1} {from:.1} h-5 V{to:.1} h5", rank_end + 10.0);
            canvas.path("tie", "", &path);
        }
    }
    canvas.line("axis", (label, TOP - 4.0), (label, bottom));
    canvas.text(label, bottom + 34.0, "soft", &format!("median, {unit}"));
    if is_mixed {
        legend(&mut canvas, (label + 120.0, bottom + 34.0));
    }
    if has_factors {
        canvas.text(WIDTH - 4.0, bottom + 16.0, "soft end", "x disk");
    }
    Chart {
        title: title.to_owned(),
        description: description(&rungs, (&ranks, &factors), unit),
        width: WIDTH,
        height: bottom + 44.0,
        body: canvas.body,
    }
}

/// The two colours. Who sees none reads the names: those of the disk say so.
fn legend(canvas: &mut Canvas, (x, y): (f64, f64)) {
    for (class, at, name) in [("bar", x, MEMORY), ("second", x + 84.0, "this folder")] {
        canvas.rect(class, (at, y - 9.0), (10.0, 10.0));
        canvas.text(at + 16.0, y, "soft", name);
    }
}

fn draw(canvas: &mut Canvas, axis: &Axis, rung: &Rung, (class, middle): (&str, f64)) {
    let zero = axis.at(0.0);
    let (low, at, high) = (axis.at(rung.low), axis.at(rung.median), axis.at(rung.high));
    let width = (at - zero).max(0.5);
    canvas.rect(class, (zero, middle - BAR / 2.0), (width, BAR));
    let whisker = format!(
        "M{low:.1} {0:.1}v8M{low:.1} {middle:.1}H{high:.1}M{high:.1} {0:.1}v8",
        middle - 4.0
    );
    // On paper first, or the half of it inside the bar could not be seen.
    canvas.path("halo", "", &whisker);
    canvas.path("whisker", "", &whisker);
    let mut right = high.max(at);
    for outlier in rung.outliers.iter().filter_map(|place| rung.samples.get(*place)) {
        let x = axis.at(*outlier);
        canvas.circle("outlier", (x, middle), 3.0);
        right = right.max(x);
    }
    canvas.text(right + 9.0, middle + 4.0, "strong", &figure(rung.median));
}

fn description(rungs: &[&Rung], (ranks, factors): (&[Rank], &[Option<f64>]), unit: &str) -> String {
    let rows = rungs.iter().zip(ranks).zip(factors).map(|((rung, rank), factor)| {
        let tie = if !rank.is_shared() { "" } else { ", not ranked against its neighbours" };
        let disk = factor.map(|factor| format!(", {} disk", disk_factor::words(factor)));
        let (median, low, high) = (figure(rung.median), figure(rung.low), figure(rung.high));
        let disk = disk.unwrap_or_default();
        format!("{} {median} {unit} ({low} to {high}{disk}{tie})", rung.name)
    });
    format!("Medians with their 95 % intervals: {}.", rows.collect::<Vec<_>>().join("; "))
}
