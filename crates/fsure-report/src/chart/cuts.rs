//! Cuts of the power: a row of cells for each drive, a cell for each cut, with what it took. The
//! price of a commit stands above: what is fast and loses the last moments can be told from what
//! is fast and damages.

use super::Chart;
use super::axis::on_paper;
use super::legend::{Glyph, legend, note};
use super::svg::{COLUMN, COLUMN_CHARACTER, Canvas, clipped, wrapped};

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
/// Cells with words: in a row, their height, and between two of them.
const WORDED: usize = 6;
const CELL: f64 = 58.0;
const BETWEEN: f64 = 4.0;
/// Rows of cells with words; more cuts than these hold are small squares.
const WORDED_ROWS: usize = 2;
const SQUARE: f64 = 20.0;

/// Rules by which some of the writes survive a cut, and their meaning.
const VARIANTS: [(&str, &str); 5] = [
    ("prefix", "those before a moment"),
    ("epoch", "all before a flush, some behind it"),
    ("random", "some, in no order"),
    (TORN, "parts of 512 bytes of some"),
    (TORN_4K, "parts of 4 KiB of some"),
];
const TORN: &str = "torn";
const TORN_4K: &str = "torn-4k";

/// Danger of a torn write to the file system itself.
const SUPERBLOCK: &str = "A torn write may cut through the superblock of ext4 or btrfs, which is \
                          longer than 512 bytes: then nothing mounts, whatever the program did.";

/// Meaning of a frame.
const FRAMED: &str = " Framed: the cut breaks the order of the writes, and only such a cut can show \
                      damage.";

/// Returns true if a later write may survive a cut, and an earlier one not.
fn breaks_order(cut: &CutCell) -> bool {
    ["random", TORN, TORN_4K].contains(&&*cut.variant)
}

/// State of what was acknowledged, after a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutState {
    /// All of it is there.
    Kept,
    /// Some of it is gone, and what is there is sound.
    Lost,
    /// The data is damaged.
    Damaged,
    /// The file system cannot be mounted.
    Unmountable,
    /// Nothing is known of it.
    Unknown,
}

impl CutState {
    const ALL: [Self; 5] =
        [Self::Kept, Self::Lost, Self::Damaged, Self::Unmountable, Self::Unknown];

    /// The state in a word, its style, a sign for small squares, and its meaning.
    fn words(self) -> (&'static str, &'static str, &'static str, &'static str) {
        match self {
            Self::Kept => ("no loss", "tile good", "", "all that was acknowledged is there"),
            Self::Lost => ("lost", "tile warn", "-", "the last of it is lost, the rest is sound"),
            Self::Damaged => ("damaged", "tile bad", "x", "damaged: the check fails"),
            Self::Unmountable => {
                ("no mount", "tile gone", "!", "no mount: the file system does not mount")
            }
            Self::Unknown => ("unknown", "tile plain", "?", "nothing is known"),
        }
    }
}

/// One cut.
#[derive(Clone, Debug, PartialEq)]
pub struct CutCell {
    /// State after it.
    pub state: CutState,
    /// Age of the oldest acknowledgement that was lost, in words; empty for none.
    pub oldest_lost: String,
    /// Rule by which writes survived it.
    pub variant: String,
}

/// The cuts of one drive.
#[derive(Clone, Debug, PartialEq)]
pub struct CutRun {
    /// Name of the drive, or of the result.
    pub label: String,
    /// Acknowledgements a second, and the same in words; empty if not measured.
    pub rate: (f64, String),
    /// Age of the oldest write that a cut took, in milliseconds; 0 for none.
    pub oldest_lost_ms: f64,
    /// The cuts, in their order.
    pub cuts: Vec<CutCell>,
    /// Result of all cuts, in words.
    pub outcome: String,
    /// The simulated drive and its file system, in words.
    pub drive: String,
    /// True if the superblock of its file system is longer than 512 bytes.
    pub has_long_superblock: bool,
}

impl CutRun {
    fn is_worded(&self) -> bool {
        self.cuts.len() <= WORDED * WORDED_ROWS
    }

    /// The lines below the label: the drive, and the result of the cuts.
    fn lines(&self) -> Vec<String> {
        let room = ((RIGHT - LEFT) / COLUMN_CHARACTER) as usize;
        [&self.drive, &self.outcome].into_iter().flat_map(|words| wrapped(words, room)).collect()
    }

    /// Height of the lines above the cells.
    fn head(&self) -> f64 {
        let rate = if self.rate.1.is_empty() { 0.0 } else { RATE + BELOW_RATE };
        (self.lines().len() + 1) as f64 * LINE + BELOW_LINES + rate
    }

    fn height(&self) -> f64 {
        let (columns, cell) = self.cells();
        self.head() + self.cuts.len().div_ceil(columns) as f64 * (cell + BETWEEN) + GAP
    }

    /// Cells in a row, and their height.
    fn cells(&self) -> (usize, f64) {
        match self.is_worded() {
            true => (WORDED, CELL),
            false => (((RIGHT - LEFT) / (SQUARE + BETWEEN)) as usize, SQUARE),
        }
    }
}

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
    let has_rates = runs.iter().any(|run| !run.rate.1.is_empty());
    let mut top = 0.0;
    if has_rates {
        canvas.text(RIGHT, 14.0, "soft end", "acknowledged writes");
        top += LINE;
    }
    let is_of_losses = are_equally_fast(runs);
    let value = |run: &CutRun| if is_of_losses { run.oldest_lost_ms } else { run.rate.0 };
    let most = runs.iter().map(value).filter(|value| value.is_finite()).fold(0.0, f64::max);
    for run in runs {
        let class = if is_of_losses { "second" } else { "bar" };
        draw(&mut canvas, run, (class, value(run) / most), top);
        top += run.height();
    }
    let has = |state: CutState| runs.iter().flat_map(|run| &run.cuts).any(|cut| cut.state == state);
    let entries = CutState::ALL.into_iter().filter(|state| has(*state)).map(|state| {
        let (_, style, sign, meaning) = state.words();
        let sign = if sign.is_empty() { String::new() } else { format!(" ({sign})") };
        (
            style,
            if runs.iter().all(CutRun::is_worded) {
                meaning.to_owned()
            } else {
                meaning.to_owned() + &sign
            },
        )
    });
    let entries: Vec<_> = entries.collect();
    let mut entries: Vec<_> =
        entries.iter().map(|(style, words)| (Glyph::Bar(style), words.as_str())).collect();
    if has_rates && is_of_losses {
        let words = "the oldest loss of all cuts, from zero: shorter is better";
        entries.insert(0, (Glyph::Bar("second"), words));
    } else if has_rates {
        let words = "acknowledged writes a second, from zero: longer is better; a bar that is too \
                     short to be seen is left out";
        entries.insert(0, (Glyph::Bar("bar"), words));
    }
    let mut height = legend(&mut canvas, top, &entries);
    if runs.iter().any(|run| run.is_worded() && !run.cuts.is_empty()) {
        let seen = |name: &str| {
            runs.iter().flat_map(|run| &run.cuts).any(|cut| cut.variant.as_str() == name)
        };
        let meanings = VARIANTS.iter().filter(|(name, _)| seen(name));
        let meanings: String =
            meanings.map(|(name, meaning)| format!("; {name}: {meaning}")).collect();
        let framed = match runs.iter().flat_map(|run| &run.cuts).any(breaks_order) {
            true => FRAMED,
            false => "",
        };
        let words = format!(
            "A cell is a cut of the power: what it took, how long ago the oldest lost write had been \
             acknowledged, and in brackets which of the writes in the drive's cache survived: none \
             or all{meanings}.{framed}"
        );
        height = note(&mut canvas, height, &words);
        let is_torn = |cut: &CutCell| cut.state == CutState::Unmountable && cut.variant == TORN;
        let may_be_superblock =
            |run: &CutRun| run.has_long_superblock && run.cuts.iter().any(is_torn);
        if runs.iter().any(may_be_superblock) {
            height = note(&mut canvas, height, SUPERBLOCK);
        }
    }
    let rows = runs.iter().map(|run| format!("{}, {}: {}", run.label, run.rate.1, run.outcome));
    let description = format!("{}.", rows.collect::<Vec<_>>().join("; "));
    let (title, height) = (title.to_owned(), height + 6.0);
    Chart { title, description, width: COLUMN, height, body: canvas.body }
}

fn draw(canvas: &mut Canvas, run: &CutRun, (class, share): (&str, f64), top: f64) {
    let room = (RIGHT - LEFT) / COLUMN_CHARACTER;
    let rate_words = &run.rate.1;
    let label = room - rate_words.chars().count() as f64 - 2.0;
    canvas.text(LEFT, top + 14.0, "strong", &clipped(&run.label, (label / 1.1) as usize));
    canvas.text(RIGHT, top + 14.0, "strong end", rate_words);
    let mut below = top + LINE;
    if !rate_words.is_empty() {
        let width = (RIGHT - LEFT) * on_paper(share);
        if width >= WIDTH_MIN {
            canvas.rect(class, (LEFT, below), (width, RATE));
        }
        canvas.line("axis", (LEFT, below - 1.0), (LEFT, below + RATE + 1.0));
        below += RATE + BELOW_RATE;
    }
    for (place, line) in run.lines().iter().enumerate() {
        canvas.text(LEFT, below + 14.0 + place as f64 * LINE, "soft", line);
    }
    let (columns, height) = run.cells();
    let width = match run.is_worded() {
        true => (RIGHT - LEFT + BETWEEN) / columns as f64 - BETWEEN,
        false => SQUARE,
    };
    for (place, cut) in run.cuts.iter().enumerate() {
        let x = LEFT + (place % columns) as f64 * (width + BETWEEN);
        let y = top + run.head() + (place / columns) as f64 * (height + BETWEEN);
        let (word, style, sign, _) = cut.state.words();
        canvas.rect(style, (x, y), (width, height));
        if breaks_order(cut) {
            canvas.rect("frame", (x + 1.0, y + 1.0), (width - 2.0, height - 2.0));
        }
        let middle = x + width / 2.0;
        if !run.is_worded() {
            canvas.text(middle, y + 15.0, "mid", sign);
            continue;
        }
        canvas.text(middle, y + 17.0, "strong mid cell", word);
        canvas.text(middle, y + 34.0, "mid", &cut.oldest_lost);
        canvas.text(middle, y + 51.0, "soft mid", &clipped(&format!("({})", cut.variant), 10));
    }
}
