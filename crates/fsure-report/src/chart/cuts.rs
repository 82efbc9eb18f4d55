//! Cuts of the power: for each drive a cell for each cut, with what it took, or bars of counts if
//! there are many. The price of a commit stands above, beside cells as a bar, too: what is fast and
//! loses the last moments can be told from what is fast and damages.

use super::Chart;
use super::axis::on_paper;
use super::cut_conditions::CutConditions;
use super::cut_run::{CutCell, CutRun, CutState, VARIANTS, WORDED};
use super::cut_tally::{self, Tally};
use super::legend::{Glyph, legend, note};
use super::number_format::microseconds;
use super::svg::{COLUMN, COLUMN_CHARACTER, Canvas, clipped, wrapped};

/// The width of a bold character beside that of another.
const BOLD_WIDTH_FACTOR: f64 = 1.18;
const LEFT: f64 = 8.0;
const RIGHT: f64 = COLUMN - 8.0;
/// Height of a line above a row of cells, from the last one to the cells, and room below these.
const LINE: f64 = 19.0;
const BELOW_LINES: f64 = 4.0;
/// Height of the bar of a rate, and room below it.
const RATE: f64 = 10.0;
const BELOW_RATE: f64 = 4.0;
/// A narrower bar is left out: one that can be seen would show more than there is.
const WIDTH_MIN: f64 = 0.5;
const GAP: f64 = 14.0;
/// Height of a cell, and room between two of them.
const CELL: f64 = 58.0;
const BETWEEN: f64 = 4.0;

/// Danger of a torn write to the file system itself.
const SUPERBLOCK: &str = "A torn write may cut through the superblock of a file system, which is \
                          longer than 512 bytes: then nothing mounts, whatever the program did.";

/// Meaning of a frame.
const FRAMED: &str = " Framed: the cut breaks the order of the writes, and only such a cut can show \
                      damage.";

/// Rates of which the largest is less than so many times the least are those of a program with a
/// pace of its own: its losses are drawn instead.
const SAME_RATE: f64 = 1.2;

/// Returns true if all programs are as fast, so that only what they lose can differ.
pub fn are_equally_fast(runs: &[CutRun]) -> bool {
    let rates = || runs.iter().map(|run| run.rate.0);
    let (least, most) = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
    runs.len() > 1 && least > 0.0 && most / least < SAME_RATE
}

/// The cuts of several drives, or of several programs, below each other.
pub fn cuts(title: &str, runs: &[CutRun]) -> Chart {
    let mut canvas = Canvas::default();
    let measure = if are_equally_fast(runs) { Measured::Losses } else { Measured::Rates };
    let most = runs.iter().map(|run| measure.of(run).0).filter(|value| value.is_finite());
    let most = most.fold(0.0, f64::max);
    let tally = Tally::of(runs);
    let conditions = CutConditions::of(runs);
    // The colours come first, since the last cells of several runs are far from the end. What is
    // read but once stands there.
    let bottom = key(&mut canvas, runs, measure, &tally);
    let mut top = note(&mut canvas, bottom, &conditions.words()) + GAP;
    if runs.iter().any(|run| !run.rate.1.is_empty()) {
        canvas.text(RIGHT, top + 14.0, "soft end", measure.heading());
        top += LINE;
    }
    for run in runs {
        let shown = Shown { run, measure, conditions: conditions.own(run), tally: &tally };
        shown.draw(&mut canvas, most, top);
        top += shown.height();
    }
    let top = notes(&mut canvas, runs, top);
    let rows = runs.iter().map(|run| format!("{}, {}: {}", run.label, run.rate.1, run.result()));
    let description = format!("{}.", rows.collect::<Vec<_>>().join("; "));
    let (title, height) = (title.to_owned(), top + 6.0);
    Chart { title, description, width: COLUMN, height, body: canvas.body }
}

/// The figure that is drawn as a bar above the cells of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Measured {
    Rates,
    Losses,
}

impl Measured {
    fn of(self, run: &CutRun) -> &(f64, String) {
        match self {
            Self::Rates => &run.rate,
            Self::Losses => &run.oldest_lost,
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Rates => "bar",
            Self::Losses => "second",
        }
    }

    fn heading(self) -> &'static str {
        match self {
            Self::Rates => "acknowledged writes",
            Self::Losses => "oldest loss",
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Self::Rates => {
                "acknowledged writes a second, from zero: longer is better; a bar that is too \
                 short to be seen is left out"
            }
            Self::Losses => "the oldest loss of all cuts, from zero: shorter is better",
        }
    }
}

/// Explains the marks, and returns the height below.
fn key(canvas: &mut Canvas, runs: &[CutRun], measure: Measured, tally: &Tally<'_>) -> f64 {
    let cuts = || runs.iter().flat_map(|run| &run.cuts);
    let states = CutState::ALL.into_iter().filter(|state| cuts().any(|cut| cut.state == *state));
    let signed = tally.signed();
    let entries = states.map(|state| match signed.contains(&state) {
        true => (state.style(), format!("{} ({})", state.meaning(), state.sign())),
        false => (state.style(), state.meaning().to_owned()),
    });
    let entries: Vec<_> = entries.collect();
    let has_bars = runs.iter().any(CutRun::has_bar);
    let bar = has_bars.then_some((Glyph::Bar(measure.class()), measure.meaning()));
    let cells = entries.iter().map(|(style, words)| (Glyph::Bar(style), words.as_str()));
    let entries: Vec<_> = bar.into_iter().chain(cells).collect();
    let bottom = legend(canvas, 0.0, &entries);
    tally.key(canvas, bottom)
}

/// Explains the words and the frames of the cells, and returns the height below.
fn notes(canvas: &mut Canvas, runs: &[CutRun], top: f64) -> f64 {
    let cuts = || runs.iter().filter(|run| run.is_worded()).flat_map(|run| &run.cuts);
    let mut height = top;
    if cuts().next().is_some() {
        let framed = if cuts().any(CutCell::breaks_order) { FRAMED } else { "" };
        let seen = |name: &str| cuts().any(|cut| cut.variant.as_str() == name);
        let meanings = VARIANTS.iter().filter(|(name, _)| seen(name));
        let meanings: String =
            meanings.map(|(name, meaning)| format!("; {name}: {meaning}")).collect();
        let words = format!(
            "A cell is a cut of the power: what it took, how long ago the oldest lost write had been \
             acknowledged, and in brackets which of the writes in the drive's cache survived: none \
             or all{meanings}.{framed}"
        );
        height = note(canvas, height, &words);
    }
    if runs.iter().any(CutRun::may_lose_superblock) {
        height = note(canvas, height, SUPERBLOCK);
    }
    height
}

/// A run in the chart.
struct Shown<'a> {
    run: &'a CutRun,
    measure: Measured,
    /// Its file system, and conditions that are not those of most, in words.
    conditions: String,
    tally: &'a Tally<'a>,
}

impl Shown<'_> {
    /// The lines below the label: the conditions, and the result of the cuts unless bars show that.
    fn lines(&self) -> Vec<String> {
        let room = ((RIGHT - LEFT) / COLUMN_CHARACTER) as usize;
        let conditions = match self.measure {
            Measured::Losses => format!("{}; acknowledged: {}", self.conditions, self.run.rate.1),
            Measured::Rates => self.conditions.clone(),
        };
        let result = self.run.is_worded().then(|| self.run.result());
        let lines = std::iter::once(conditions).chain(result);
        lines.flat_map(|words| wrapped(&words, room)).collect()
    }

    fn height(&self) -> f64 {
        let cuts = match self.run.is_worded() {
            true => self.run.cuts.len().div_ceil(WORDED) as f64 * (CELL + BETWEEN),
            false => cut_tally::height(self.run),
        };
        let bar = if self.run.has_bar() { RATE + BELOW_RATE } else { 0.0 };
        (self.lines().len() + 1) as f64 * LINE + BELOW_LINES + bar + cuts + GAP
    }

    fn draw(&self, canvas: &mut Canvas, most: f64, mut top: f64) {
        let run = self.run;
        let room = (RIGHT - LEFT) / COLUMN_CHARACTER;
        let (value, words) = self.measure.of(run);
        let label = room / BOLD_WIDTH_FACTOR - words.chars().count() as f64 - 1.0;
        canvas.text(LEFT, top + 14.0, "strong", &clipped(&run.label, label as usize));
        canvas.text(RIGHT, top + 14.0, "strong end", words);
        top += LINE;
        if run.has_bar() {
            let width = (RIGHT - LEFT) * on_paper(value / most);
            if width >= WIDTH_MIN {
                canvas.rect(self.measure.class(), (LEFT, top), (width, RATE));
            }
            canvas.line("axis", (LEFT, top - 1.0), (LEFT, top + RATE + 1.0));
            top += RATE + BELOW_RATE;
        }
        top = self.draw_lines(canvas, top);
        match run.is_worded() {
            true => self.draw_cells(canvas, top),
            false => self.tally.draw(canvas, top, run),
        }
    }

    /// Draws the lines, and returns the height below them.
    fn draw_lines(&self, canvas: &mut Canvas, top: f64) -> f64 {
        let lines = self.lines();
        for (place, line) in lines.iter().enumerate() {
            canvas.text(LEFT, top + 14.0 + place as f64 * LINE, "soft", line);
        }
        top + lines.len() as f64 * LINE + BELOW_LINES
    }

    fn draw_cells(&self, canvas: &mut Canvas, top: f64) {
        let width = (RIGHT - LEFT + BETWEEN) / WORDED as f64 - BETWEEN;
        for (place, cut) in self.run.cuts.iter().enumerate() {
            let x = LEFT + (place % WORDED) as f64 * (width + BETWEEN);
            let y = top + (place / WORDED) as f64 * (CELL + BETWEEN);
            canvas.rect(cut.state.style(), (x, y), (width, CELL));
            if cut.breaks_order() {
                canvas.rect("frame", (x + 1.0, y + 1.0), (width - 2.0, CELL - 2.0));
            }
            let middle = x + width / 2.0;
            let oldest = cut.oldest_lost_ms.map_or_else(String::new, |ms| microseconds(ms * 1e3));
            canvas.text(middle, y + 17.0, "strong mid cell", cut.state.word());
            canvas.text(middle, y + 34.0, "mid", &oldest);
            canvas.text(middle, y + 51.0, "soft mid", &clipped(&format!("({})", cut.variant), 10));
        }
    }
}
