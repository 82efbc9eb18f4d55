//! Effects of programs on the page cache, by the way in which each is run: the share of another
//! program's file that stays in memory, the time that it then takes to read that file again, and
//! what stays in memory of the program's own files.

use super::Chart;
use super::folders::bar;
use super::legend::note;
use super::svg::{COLUMN, Canvas, clipped};

const LEFT: f64 = 8.0;
const RIGHT: f64 = COLUMN - 8.0;
/// Left ends of the panels.
const KEPT: f64 = 136.0;
const AGAIN: f64 = 260.0;
const OWN: f64 = 382.0;
/// Left ends of the two panels of results without that time.
const TWO: [f64; 2] = [140.0, 330.0];
/// Between two panels, and room behind the longest bar of each for its figure.
const BETWEEN: f64 = 12.0;
const FIGURE: f64 = 62.0;
const SIZE_FIGURE: f64 = 84.0;
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
    /// Time to read that file again, in seconds, and the same in words; `None` if not measured.
    pub again: Option<(f64, String)>,
    /// Bytes of its own files in memory, and the same in words.
    pub left: (f64, String),
}

/// A column of bars on one scale.
struct Panel {
    head: &'static str,
    left: f64,
    /// Right end of the longest bar.
    right: f64,
    /// Length of each bar, as a share of the longest, and its figure.
    bars: Vec<(f64, String)>,
}

fn panels(all: &[Eviction]) -> Vec<Panel> {
    let longest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
    let most = longest(&mut all.iter().map(|one| one.left.0));
    let slowest = longest(&mut all.iter().filter_map(|one| Some(one.again.as_ref()?.0)));
    let again = |one: &Eviction| match &one.again {
        Some((time, words)) => (time / slowest, words.clone()),
        None => Default::default(),
    };
    let has_times = all.iter().any(|one| one.again.is_some());
    let [kept, own] = if has_times { [KEPT, OWN] } else { TWO };
    let after_kept = if has_times { AGAIN } else { own };
    let mut panels = vec![Panel {
        head: "other file kept",
        left: kept,
        right: after_kept - BETWEEN - FIGURE,
        bars: all.iter().map(|one| (one.kept_share, format!("{:.0} %", percent(one)))).collect(),
    }];
    if has_times {
        let (right, bars) = (own - BETWEEN - FIGURE, all.iter().map(again).collect());
        panels.push(Panel { head: "read again in", left: AGAIN, right, bars });
    }
    panels.push(Panel {
        head: "own files left",
        left: own,
        right: RIGHT - SIZE_FIGURE,
        bars: all.iter().map(|one| (one.left.0 / most, one.left.1.clone())).collect(),
    });
    panels
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
    let panels = panels(all);
    let mut canvas = Canvas::default();
    for panel in &panels {
        canvas.text(panel.left, 14.0, "soft", panel.head);
    }
    let mut top = HEAD;
    for program in programs {
        canvas.text(LEFT, top + 17.0, "strong", &clipped(program, 60));
        top += PROGRAM;
        let first = top;
        for (number, one) in all.iter().enumerate().filter(|(_, one)| one.program == program) {
            let place = ways.iter().position(|way| *way == one.way).unwrap_or_default();
            canvas.text(panels[0].left - 8.0, top + 12.0, "end", &clipped(&one.way, 16));
            for Panel { left, right, bars, .. } in &panels {
                let (share, words) = &bars[number];
                bar(&mut canvas, (*left, *right), STYLES[place % 4], (*share, words), top);
            }
            top += ROW;
        }
        for Panel { left, .. } in &panels {
            canvas.line("axis", (*left, first - 2.0), (*left, top - 2.0));
        }
        top += GAP;
    }
    let height = note(&mut canvas, top, conditions) + 6.0;
    let rows = all.iter().map(|one| {
        let again = one.again.as_ref();
        let again = again.map_or(String::new(), |(_, words)| format!(", read again in {words}"));
        let kept = percent(one);
        format!("{}, {}: {kept:.0} % kept{again}, {} left", one.program, one.way, one.left.1)
    });
    let description = format!("{}.", rows.collect::<Vec<_>>().join("; "));
    Chart { title: title.to_owned(), description, width: COLUMN, height, body: canvas.body }
}

fn percent(one: &Eviction) -> f64 {
    if one.kept_share.is_finite() { one.kept_share.clamp(0.0, 1.0) * 100.0 } else { 0.0 }
}
