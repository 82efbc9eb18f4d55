//! Keeps the charts of a page, each with a number of its own, as identifiers must have.

use minijinja::value::Value;

use super::pieces::{Figure, Piece};
use crate::chart::Chart;

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
        let words: Vec<_> = words.split('-').filter(|word| !word.is_empty()).collect();
        let slug = words.join("-").chars().take(60).collect::<String>();
        self.0.push((format!("{number:02}-{slug}.svg"), chart.alone()));
        let svg = Value::from_safe_string(chart.inline(&format!("chart{number}")));
        Piece::Figure(Figure { title: chart.title.clone(), svg, caption: caption.to_owned() })
    }

    /// Names and contents of the files.
    pub(super) fn into_files(self) -> Vec<(String, String)> {
        self.0
    }
}
