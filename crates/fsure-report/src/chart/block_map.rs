//! The map of a damaged file: a square for each of its blocks, or for so many of them that a
//! file of any size fits. A square of which any byte is bad is bad, so merging hides nothing.

use super::Chart;
use super::svg::{Canvas, WIDTH};
use fsure_core::units::{MIB, size};

/// Squares in a row.
const COLUMNS: usize = 64;
/// Squares of the largest map.
const SQUARES_MAX: u64 = 1024;
const STEP: f64 = 11.6;
const SQUARE: f64 = 10.0;
const LEFT: f64 = 8.0;
const TOP: f64 = 30.0;

/// State of the bytes that a square stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Square {
    Good,
    Damaged,
    Unreadable,
}

/// Damage of a file, in squares.
#[derive(Clone, Debug, PartialEq)]
pub struct DamageMap {
    file_bytes: u64,
    square_bytes: u64,
    squares: Vec<Square>,
    damaged_bytes: u64,
    unreadable_bytes: u64,
    /// The first bad byte and the one behind the last.
    span: (u64, u64),
}

impl DamageMap {
    /// The map of a file; `None` if nothing is bad, or if the file is one block, of which a
    /// map says nothing.
    pub fn of(file_bytes: u64, damaged: &[[u64; 2]], unreadable: &[[u64; 2]]) -> Option<Self> {
        let all = || damaged.iter().chain(unreadable).filter(|[from, to]| from < to);
        let (first, last) = (all().map(|one| one[0]).min()?, all().map(|one| one[1]).max()?);
        let file_bytes = file_bytes.max(last);
        if file_bytes <= MIB {
            return None;
        }
        let square_bytes = file_bytes.div_ceil(SQUARES_MAX).max(MIB).next_power_of_two();
        let count = usize::try_from(file_bytes.div_ceil(square_bytes)).ok()?;
        let mut squares = vec![Square::Good; count];
        for (ranges, state) in [(damaged, Square::Damaged), (unreadable, Square::Unreadable)] {
            for [from, to] in ranges.iter().filter(|[from, to]| from < to) {
                let (from, to) = (from / square_bytes, (to - 1) / square_bytes);
                let place = |square: u64| usize::try_from(square).unwrap_or(count - 1);
                squares[place(from)..=place(to)].fill(state);
            }
        }
        let bytes = |ranges: &[[u64; 2]]| {
            ranges
                .iter()
                .fold(0_u64, |sum, [from, to]| sum.saturating_add(to.saturating_sub(*from)))
        };
        Some(Self {
            file_bytes,
            square_bytes,
            squares,
            damaged_bytes: bytes(damaged),
            unreadable_bytes: bytes(unreadable),
            span: (first, last),
        })
    }

    /// The map in words.
    pub fn words(&self) -> String {
        let parts = [(self.damaged_bytes, "damaged"), (self.unreadable_bytes, "unreadable")];
        let parts = parts.iter().filter(|(bytes, _)| *bytes > 0);
        let parts: Vec<_> = parts.map(|(bytes, what)| format!("{} {what}", size(*bytes))).collect();
        let bad = self.squares.iter().filter(|square| **square != Square::Good).count();
        let (first, last) = self.span;
        format!(
            "{} of {}, between byte {first} and byte {last}; {bad} of {} squares of {} each have \
             a bad byte",
            parts.join(" and "),
            size(self.file_bytes),
            self.squares.len(),
            size(self.square_bytes)
        )
    }
}

/// The map as a chart.
pub fn block_map(title: &str, map: &DamageMap) -> Chart {
    let mut canvas = Canvas::default();
    legend(&mut canvas, map);
    for (state, class) in
        [(Square::Good, "sound"), (Square::Damaged, "damaged"), (Square::Unreadable, "unread")]
    {
        for (from, to) in runs(&map.squares, state) {
            run(&mut canvas, class, from, to);
        }
    }
    let rows = map.squares.len().div_ceil(COLUMNS);
    Chart {
        title: title.to_owned(),
        description: format!("{}.", map.words()),
        width: WIDTH,
        height: TOP + rows as f64 * STEP + 8.0,
        body: canvas.body,
    }
}

fn legend(canvas: &mut Canvas, map: &DamageMap) {
    let each = format!("a square is {}", size(map.square_bytes));
    let mut x = LEFT;
    for (class, words) in
        [("sound", "good"), ("damaged", "damaged"), ("unread", "unreadable"), ("", each.as_str())]
    {
        if !class.is_empty() {
            square(canvas, class, (x, 8.0));
            x += 16.0;
        }
        canvas.text(x, 17.0, "soft", words);
        x += words.len() as f64 * 7.0 + 20.0;
    }
}

/// Runs of squares of one state within a row: from the first up to, not including, the last.
fn runs(squares: &[Square], state: Square) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    let places = squares.iter().enumerate().filter(|(_, square)| **square == state);
    for (place, _) in places {
        match runs.last_mut() {
            Some((_, end)) if *end == place && place % COLUMNS != 0 => *end = place + 1,
            _ => runs.push((place, place + 1)),
        }
    }
    runs
}

/// Draws good squares as one bar, so that a large file is not a thousand shapes; bad ones one
/// by one.
fn run(canvas: &mut Canvas, class: &str, from: usize, to: usize) {
    let at = |place: usize| {
        let (row, column) = (place / COLUMNS, place % COLUMNS);
        (LEFT + column as f64 * STEP, TOP + row as f64 * STEP)
    };
    if class == "sound" {
        let width = (to - from) as f64 * STEP - (STEP - SQUARE);
        canvas.rect(class, at(from), (width, SQUARE));
        return;
    }
    (from..to).for_each(|place| square(canvas, class, at(place)));
}

/// A square: damage is filled, what cannot be read is crossed out, and both can be told apart
/// without colours.
fn square(canvas: &mut Canvas, class: &str, (x, y): (f64, f64)) {
    canvas.rect(class, (x, y), (SQUARE, SQUARE));
    if class == "unread" {
        let (right, bottom) = (x + SQUARE, y + SQUARE);
        canvas.path(
            "cross",
            "",
            &format!("M{x:.1} {y:.1}L{right:.1} {bottom:.1}M{right:.1} {y:.1}L{x:.1} {bottom:.1}"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_file_of_any_size_fits_and_no_damage_is_merged_away() {
        for bytes in [2 * MIB, 100 * MIB, 700 * GIB, 1 << 60] {
            let last = [bytes - 1, bytes];
            let map = DamageMap::of(bytes, &[[0, 1], last], &[]).expect("damage");
            assert!(map.squares.len() as u64 <= SQUARES_MAX, "{bytes}");
            assert_eq!(map.squares[0], Square::Damaged);
            assert_eq!(map.squares.last(), Some(&Square::Damaged));
            assert!(block_map("t", &map).alone().matches("class=\"damaged\"").count() == 3);
        }
    }

    #[test]
    fn unreadable_wins_and_is_told_apart_without_colours() {
        let map = DamageMap::of(4 * MIB, &[[0, 2 * MIB]], &[[MIB, 2 * MIB]]).expect("damage");
        assert_eq!(map.squares, [Square::Damaged, Square::Unreadable, Square::Good, Square::Good]);
        assert!(block_map("t", &map).alone().contains("class=\"cross\""));
        assert!(map.words().contains("2 of 4 squares"), "{}", map.words());
    }

    #[test]
    fn what_has_no_map_has_none() {
        assert_eq!(DamageMap::of(5 * MIB, &[], &[]), None);
        assert_eq!(DamageMap::of(10, &[[0, 10]], &[]), None);
        assert_eq!(DamageMap::of(5 * MIB, &[[9, 9]], &[]), None);
        let beyond = DamageMap::of(0, &[[0, 3 * MIB]], &[]).expect("size not known");
        assert_eq!(beyond.squares.len(), 3);
    }
}
