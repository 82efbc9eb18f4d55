//! The ladder: a row for each rung, with its name and figures above its bar. Memory and the
//! disk are in one picture, and beside each figure is how many times as fast as the disk it is.
//! No rank where two intervals share a value.

use super::Chart;
use super::axis::Axis;
use super::cut_bar;
use super::legend::{Glyph, legend, note, stripes, whisker};
use super::number_format::figure;
use super::svg::{COLUMN, COLUMN_CHARACTER, Canvas, clipped};
use crate::disk_factor::{self, factors};
use crate::interval_words;
use crate::rank::{Rank, longest, ranks};
use fsure_core::units;
use fsure_measure::comparison::{RungReference, rung_references};
use fsure_measure::results::Rung;

/// Height of the line of a name, and of a bar.
const NAME: f64 = 19.0;
const BAR: f64 = 13.0;
const GAP: f64 = 9.0;
/// The same of what others have measured, below a rung.
const OTHERS: f64 = 20.0;
const OTHERS_BAR: f64 = 6.0;
/// Height of the names of the columns.
const HEAD: f64 = 22.0;
/// Between a rank and the name of its rung, for what ties it to the next.
const TIE: f64 = 20.0;
const RIGHT: f64 = COLUMN - 8.0;
/// Room of how many times the disk a figure is, and of a figure.
const FACTOR: f64 = 84.0;
const FIGURE: f64 = 76.0;
/// The target of rungs that measure no folder.
const MEMORY: &str = "memory";

/// Meaning of the rungs whose names do not say what they read or write.
const MEANINGS: [(&str, &str); 18] = [
    ("disk read cached", "in the page cache"),
    ("disk read direct", "from the device"),
    ("disk write cached", "into the page cache"),
    ("disk write durable", "with a flush"),
    ("void", "writes to nowhere"),
    ("ram disk first write", "takes new memory"),
    ("ram disk rewrite", "in memory that it has"),
    ("ram disk huge first write", "huge pages, new memory"),
    ("ram disk huge rewrite", "huge pages"),
    ("ram disk huge read", "huge pages"),
    ("pv", "a file, into the page cache"),
    ("pv void", "to nowhere"),
    ("pv bind", "RAM disk over a folder"),
    ("pv fuse", "RAM disk by a program"),
    ("pv bindfs", "RAM disk by bindfs"),
    ("bind", "writes, RAM disk over a folder"),
    ("fuse", "writes, RAM disk by a program"),
    ("verify", "reads, hashes and judges"),
];

/// The rung of the founders' line in a folder of the disk, which flushes nothing.
const PV: &str = "pv";

fn glossed(name: &str) -> String {
    match MEANINGS.iter().find(|(rung, _)| *rung == name) {
        Some((_, meaning)) => format!("{name}: {meaning}"),
        None => name.to_owned(),
    }
}

/// The number of runs of the rungs and the most that one moves, as a sentence.
fn runs(rows: &[Row<'_>]) -> String {
    let runs = || rows.iter().map(|row| row.rung.runs);
    let (Some(least), Some(most)) = (runs().min(), runs().max()) else { return String::new() };
    let runs = if least < most { format!("{least} to {most}") } else { most.to_string() };
    let moved = rows.iter().filter(|row| row.rung.unit == "MiB/s").map(|row| row.rung.amount).max();
    let moved = moved.map_or(String::new(), |most| format!(" of at most {}", units::size(most)));
    format!("Medians of {runs} runs{moved}.")
}

/// Rungs with the fastest first.
pub fn sorted<'a>(rungs: &[&'a Rung]) -> Vec<&'a Rung> {
    let mut sorted = rungs.to_vec();
    sorted.sort_by(|one, two| two.median.total_cmp(&one.median));
    sorted
}

/// A rung with all that stands in its row.
struct Row<'a> {
    rung: &'a Rung,
    rank: Rank,
    factor: Option<f64>,
    others: Option<&'static RungReference>,
    is_cut: bool,
    /// True if it may be as fast as the rung below it.
    is_tied: bool,
}

impl Row<'_> {
    fn height(&self) -> f64 {
        let others = if self.others.is_some() { OTHERS + OTHERS_BAR + 3.0 } else { 0.0 };
        NAME + BAR + others + GAP
    }

    /// The class of its bar: memory, or the disk.
    fn class(&self) -> &'static str {
        if self.rung.target == MEMORY { "bar" } else { "second" }
    }

    /// Returns true for files of the disk that are read from or written to memory.
    fn is_cached(&self) -> bool {
        let is_named = self.rung.name.split(' ').any(|word| word == "cached");
        self.rung.target != MEMORY && (is_named || self.rung.name == PV)
    }

    /// The outliers that are on an axis which ends there.
    fn outliers(&self, most: f64) -> impl Iterator<Item = f64> {
        let samples = self.rung.outliers.iter().filter_map(|place| self.rung.samples.get(*place));
        let is_cut = self.is_cut;
        samples.copied().filter(move |sample| !is_cut && *sample <= most)
    }
}

fn rows<'a>(rungs: &[&'a Rung], most: f64) -> Vec<Row<'a>> {
    let (ranks, factors) = (ranks(rungs), factors(rungs));
    let rows = rungs.iter().enumerate().map(|(place, rung)| {
        let others = rung_references().iter().find(|one| one.rung == rung.name);
        Row {
            rung,
            rank: ranks[place],
            factor: factors[place],
            others: others.filter(|_| rung.unit == "MiB/s"),
            is_cut: rung.median > most,
            is_tied: rungs.get(place + 1).is_some_and(|next| next.high >= rung.low),
        }
    });
    rows.collect()
}

/// The rungs of one folder and of memory, of one unit. The length of a bar is its figure: the
/// axis is straight and begins at zero. The few bars that would take all of it are cut off.
pub fn ladder(title: &str, rungs: &[&Rung]) -> Chart {
    let rungs = sorted(rungs);
    let most = cut_bar::longest(rungs.iter().map(|rung| rung.median));
    let rows = rows(&rungs, most);
    let ranks: Vec<_> = rows.iter().map(|row| row.rank).collect();
    let rank_end = (longest(&ranks) as f64 * COLUMN_CHARACTER + 4.0).max(38.0);
    let left = rank_end + TIE;
    let whole = rows.iter().filter(|row| !row.is_cut);
    let ends = whole.flat_map(|row| {
        let others = row.others.map_or(0.0, |others| others.mib_per_s);
        [row.rung.low, row.rung.median, row.rung.high, others].map(|value| value.min(most))
    });
    let axis = Axis::straight(ends, (left, RIGHT));
    let height: f64 = rows.iter().map(Row::height).sum();
    let bottom = HEAD + height;
    let unit = rungs.first().map_or("", |rung| rung.unit.as_str());
    let mut canvas = Canvas::default();
    for tick in axis.ticks() {
        canvas.line("grid", (axis.at(tick), HEAD), (axis.at(tick), bottom));
        canvas.tick((axis.at(tick), bottom + 16.0), &figure(tick));
    }
    let has_factors = rows.iter().any(|row| row.factor.is_some());
    let figures = if has_factors { RIGHT - FACTOR } else { RIGHT };
    canvas.text(rank_end, 14.0, "soft end", "rank");
    canvas.text(figures, 14.0, "soft end", &format!("median, {unit}"));
    if has_factors {
        canvas.text(RIGHT, 14.0, "soft end", "x disk");
    }
    let mut top = HEAD;
    for row in &rows {
        let columns = Columns { rank_end, left, figures };
        draw(&mut canvas, &axis, (row, most), (&columns, top));
        top += row.height();
    }
    canvas.line("axis", (left, HEAD), (left, bottom));
    let height = key(&mut canvas, &rows, bottom + 26.0, most);
    let description = description(&rows, unit);
    Chart { title: title.to_owned(), description, width: COLUMN, height, body: canvas.body }
}

/// Places of the columns from the left.
struct Columns {
    rank_end: f64,
    left: f64,
    figures: f64,
}

fn draw(
    canvas: &mut Canvas,
    axis: &Axis,
    (row, most): (&Row<'_>, f64),
    (columns, top): (&Columns, f64),
) {
    let Columns { rank_end, left, figures } = *columns;
    let (rung, base) = (row.rung, top + 15.0);
    let name = ((figures - FIGURE - left) / COLUMN_CHARACTER) as usize;
    canvas.text(rank_end, base, "soft end", &row.rank.to_string());
    canvas.text(left + 2.0, base, "rim", &clipped(&glossed(&rung.name), name));
    canvas.text(figures, base, "strong end rim", &figure(rung.median));
    if let Some(factor) = row.factor {
        canvas.text(RIGHT, base, "soft end rim", &disk_factor::words(factor));
    }
    if row.is_tied {
        let to = row.height() - 4.0;
        let path = format!("M{:.1} {:.1}h-5v{to:.1}h5", rank_end + 12.0, base - 3.0);
        canvas.path("tie", "", &path);
    }
    bar(canvas, axis, (row, most), top + NAME);
    if let Some(others) = row.others {
        let top = top + NAME + BAR;
        let words = clipped(&format!("founders: {}", others.what), name);
        canvas.text(left + 2.0, top + 15.0, "soft rim", &words);
        canvas.text(figures, top + 15.0, "soft end rim", &figure(others.mib_per_s));
        let (zero, value) = (axis.at(0.0), axis.at(others.mib_per_s));
        canvas.rect("reference", (zero, top + OTHERS), ((value - zero).max(1.5), OTHERS_BAR));
        if others.mib_per_s > most {
            cut_bar::cut(canvas, (RIGHT, top + OTHERS), OTHERS_BAR);
        }
    }
}

fn bar(canvas: &mut Canvas, axis: &Axis, (row, most): (&Row<'_>, f64), top: f64) {
    let (zero, at) = (axis.at(0.0), axis.at(row.rung.median));
    let at = if row.is_cut { RIGHT } else { at };
    let area = ((zero, top), ((at - zero).max(0.5), BAR));
    canvas.rect(row.class(), area.0, area.1);
    if row.is_cached() {
        stripes(canvas, area.0, area.1);
    }
    let middle = top + BAR / 2.0;
    if row.is_cut {
        cut_bar::cut(canvas, (RIGHT, top), BAR);
    } else {
        whisker(canvas, (axis.at(row.rung.low), axis.at(row.rung.high)), middle);
    }
    for outlier in row.outliers(most).filter(|outlier| axis.holds(*outlier)) {
        canvas.circle("outlier", (axis.at(outlier), middle), 3.0);
    }
}

/// Explains every mark that is in the picture, and returns the height below.
fn key(canvas: &mut Canvas, rows: &[Row<'_>], top: f64, most: f64) -> f64 {
    let has = |of: fn(&Row<'_>) -> bool| rows.iter().any(of);
    let has_others = has(|row| row.others.is_some());
    let shown = rows.iter().filter(|row| !row.is_cut);
    let interval = interval_words::meaning(shown.map(|row| row.rung.runs));
    let far = rows.iter().any(|row| row.outliers(most).next().is_some());
    let entries = [
        (has(|row| row.rung.target == MEMORY), Glyph::Bar("bar"), "memory"),
        (has(|row| row.rung.target != MEMORY), Glyph::Bar("second"), "this disk"),
        (has(|row| row.is_cached()), Glyph::Striped("second"), "files of the disk in memory"),
        (has(|row| row.is_cut), Glyph::Cut("bar"), cut_bar::MEANING),
        (has(|row| !row.is_cut), Glyph::Whisker, interval.as_str()),
        (far, Glyph::Circle("outlier"), "one run far from the others"),
        (has(|row| row.is_tied), Glyph::Bracket, "which of both is faster is not sure"),
        (has_others, Glyph::Bar("reference"), "founders"),
    ];
    let entries = entries.into_iter().filter(|(is_drawn, ..)| *is_drawn);
    let entries: Vec<_> = entries.map(|(_, glyph, words)| (glyph, words)).collect();
    let mut bottom = legend(canvas, top, &entries);
    bottom = note(canvas, bottom, &runs(rows));
    if has_others {
        let source = rung_references().first().map_or("", |one| one.source);
        bottom = note(canvas, bottom, &format!("Grey: {source}."));
    }
    if has(|row| row.factor.is_some()) {
        bottom = note(canvas, bottom, &disk_factor::MEANING.join(" "));
    }
    bottom + 6.0
}

fn description(rows: &[Row<'_>], unit: &str) -> String {
    let rows = rows.iter().map(|row| {
        let rung = row.rung;
        let [median, low, high] = [rung.median, rung.low, rung.high].map(figure);
        let mut words = vec![format!("{low} to {high}")];
        words.extend(row.factor.map(|factor| format!("{} disk", disk_factor::words(factor))));
        words.extend(row.rank.is_shared().then(|| "not ranked against its neighbours".to_owned()));
        words.extend(row.is_cut.then(|| cut_bar::WORDS.to_owned()));
        words.extend(
            row.others.map(|others| {
                format!("the founders' {}: {}", others.what, figure(others.mib_per_s))
            }),
        );
        format!("{} {median} {unit} ({})", rung.name, words.join(", "))
    });
    format!("Medians with their intervals: {}.", rows.collect::<Vec<_>>().join("; "))
}
