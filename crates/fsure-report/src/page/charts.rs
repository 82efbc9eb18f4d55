//! Keeps the charts of a page, each with a number of its own, as identifiers must have.

use minijinja::value::Value;

use super::pieces::{Figure, Piece};
use crate::chart::Chart;

/// Characters of the words in a file name.
const SLUG_MAX: usize = 60;

/// The charts so far.
#[derive(Default)]
pub(super) struct Charts {
    files: Vec<(String, String)>,
    subtitle: Option<String>,
}

impl Charts {
    /// Keeps the chart as a file called after what it shows, and gives it for the page with a
    /// sentence below it.
    pub(super) fn add(&mut self, chart: &Chart, caption: &str) -> Piece {
        let titled = self.subtitle.as_ref().map(|subtitle| chart.with_subtitle(subtitle));
        let chart = titled.as_ref().unwrap_or(chart);
        let number = self.files.len() + 1;
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
        self.files.push((format!("{number:02}-{slug}.svg"), chart.alone()));
        let svg = Value::from_safe_string(chart.inline(&format!("chart{number}")));
        Piece::Figure(Figure { title: chart.title.clone(), svg, caption: caption.to_owned() })
    }

    /// Keeps one chart with a line below its title.
    pub(super) fn add_with_subtitle(&mut self, chart: &Chart, subtitle: Option<String>) -> Piece {
        self.set_subtitle(subtitle);
        let piece = self.add(chart, "");
        self.set_subtitle(None);
        piece
    }

    /// Sets the line below the titles of the charts that come.
    pub(super) fn set_subtitle(&mut self, subtitle: Option<String>) {
        self.subtitle = subtitle;
    }

    /// Names and contents of the files.
    pub(super) fn into_files(self) -> Vec<(String, String)> {
        self.files
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Amount, amounts};

    #[test]
    fn a_subtitle_is_of_the_charts_between() {
        let bars = [Amount { label: "a".to_owned(), value: 1, words: "1".to_owned() }];
        let chart = amounts("How much?", &bars);
        let mut charts = Charts::default();
        for subtitle in [None, Some("On a desk".to_owned()), None] {
            charts.set_subtitle(subtitle);
            charts.add(&chart, "");
        }
        let drawn =
            charts.into_files().into_iter().map(|(_, svg)| svg.matches("On a desk").count());
        assert_eq!(drawn.collect::<Vec<_>>(), [0, 2, 0], "drawn, and in the description");
    }
}
