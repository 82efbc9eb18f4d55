//! Effects of programs on the page cache, by the way in which each is run: the share of another
//! program's file that stays in memory, the time that it then takes to read that file again, and
//! what stays in memory of the program's own files.

use super::Chart;
use super::axis::on_paper;
use super::folders::{BAR, bar};
use super::legend::{Glyph, legend, note, whisker};
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
const HEAD: f64 = 39.0;
const PROGRAM: f64 = 24.0;
const ROW: f64 = 20.0;
const GAP: f64 = 8.0;
/// A range that is shorter is left out: its ends would hide the bar.
const RANGE_MIN: f64 = 5.0;
const SHORTER: &str = "less is better";
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
    /// Time to read that file again; `None` if not measured.
    pub again: Option<ReadAgain>,
    /// Bytes of its own files in memory, and the same in words.
    pub left: (f64, String),
}

/// The time to read a file again, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadAgain {
    /// The median.
    pub median: f64,
    /// The shortest and the longest.
    pub range: (f64, f64),
    /// The median in words.
    pub words: String,
}

/// A bar as shares of the longest of its panel.
#[derive(Default)]
struct Share {
    length: f64,
    /// The ends of its range; `None` if there is none.
    range: Option<(f64, f64)>,
    words: String,
}

/// A column of bars on one scale.
struct Panel {
    /// Its name, and which end is the good one.
    head: [&'static str; 2],
    left: f64,
    /// Right end of the longest bar.
    right: f64,
    bars: Vec<Share>,
}

fn panels(all: &[Eviction]) -> Vec<Panel> {
    let longest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
    let most = longest(&mut all.iter().map(|one| one.left.0));
    let slowest = longest(&mut all.iter().filter_map(|one| Some(one.again.as_ref()?.range.1)));
    let again = |one: &Eviction| match &one.again {
        Some(ReadAgain { median, range: (low, high), words }) => Share {
            length: median / slowest,
            range: Some((low / slowest, high / slowest)),
            words: words.clone(),
        },
        None => Share::default(),
    };
    let share = |length: f64, words: String| Share { length, range: None, words };
    let has_times = all.iter().any(|one| one.again.is_some());
    let [kept, own] = if has_times { [KEPT, OWN] } else { TWO };
    let after_kept = if has_times { AGAIN } else { own };
    let mut panels = vec![Panel {
        head: ["other file kept", "more is better"],
        left: kept,
        right: after_kept - BETWEEN - FIGURE,
        bars: all
            .iter()
            .map(|one| share(one.kept_share, format!("{:.0} %", percent(one))))
            .collect(),
    }];
    if has_times {
        let (right, bars) = (own - BETWEEN - FIGURE, all.iter().map(again).collect());
        panels.push(Panel { head: ["read again in", SHORTER], left: AGAIN, right, bars });
    }
    panels.push(Panel {
        head: ["own files left", SHORTER],
        left: own,
        right: RIGHT - SIZE_FIGURE,
        bars: all.iter().map(|one| share(one.left.0 / most, one.left.1.clone())).collect(),
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
        for (line, words) in panel.head.iter().enumerate() {
            canvas.text(panel.left, 14.0 + line as f64 * 17.0, "soft", words);
        }
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
                draw(&mut canvas, (*left, *right), &bars[number], STYLES[place % 4], top);
            }
            top += ROW;
        }
        for Panel { left, .. } in &panels {
            canvas.line("axis", (*left, first - 2.0), (*left, top - 2.0));
        }
        top += GAP;
    }
    if panels.iter().flat_map(|panel| &panel.bars).any(|bar| bar.range.is_some()) {
        top = legend(
            &mut canvas,
            top,
            &[(Glyph::Whisker, "range of the runs, if it is wide enough to be drawn")],
        );
    }
    let height = note(&mut canvas, top, conditions) + 6.0;
    let rows = all.iter().map(|one| {
        let again = one.again.as_ref();
        let again = again.map_or(String::new(), |time| format!(", read again in {}", time.words));
        let kept = percent(one);
        format!("{}, {}: {kept:.0} % kept{again}, {} left", one.program, one.way, one.left.1)
    });
    let description = format!("{}.", rows.collect::<Vec<_>>().join("; "));
    Chart { title: title.to_owned(), description, width: COLUMN, height, body: canvas.body }
}

fn percent(one: &Eviction) -> f64 {
    on_paper(one.kept_share) * 100.0
}

/// A bar with its range and, behind both, its figure.
fn draw(canvas: &mut Canvas, (left, right): (f64, f64), share: &Share, class: &str, top: f64) {
    bar(canvas, (left, right), class, (share.length, ""), top);
    let at = |share: f64| left + (right - left) * on_paper(share);
    let mut end = at(share.length);
    if let Some((low, high)) = share.range {
        if at(high) - at(low) >= RANGE_MIN {
            whisker(canvas, (at(low), at(high)), top + BAR / 2.0);
        }
        end = end.max(at(high));
    }
    canvas.text(end + 6.0, top + BAR - 2.0, "strong", &share.words);
}
