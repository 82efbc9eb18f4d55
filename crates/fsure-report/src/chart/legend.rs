//! The key of a chart: a small picture of each mark with its meaning, in as many rows as it
//! takes, and notes below it. Whatever a chart draws is explained in the chart.

use super::svg::{COLUMN, COLUMN_CHARACTER, Canvas, wrapped};

/// Height of a row.
const ROW: f64 = 20.0;
/// Between two entries, and between a mark and its meaning.
const GAP: f64 = 18.0;
const MARK: f64 = 24.0;
const LEFT: f64 = 8.0;

/// A mark of a chart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Glyph<'a> {
    /// A bar of a class.
    Bar(&'a str),
    /// A bar of a class with stripes.
    Striped(&'a str),
    /// The interval of a figure.
    Whisker,
    /// A circle of a class.
    Circle(&'a str),
    /// A bracket at the side of two rows.
    Bracket,
    /// A line of a class, with its dashes.
    Line(&'a str, &'a str),
    /// An upright line of a class, with its dashes.
    Upright(&'a str, &'a str),
    /// An upright interval with its ends.
    Interval,
    /// A diamond.
    Diamond,
}

/// Draws the entries from a height on, and returns the height below them.
pub(super) fn legend(canvas: &mut Canvas, top: f64, entries: &[(Glyph<'_>, &str)]) -> f64 {
    let (mut x, mut y) = (LEFT, top);
    for (glyph, words) in entries {
        let room = (COLUMN - LEFT - MARK - 4.0) / COLUMN_CHARACTER;
        let lines = wrapped(words, room as usize);
        let longest = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
        let width = MARK + longest as f64 * COLUMN_CHARACTER;
        if x > LEFT && x + width > COLUMN {
            (x, y) = (LEFT, y + ROW);
        }
        glyph.draw(canvas, (x, y + ROW / 2.0));
        for (place, line) in lines.iter().enumerate() {
            if place > 0 {
                y += ROW;
            }
            canvas.text(x + MARK, y + ROW / 2.0 + 5.0, "soft", line);
        }
        x += width + GAP;
        if lines.len() > 1 {
            (x, y) = (LEFT, y + ROW);
        }
    }
    if x > LEFT { y + ROW } else { y }
}

/// Writes sentences over the width of a chart from a height on, and returns the height below.
pub(super) fn note(canvas: &mut Canvas, top: f64, words: &str) -> f64 {
    let lines = wrapped(words, ((COLUMN - 2.0 * LEFT) / COLUMN_CHARACTER) as usize);
    for (place, line) in lines.iter().enumerate() {
        canvas.text(LEFT, top + (place as f64 + 0.5) * ROW + 5.0, "soft", line);
    }
    top + lines.len() as f64 * ROW
}

impl Glyph<'_> {
    /// Draws the mark in the room of an entry, whose left end and middle are given.
    fn draw(self, canvas: &mut Canvas, (x, middle): (f64, f64)) {
        let (width, height) = (18.0, 11.0);
        let top = middle - height / 2.0;
        match self {
            Self::Bar(class) => canvas.rect(class, (x, top), (width, height)),
            Self::Striped(class) => {
                canvas.rect(class, (x, top), (width, height));
                stripes(canvas, (x, top), (width, height));
            }
            Self::Whisker => whisker(canvas, (x, x + width - 2.0), middle),
            Self::Circle(class) => canvas.circle(class, (x + width / 2.0, middle), 4.0),
            Self::Bracket => {
                let path = format!("M{:.1} {:.1}h-6v{height:.1}h6", x + 12.0, top);
                canvas.path("tie", "", &path);
            }
            Self::Line(class, dashes) => {
                canvas.path(class, dashes, &format!("M{x:.1} {middle:.1}h{width:.1}"));
            }
            Self::Upright(class, dashes) => {
                let at = x + width / 2.0;
                canvas.path(class, dashes, &format!("M{at:.1} {:.1}v16", middle - 8.0));
            }
            Self::Interval => {
                let (x, ends) = (x + width / 2.0, [middle - 7.0, middle + 7.0]);
                canvas.path("whisker", "", &upright_interval(x, ends));
            }
            Self::Diamond => diamond(canvas, (x + width / 2.0, middle)),
        }
    }
}

/// Width of the ends of an upright interval.
const INTERVAL_END: f64 = 10.0;

/// An upright interval with its ends, as a path of SVG.
pub(super) fn upright_interval(x: f64, [top, bottom]: [f64; 2]) -> String {
    let left = x - INTERVAL_END / 2.0;
    let end = |y: f64| format!("M{left:.1} {y:.1}h{INTERVAL_END}");
    format!("{}{}M{x:.1} {bottom:.1}V{top:.1}", end(bottom), end(top))
}

/// A diamond around a place.
pub(super) fn diamond(canvas: &mut Canvas, (x, y): (f64, f64)) {
    canvas.path("peak", "", &format!("M{:.1} {y:.1}l5 -5l5 5l-5 5Z", x - 5.0));
}

/// The interval of a figure, on paper first: the half of it inside a bar could not be seen.
pub(super) fn whisker(canvas: &mut Canvas, (low, high): (f64, f64), middle: f64) {
    let path = interval(low, high, middle);
    canvas.path("halo", "", &path);
    canvas.path("whisker", "", &path);
}

/// An interval as a path of SVG.
pub(super) fn interval(low: f64, high: f64, middle: f64) -> String {
    let top = middle - 4.0;
    format!("M{low:.1} {top:.1}v8M{low:.1} {middle:.1}H{high:.1}M{high:.1} {top:.1}v8")
}

/// Stripes over a bar, for who sees no colours.
pub(super) fn stripes(canvas: &mut Canvas, (x, y): (f64, f64), (width, height): (f64, f64)) {
    const STEP: f64 = 7.0;
    let mut path = String::new();
    let mut from = x + STEP / 2.0;
    while from < x + width {
        let run = height.min(x + width - from);
        path += &format!("M{from:.1} {:.1}l{run:.1} -{run:.1}", y + height);
        from += STEP;
    }
    if !path.is_empty() {
        canvas.path("stripe", "", &path);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_no_overlap, text_places};
    use super::*;

    #[test]
    fn a_key_stays_on_the_paper_and_nothing_overlaps() {
        let long = "a meaning that takes more than a line of the chart, and therefore has to be \
                    broken into two of them, as everything that is long";
        let entries = [(Glyph::Bar("bar"), "short"), (Glyph::Whisker, long), (Glyph::Diamond, "x")];
        let mut canvas = Canvas::default();
        let bottom = legend(&mut canvas, 0.0, &entries);
        let places = text_places(&canvas.body, COLUMN_CHARACTER);
        assert_eq!(places.len(), 5, "{places:?}");
        assert!(places.iter().all(|text| text.right <= COLUMN && text.y < bottom), "{places:?}");
        assert_no_overlap(&canvas.body, COLUMN_CHARACTER);
    }
}
