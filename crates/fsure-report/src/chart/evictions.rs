//! Effects of programs on the page cache, by the way in which each is run: the share of another
//! program's file that stays in memory, and beside it what stays there of the program's own.

use super::Chart;
use super::folders::bar;
use super::legend::note;
use super::svg::{COLUMN, Canvas, clipped};

const LEFT: f64 = 8.0;
const RIGHT: f64 = COLUMN - 8.0;
/// Left ends of the two panels, and room behind the longest bar of each for its figure.
const KEPT: f64 = 140.0;
const OWN: f64 = 330.0;
const FIGURES: (f64, f64) = (54.0, 86.0);
const HEAD: f64 = 22.0;
const PROGRAM: f64 = 24.0;
const ROW: f64 = 20.0;
const GAP: f64 = 8.0;
const STYLES: [&str; 4] = ["reference", "second", "fourth", "third"];

/// A program that was run in one way.
#[derive(Clone, Debug, PartialEq)]
pub struct Eviction {
    /// The program.
    pub program: String,
    /// The way.
    pub way: String,
    /// Share of the other program's file that was in memory still, from 0 to 1.
    pub kept_share: f64,
    /// Bytes of its own files in memory, and the same in words.
    pub left: (f64, String),
}

/// A group of bars for each program, a bar for each way.
pub fn evictions(title: &str, all: &[Eviction], conditions: &str) -> Chart {
    let mut ways: Vec<&str> = Vec::new();
    let mut programs: Vec<&str> = Vec::new();
    for one in all {
        if !ways.contains(&one.way.as_str()) {
            ways.push(&one.way);
        }
        if !programs.contains(&one.program.as_str()) {
            programs.push(&one.program);
        }
    }
    let most = all.iter().map(|one| one.left.0).fold(0.0, f64::max);
    let mut canvas = Canvas::default();
    canvas.text(KEPT, 14.0, "soft", "other's file kept");
    canvas.text(OWN, 14.0, "soft", "own files left");
    let mut top = HEAD;
    for program in programs {
        canvas.text(LEFT, top + 17.0, "strong", &clipped(program, 60));
        top += PROGRAM;
        let first = top;
        for one in all.iter().filter(|one| one.program == program) {
            let place = ways.iter().position(|way| *way == one.way).unwrap_or_default();
            row(&mut canvas, one, (STYLES[place % 4], most), top);
            top += ROW;
        }
        for left in [KEPT, OWN] {
            canvas.line("axis", (left, first - 2.0), (left, top - 2.0));
        }
        top += GAP;
    }
    let height = note(&mut canvas, top, conditions) + 6.0;
    let rows = all.iter().map(|one| {
        format!("{}, {}: {:.0} % kept, {} left", one.program, one.way, percent(one), one.left.1)
    });
    let description = format!("{}.", rows.collect::<Vec<_>>().join("; "));
    Chart { title: title.to_owned(), description, width: COLUMN, height, body: canvas.body }
}

fn percent(one: &Eviction) -> f64 {
    if one.kept_share.is_finite() { one.kept_share.clamp(0.0, 1.0) * 100.0 } else { 0.0 }
}

fn row(canvas: &mut Canvas, one: &Eviction, (class, most): (&str, f64), top: f64) {
    canvas.text(KEPT - 8.0, top + 12.0, "end", &clipped(&one.way, 16));
    let kept = format!("{:.0} %", percent(one));
    bar(canvas, (KEPT, OWN - 12.0 - FIGURES.0), class, (one.kept_share, &kept), top);
    bar(canvas, (OWN, RIGHT - FIGURES.1), class, (one.left.0 / most, &one.left.1), top);
}
