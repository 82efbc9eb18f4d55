//! Commands that were run in several ways: a group of bars for each command, a bar for each way, in
//! one or two columns. More columns would have bars too short to be compared.

use super::Chart;
use super::axis::{on_paper, one_digit};
use super::folders::{BAR, bar};
use super::legend::{Glyph, legend, note, whisker};
use super::svg::{COLUMN, Canvas, clipped};

const LEFT: f64 = 8.0;
/// Left ends of the two panels, and the right end of the second.
const PANELS: [f64; 2] = [156.0, 342.0];
const RIGHT: f64 = COLUMN - 4.0;
/// Room between two panels, and behind the longest bar for its figure.
const BETWEEN: f64 = 12.0;
const FIGURE: f64 = 72.0;
const HEAD: f64 = 39.0;
const COMMAND: f64 = 24.0;
const ROW: f64 = 20.0;
const GAP: f64 = 8.0;
/// Room for the words of the axes.
const TICKS: f64 = 18.0;
/// A range that is shorter is left out: its ends would hide the bar.
const RANGE_MIN: f64 = 5.0;

/// Said if no range is wide enough.
const ALIKE: &str = "The runs of each bar are alike: no range is wide enough to be drawn.";

/// A command that was run in one way.
#[derive(Clone, Debug, PartialEq)]
pub struct WayRow {
    /// The command, which heads the group of its ways; empty for none.
    pub command: String,
    /// The way.
    pub way: String,
    /// The class of its bars, which is their colour.
    pub class: &'static str,
}

/// The median of a figure over several runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// The median.
    pub median: f64,
    /// The least and the most; `None` if not recorded.
    pub range: Option<(f64, f64)>,
    /// The median in words.
    pub words: String,
}

/// A column of bars.
#[derive(Clone, Debug)]
pub struct WayPanel {
    /// Its name, and which end is the good one.
    pub head: [&'static str; 2],
    /// Its scale.
    pub scale: WayScale,
    /// The bars, in the order of the rows; `None` if not measured.
    pub bars: Vec<Option<Measure>>,
}

/// The scale of a column.
#[derive(Clone, Copy, Debug)]
pub struct WayScale {
    /// The value of the longest bar; `None` if it is that of the largest figure of all columns with
    /// `None`, so that bars can be compared across them.
    pub full: Option<f64>,
    /// Words for a value of the axis.
    pub tick: fn(f64) -> String,
}

/// A group of rows for each command, a row for each way, in it a bar of each panel. `range` is the
/// meaning of the ranges, `conditions` are sentences on what was measured.
pub fn ways(
    title: &str,
    rows: &[WayRow],
    panels: &[WayPanel],
    (range, conditions): (&str, &str),
) -> Chart {
    let panels = placed(panels);
    let mut canvas = Canvas::default();
    for placed in &panels {
        for (line, words) in placed.panel.head.iter().enumerate() {
            canvas.text(placed.ends.0, 14.0 + line as f64 * 17.0, "soft", words);
        }
    }
    let commands = distinct(rows.iter().map(|row| row.command.as_str()));
    let named = commands.iter().filter(|command| !command.is_empty()).count();
    let bottom =
        HEAD + named as f64 * COMMAND + rows.len() as f64 * ROW + commands.len() as f64 * GAP;
    for placed in &panels {
        placed.draw_axis(&mut canvas, bottom);
    }
    let mut top = HEAD;
    for command in commands {
        if !command.is_empty() {
            canvas.text(LEFT, top + 17.0, "strong", &clipped(command, 60));
            top += COMMAND;
        }
        let first = top;
        for (number, row) in rows.iter().enumerate().filter(|(_, row)| row.command == command) {
            canvas.text(PANELS[0] - 8.0, top + 12.0, "end", &clipped(&row.way, 16));
            for placed in &panels {
                placed.draw(&mut canvas, number, (row.class, top));
            }
            top += ROW;
        }
        for Placed { ends: (left, _), .. } in &panels {
            canvas.line("axis", (*left, first - 2.0), (*left, top - 2.0));
        }
        top += GAP;
    }
    top += TICKS;
    let mut measures = panels.iter().flat_map(|placed| placed.panel.measures());
    if panels.iter().any(Placed::has_ranges) {
        let words = format!("{range}, if wide enough to be seen");
        top = legend(&mut canvas, top, &[(Glyph::Whisker, &words)]);
    } else if measures.any(|measure| measure.range.is_some()) {
        top = note(&mut canvas, top, ALIKE);
    }
    let height = note(&mut canvas, top, conditions) + 6.0;
    let description = description(rows, &panels);
    Chart { title: title.to_owned(), description, width: COLUMN, height, body: canvas.body }
}

/// Returns each value once, in the order in which they come.
pub(crate) fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for value in values {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    distinct
}

fn description(rows: &[WayRow], panels: &[Placed<'_>]) -> String {
    let rows = rows.iter().enumerate().map(|(number, row)| {
        let figures = panels.iter().filter_map(|Placed { panel, .. }| {
            let measure = panel.bars[number].as_ref()?;
            Some(format!("{} {}", panel.head[0], measure.words))
        });
        let figures = figures.collect::<Vec<_>>().join(", ");
        match row.command.as_str() {
            "" => format!("{}: {figures}", row.way),
            command => format!("{command}, {}: {figures}", row.way),
        }
    });
    format!("{}.", rows.collect::<Vec<_>>().join("; "))
}

/// A panel on the paper.
struct Placed<'a> {
    panel: &'a WayPanel,
    /// Left and right ends of its bars.
    ends: (f64, f64),
    /// The value of the longest bar.
    full: f64,
}

/// Places one panel or two beside each other.
fn placed(panels: &[WayPanel]) -> Vec<Placed<'_>> {
    let rights = [PANELS[1] - BETWEEN, RIGHT];
    let rights = if panels.len() == 1 { &rights[1..] } else { &rights[..] };
    let ends = PANELS.into_iter().zip(rights).map(|(left, right)| (left, right - FIGURE));
    let largest = largest(panels);
    let full = |panel: &WayPanel| panel.scale.full.unwrap_or(largest);
    let placed = panels.iter().zip(ends);
    placed.map(|(panel, ends)| Placed { panel, ends, full: full(panel) }).collect()
}

/// The largest figure of all panels that share a scale, with the end of its range.
fn largest(panels: &[WayPanel]) -> f64 {
    let sharing = panels.iter().filter(|panel| panel.scale.full.is_none());
    let most = |measure: &Measure| measure.range.map_or(measure.median, |(_, high)| high);
    sharing.flat_map(WayPanel::measures).map(most).fold(0.0, f64::max)
}

impl WayPanel {
    fn measures(&self) -> impl Iterator<Item = &Measure> {
        self.bars.iter().flatten()
    }
}

impl Placed<'_> {
    /// The place of a value.
    fn at(&self, value: f64) -> f64 {
        let (left, right) = self.ends;
        left + (right - left) * on_paper(value / self.full)
    }

    /// Draws the lines of an axis, which are behind the bars, at a round value and at half of it.
    fn draw_axis(&self, canvas: &mut Canvas, bottom: f64) {
        if !self.full.is_finite() || self.full <= 0.0 {
            return;
        }
        let most = one_digit(self.full, |digit, value| digit <= value);
        for value in [most / 2.0, most] {
            let x = self.at(value);
            canvas.line("grid", (x, HEAD), (x, bottom - GAP));
        }
        canvas.tick((self.ends.0, bottom + 8.0), "0");
        canvas.tick((self.at(most), bottom + 8.0), &(self.panel.scale.tick)(most));
    }

    fn has_ranges(&self) -> bool {
        self.panel.measures().any(|measure| self.range(measure).is_some())
    }

    /// Ends of the range of a figure on the paper; `None` if it is not drawn.
    fn range(&self, measure: &Measure) -> Option<(f64, f64)> {
        let (low, high) = measure.range?;
        let (low, high) = (self.at(low), self.at(high));
        (high - low >= RANGE_MIN).then_some((low, high))
    }

    /// Draws the bar of a row with its range, and its figure beside the panel.
    fn draw(&self, canvas: &mut Canvas, row: usize, (class, top): (&str, f64)) {
        let Some(measure) = &self.panel.bars[row] else { return };
        bar(canvas, self.ends, class, (measure.median / self.full, ""), top);
        if let Some(range) = self.range(measure) {
            whisker(canvas, range, top + BAR / 2.0);
        }
        // In a column: behind a range, a figure would read as that of its end.
        canvas.text(self.ends.1 + 6.0, top + BAR - 2.0, "strong", &measure.words);
    }
}
