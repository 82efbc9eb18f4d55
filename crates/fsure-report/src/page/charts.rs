//! Keeps the charts of a page, each with a number of its own, as identifiers must have.

use minijinja::value::Value;

use super::pieces::{Figure, Piece};
use crate::chart::Chart;

/// Characters of the words in a file name.
const SLUG_MAX: usize = 60;

/// The charts so far.
#[derive(Default)]
pub(super) struct Charts(Vec<(String, String)>);

impl Charts {
    /// Keeps the chart as a file called after what it shows, and gives it for the page with a
    /// sentence below it.
    pub(super) fn add(&mut self, chart: &Chart, caption: &str) -> Piece {
        let number = self.0.len() + 1;
        let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let words = chart.title.chars().map(letter).collect::<String>();
        let mut slug = String::new();
        for word in words.split('-').filter(|word| !word.is_empty()) {
            if slug.is_empty() {
                slug.extend(word.chars().take(SLUG_MAX));
            } else if slug.len() + word.len() < SLUG_MAX {
                slug = format!("{slug}-{word}");
            } else {
                break;
            }
        }
        self.0.push((format!("{number:02}-{slug}.svg"), chart.alone()));
        let svg = Value::from_safe_string(chart.inline(&format!("chart{number}")));
        Piece::Figure(Figure { title: chart.title.clone(), svg, caption: caption.to_owned() })
    }

    /// Names and contents of the files.
    pub(super) fn into_files(self) -> Vec<(String, String)> {
        self.0
    }
}
