//! The ladder: a row for each rung, with its name and figures above its bar. Memory and the
//! disk are in one picture, and beside each figure is how many times as fast as the disk it is.
//! All bars begin at zero. If a few would leave no room for the others, they have a scale of
//! their own. Writes and reads stand apart if each kind is held against the disk. No rank if two
//! intervals share a value.

use super::Chart;
use super::axis::Axis;
use super::legend::{Glyph, legend, note, stripes, whisker};
use super::number_format::{figure, whole_size};
use super::svg::{COLUMN, COLUMN_CHARACTER, Canvas, clipped};
use crate::disk_factor::{self, factors};
use crate::interval_words;
use crate::rank::{Rank, longest, ranks};
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
/// Height of the words above a panel, and of the figures below it.
const WORDS: f64 = 26.0;
const TICKS: f64 = 26.0;
/// A value beyond so many times the middle one is not on the scale of most.
const MIDDLES_MAX: f64 = 4.0;
/// Number of values from which on one may have another scale: fewer can be read beside each other.
const COMMON_MIN: usize = 5;
/// Between a rank and the name of its rung, for what ties it to the next.
const TIE: f64 = 20.0;
const RIGHT: f64 = COLUMN - 8.0;
/// Room of how many times the disk a figure is, and of a figure.
const FACTOR: f64 = 84.0;
const FIGURE: f64 = 76.0;
/// Words above the rungs of a kind.
const WRITES: &str = "writing (beside 'disk write durable')";
const READS: &str = "reading: another scale (beside 'disk read direct')";
const READS_AND_HASHES: &str = "reading, hashing: another scale (beside 'disk read direct')";
/// The target of rungs that measure no folder.
const MEMORY: &str = "memory";

/// Meaning of the rungs whose names do not say what they read or write.
const MEANINGS: [(&str, &str); 17] = [
    ("disk read cached", "in the page cache"),
    ("disk read direct", "from the device"),
    ("disk write cached", "into the page cache"),
    ("disk write durable", "with a flush"),
    ("disk write written", "to the device, no flush"),
    ("void", "writes to nowhere"),
    ("ram disk first write", "takes new memory"),
    ("ram disk rewrite", "in memory it has"),
    ("ram disk huge first write", "new memory"),
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
fn runs(rows: &[&Row<'_>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let runs = interval_words::span(rows.iter().map(|row| row.rung.runs));
    let moved = rows.iter().filter(|row| row.rung.unit == "MiB/s").map(|row| row.rung.amount).max();
    let moved = moved.map_or(String::new(), |most| format!(" of at most {}", whole_size(most)));
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

    /// Runs far from the others. One inside the interval, which is that of all runs if they are
    /// few, would hide its end.
    fn outliers(&self) -> impl Iterator<Item = f64> {
        let rung = self.rung;
        let outliers = rung.outliers.iter().filter_map(|place| rung.samples.get(*place)).copied();
        outliers.filter(|run| *run < rung.low || *run > rung.high)
    }
}

fn rows<'a>(rungs: &[&'a Rung]) -> Vec<Row<'a>> {
    let (ranks, factors) = (ranks(rungs), factors(rungs));
    let rows = rungs.iter().enumerate().map(|(place, rung)| {
        let others = rung_references().iter().find(|one| one.rung == rung.name);
        Row {
            rung,
            rank: ranks[place],
            factor: factors[place],
            others: others.filter(|_| rung.unit == "MiB/s"),
        }
    });
    rows.collect()
}

/// Returns true if a row may be as fast as the one above it.
fn is_tied(above: &Row<'_>, below: &Row<'_>) -> bool {
    below.rung.high >= above.rung.low
}

/// Rows of a kind, with words above them; these are empty if there is one kind.
fn groups<'a>(rungs: &[&'a Rung]) -> Vec<(&'static str, Vec<Row<'a>>)> {
    let all = rows(rungs);
    let is_write = |row: &Row<'_>| disk_factor::is_write(&row.rung.name);
    let has_factor =
        |write: bool| all.iter().any(|row| is_write(row) == write && row.factor.is_some());
    if !(has_factor(true) && has_factor(false)) {
        return vec![("", all)];
    }
    let (writes, reads): (Vec<_>, Vec<_>) = all.into_iter().partition(is_write);
    let has_hashes = reads.iter().any(|row| row.rung.name.split(' ').any(|word| word == "hash"));
    vec![(WRITES, writes), (if has_hashes { READS_AND_HASHES } else { READS }, reads)]
}

/// The largest value on the scale of most; what is beyond has a scale of its own.
fn common_scale_end(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.filter(|value| value.is_finite() && *value > 0.0).collect();
    values.sort_by(f64::total_cmp);
    if values.len() < COMMON_MIN {
        return f64::MAX;
    }
    (values[(values.len() - 1) / 2] * MIDDLES_MAX).min(f64::MAX)
}

/// Rows that share a scale.
struct Panel<'a> {
    rows: &'a [Row<'a>],
    axis: Axis,
    /// Words above it; empty if one panel holds all rows.
    words: String,
}

impl<'a> Panel<'a> {
    fn of(rows: &'a [Row<'a>], left: f64) -> Self {
        let ends = rows.iter().flat_map(|row| {
            let others = row.others.map_or(0.0, |others| others.mib_per_s);
            [row.rung.low, row.rung.median, row.rung.high, others]
        });
        let axis = Axis::straight(ends.collect::<Vec<_>>().into_iter(), (left, RIGHT));
        Self { rows, axis, words: String::new() }
    }

    fn height(&self) -> f64 {
        let words = if self.words.is_empty() { 0.0 } else { WORDS };
        words + self.rows.iter().map(Row::height).sum::<f64>() + TICKS
    }
}

/// The panels of a ladder that is sorted: the few rungs that are far faster than most, if there
/// are such, and the others.
fn panels<'a>(rows: &'a [Row<'a>], left: f64) -> Vec<Panel<'a>> {
    let most = common_scale_end(rows.iter().map(|row| row.rung.median));
    let far = rows.iter().take_while(|row| row.rung.median > most).count();
    let (far, near) = rows.split_at(far);
    if far.is_empty() {
        return vec![Panel::of(near, left)];
    }
    let (mut far, mut near) = (Panel::of(far, left), Panel::of(near, left));
    let times = far.axis.high / near.axis.high;
    far.words = "far faster than the rest: a scale of their own".to_owned();
    let times = if times < 10.0 { format!("{times:.1}") } else { format!("{times:.0}") };
    near.words = format!("the rest: bars are drawn {times} times as long");
    vec![far, near]
}

/// The rungs of one folder and of memory, of one unit. The length of a bar is its figure: the
/// axes are straight and begin at zero.
pub fn ladder(title: &str, rungs: &[&Rung]) -> Chart {
    let rungs = sorted(rungs);
    let groups = groups(&rungs);
    let rows = || groups.iter().flat_map(|(_, rows)| rows);
    let is_ranked = groups.len() == 1;
    let ranks: Vec<_> = rows().map(|row| row.rank).collect();
    let rank_end = match is_ranked {
        true => (longest(&ranks) as f64 * COLUMN_CHARACTER + 4.0).max(38.0),
        false => 0.0,
    };
    let left = rank_end + TIE;
    let unit = rungs.first().map_or("", |rung| rung.unit.as_str());
    let has_factors = rows().any(|row| row.factor.is_some());
    let figures = if has_factors { RIGHT - FACTOR } else { RIGHT };
    let columns = Columns { is_ranked, rank_end, left, figures };
    let mut canvas = Canvas::default();
    if is_ranked {
        canvas.text(rank_end, 14.0, "soft end", "rank");
    }
    canvas.text(figures, 14.0, "soft end", &format!("median, {unit}"));
    if has_factors {
        canvas.text(RIGHT, 14.0, "soft end", "x disk");
    }
    let mut top = HEAD;
    for (words, rows) in &groups {
        if !words.is_empty() {
            canvas.text(4.0, top + 16.0, "strong", words);
            top += WORDS;
        }
        for panel in &panels(rows, left) {
            draw_panel(&mut canvas, panel, &columns, top);
            top += panel.height();
        }
    }
    let has_ties =
        groups.iter().any(|(_, rows)| rows.windows(2).any(|two| is_tied(&two[0], &two[1])));
    let rows: Vec<_> = rows().collect();
    let height = key(&mut canvas, (&rows, has_ties), top + 4.0);
    let description = description(&rows, unit);
    Chart { title: title.to_owned(), description, width: COLUMN, height, body: canvas.body }
}

/// Places of the columns from the left.
struct Columns {
    is_ranked: bool,
    rank_end: f64,
    left: f64,
    figures: f64,
}

fn draw_panel(canvas: &mut Canvas, panel: &Panel<'_>, columns: &Columns, mut top: f64) {
    let Panel { rows, axis, words } = panel;
    let bottom = top + panel.height() - TICKS;
    if !words.is_empty() {
        canvas.text(columns.left + 2.0, top + 16.0, "", words);
        top += WORDS;
    }
    for tick in axis.ticks() {
        canvas.line("grid", (axis.at(tick), top), (axis.at(tick), bottom));
        canvas.tick((axis.at(tick), bottom + 16.0), &figure(tick));
    }
    canvas.line("axis", (columns.left, top), (columns.left, bottom));
    for (place, row) in rows.iter().enumerate() {
        draw(canvas, axis, row, (columns, top));
        if rows.get(place + 1).is_some_and(|next| is_tied(row, next)) {
            let (x, from, down) = (columns.rank_end + 12.0, top + 12.0, row.height() - 4.0);
            canvas.path("tie", "", &format!("M{x:.1} {from:.1}h-5v{down:.1}h5"));
        }
        top += row.height();
    }
}

fn draw(canvas: &mut Canvas, axis: &Axis, row: &Row<'_>, (columns, top): (&Columns, f64)) {
    let Columns { is_ranked, rank_end, left, figures } = *columns;
    let (rung, base) = (row.rung, top + 15.0);
    let name = ((figures - FIGURE - left) / COLUMN_CHARACTER) as usize;
    if is_ranked {
        canvas.text(rank_end, base, "soft end", &row.rank.to_string());
    }
    canvas.text(left + 2.0, base, "rim", &clipped(&glossed(&rung.name), name));
    canvas.text(figures, base, "strong end rim", &figure(rung.median));
    if let Some(factor) = row.factor {
        canvas.text(RIGHT, base, "soft end rim", &disk_factor::words(factor));
    }
    bar(canvas, axis, row, top + NAME);
    if let Some(others) = row.others {
        let top = top + NAME + BAR;
        let words = clipped(&format!("founders: {}", others.what), name);
        canvas.text(left + 2.0, top + 15.0, "soft rim", &words);
        canvas.text(figures, top + 15.0, "soft end rim", &figure(others.mib_per_s));
        if row.factor.is_some() {
            let factor = disk_factor::words(others.times_disk());
            canvas.text(RIGHT, top + 15.0, "soft end rim", &factor);
        }
        let width = axis.length(others.mib_per_s).max(1.5);
        canvas.rect("reference", (axis.at(0.0), top + OTHERS), (width, OTHERS_BAR));
    }
}

fn bar(canvas: &mut Canvas, axis: &Axis, row: &Row<'_>, top: f64) {
    let area = ((axis.at(0.0), top), (axis.length(row.rung.median).max(0.5), BAR));
    canvas.rect(row.class(), area.0, area.1);
    if row.is_cached() {
        stripes(canvas, area.0, area.1);
    }
    let middle = top + BAR / 2.0;
    whisker(canvas, (axis.at(row.rung.low), axis.at(row.rung.high)), middle);
    for outlier in row.outliers().filter(|outlier| axis.holds(*outlier)) {
        canvas.circle("outlier", (axis.at(outlier), middle), 3.0);
    }
}

/// The meaning of the factors, by the kinds of rungs that have one.
fn disk_words(rows: &[&Row<'_>]) -> &'static str {
    let with_factor = || rows.iter().filter(|row| row.factor.is_some());
    let is_write = |row: &&&Row<'_>| disk_factor::is_write(&row.rung.name);
    match (with_factor().any(|row| is_write(&row)), with_factor().all(|row| is_write(&row))) {
        (_, true) => "times as fast as 'disk write durable'",
        (false, _) => "times as fast as 'disk read direct'",
        (true, false) => "times as fast as the disk, which is named above",
    }
}

/// Explains every mark that is in the picture, and returns the height below.
fn key(canvas: &mut Canvas, (rows, has_ties): (&[&Row<'_>], bool), top: f64) -> f64 {
    let has = |of: fn(&Row<'_>) -> bool| rows.iter().any(|row| of(row));
    let has_others = has(|row| row.others.is_some());
    let interval = interval_words::meaning(rows.iter().map(|row| row.rung.runs));
    let entries = [
        (has(|row| row.rung.target == MEMORY), Glyph::Bar("bar"), "memory"),
        (
            has(|row| row.rung.target != MEMORY && !row.is_cached()),
            Glyph::Bar("second"),
            "this disk",
        ),
        (has(|row| row.is_cached()), Glyph::Striped("second"), "files of the disk in memory"),
        (!rows.is_empty(), Glyph::Whisker, interval.as_str()),
        (
            has(|row| row.outliers().next().is_some()),
            Glyph::Circle("outlier"),
            "one run far from the others",
        ),
        (has_ties, Glyph::Bracket, "which of both is faster is not sure"),
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
        let theirs = if has_others { "; the founders' beside their SSD" } else { "" };
        bottom = note(canvas, bottom, &format!("x disk: {}{theirs}.", disk_words(rows)));
    }
    bottom + 6.0
}

fn description(rows: &[&Row<'_>], unit: &str) -> String {
    let rows = rows.iter().map(|row| {
        let rung = row.rung;
        let [median, low, high] = [rung.median, rung.low, rung.high].map(figure);
        let mut words = vec![format!("{low} to {high}")];
        words.extend(row.factor.map(|factor| format!("{} disk", disk_factor::words(factor))));
        words.extend(row.rank.is_shared().then(|| "not ranked against its neighbours".to_owned()));
        words.extend(
            row.others.map(|others| {
                format!("the founders' {}: {}", others.what, figure(others.mib_per_s))
            }),
        );
        format!("{} {median} {unit} ({})", rung.name, words.join(", "))
    });
    format!("Medians with their intervals: {}.", rows.collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_far_values_have_a_scale_of_their_own_and_none_else() {
        let ladder = [105_277.0, 28_553.0, 14_695.0, 4_706.0, 3_509.0, 2_966.0, 2_847.0, 1_213.0];
        let end = common_scale_end(ladder.into_iter());
        assert_eq!(ladder.iter().filter(|value| **value > end).count(), 3, "{end}");
        for all in [&[5.0, 1.0][..], &[9.0], &[], &[f64::NAN, 0.0], &[3.0, 3.0, 90.0]] {
            let end = common_scale_end(all.iter().copied());
            assert!(all.iter().all(|value| value.is_nan() || *value <= end), "{all:?}: {end}");
        }
    }
}
