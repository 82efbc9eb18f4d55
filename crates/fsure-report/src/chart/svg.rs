//! The few shapes that the charts are made of. All text comes through
//! [`escaped`], so a name can be neither markup nor change the direction of
//! what stands beside it.

use std::fmt::Write as _;

use fsure_core::safe;

/// Width of a chart. Text is set in 12 px, so that it can be read where the
/// chart is shown as large as it is.
pub(super) const WIDTH: f64 = 760.0;

/// The mean width of a character of the text, in a narrow guess upwards.
pub(super) const CHARACTER: f64 = 6.6;

/// Room between the last value below an axis and the edge of the paper.
const TICK_MARGIN: f64 = 4.0;

/// Width of a chart that fits a telephone: there it is shown at two thirds of its size, and its
/// text is set in 14 px, so that it can be read still.
pub(super) const COLUMN: f64 = 520.0;

/// The same as [`CHARACTER`], in such a chart.
pub(super) const COLUMN_CHARACTER: f64 = 7.7;

/// Mean width of a character of the text in a chart of this width.
pub(super) fn character(width: f64) -> f64 {
    if width <= COLUMN { COLUMN_CHARACTER } else { CHARACTER }
}

/// Text as it may stand in an element or between quotes.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in safe(text).chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#x27;"),
            // Two code points that XML 1.0 does not know.
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            character => escaped.push(character),
        }
    }
    escaped
}

/// At most so many characters, with an ellipsis for the rest.
pub(super) fn clipped(text: &str, characters_max: usize) -> String {
    let text = safe(text);
    if text.chars().count() <= characters_max {
        return text;
    }
    text.chars().take(characters_max.saturating_sub(1)).chain(['…']).collect()
}

/// Text in lines of at most so many characters. A longer word is clipped.
pub(super) fn wrapped(text: &str, characters_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in safe(text).split_whitespace() {
        let length = word.chars().count();
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + length <= characters_max => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(clipped(word, characters_max)),
        }
    }
    lines
}

/// The inside of a chart.
#[derive(Default)]
pub(super) struct Canvas {
    pub(super) body: String,
}

impl Canvas {
    /// Text whose baseline begins, or ends (class `end`), there.
    pub(super) fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let text = escaped(text);
        let _ = write!(self.body, "<text x=\"{x:.1}\" y=\"{y:.1}\"");
        if !class.is_empty() {
            let _ = write!(self.body, " class=\"{class}\"");
        }
        let _ = writeln!(self.body, ">{text}</text>");
    }

    /// A value below its place on the axis of a narrow chart, moved where it would leave the paper.
    pub(super) fn tick(&mut self, (x, y): (f64, f64), words: &str) {
        let half = words.chars().count() as f64 * COLUMN_CHARACTER / 2.0;
        let x = x.min(COLUMN - half - TICK_MARGIN).max(half);
        self.text(x, y, "soft mid", words);
    }

    /// Text that can be read on any area: it has a rim in the colour of the paper.
    pub(super) fn label(&mut self, (x, y): (f64, f64), text: &str) {
        let text = escaped(text);
        let _ = writeln!(self.body, "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"rim\">{text}</text>");
    }

    /// A straight line.
    pub(super) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let _ = writeln!(
            self.body,
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        );
    }

    /// A rectangle.
    pub(super) fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        let _ = writeln!(
            self.body,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\"/>"
        );
    }

    /// A path; what to draw in the language of SVG.
    pub(super) fn path(&mut self, class: &str, dashes: &str, path: &str) {
        let _ = write!(self.body, "<path class=\"{class}\"");
        if !dashes.is_empty() {
            let _ = write!(self.body, " stroke-dasharray=\"{dashes}\"");
        }
        let _ = writeln!(self.body, " d=\"{path}\"/>");
    }

    /// A small circle.
    pub(super) fn circle(&mut self, class: &str, (x, y): (f64, f64), radius: f64) {
        let _ = writeln!(
            self.body,
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\"/>"
        );
    }
}
