//! Parts of a whole as bars with their figures beside them: how long ago data
//! was verified, and which way it was read.

use super::Chart;
use super::svg::{CHARACTER, Canvas, WIDTH, clipped};

const ROW: f64 = 24.0;
const BAR: f64 = 12.0;
const TOP: f64 = 8.0;

/// One bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Amount {
    /// Name of the part of the whole.
    pub label: String,
    /// Amount, which determines the length of the bar.
    pub value: u64,
    /// The amount in words.
    pub words: String,
}

/// Bars whose sum is the whole.
pub fn amounts(title: &str, amounts: &[Amount]) -> Chart {
    let longest = amounts.iter().map(|amount| amount.label.chars().count()).max().unwrap_or(0);
    let label = (longest as f64 * CHARACTER + 12.0).clamp(80.0, 300.0);
    let characters_max = ((label - 12.0) / CHARACTER).round() as usize;
    let widest = amounts.iter().map(|amount| amount.words.chars().count()).max().unwrap_or(0);
    let width_max = (WIDTH - label - 20.0 - widest as f64 * CHARACTER).max(100.0);
    let largest = amounts.iter().map(|amount| amount.value).max().unwrap_or(0).max(1);
    let bottom = TOP + amounts.len() as f64 * ROW;
    let mut canvas = Canvas::default();
    for (place, amount) in amounts.iter().enumerate() {
        let middle = TOP + (place as f64 + 0.5) * ROW;
        canvas.text(label - 8.0, middle + 4.0, "end", &clipped(&amount.label, characters_max));
        let mut width = amount.value as f64 / largest as f64 * width_max;
        if amount.value > 0 {
            width = width.max(1.5);
            canvas.rect("bar", (label, middle - BAR / 2.0), (width, BAR));
        }
        let class = if amount.value > 0 { "" } else { "soft" };
        canvas.text(label + width + 8.0, middle + 4.0, class, &amount.words);
    }
    canvas.line("axis", (label, TOP), (label, bottom));
    let rows = amounts.iter().map(|amount| format!("{}: {}", amount.label, amount.words));
    Chart {
        title: title.to_owned(),
        description: format!("{}.", rows.collect::<Vec<_>>().join("; ")),
        width: WIDTH,
        height: bottom + 8.0,
        body: canvas.body,
    }
}
