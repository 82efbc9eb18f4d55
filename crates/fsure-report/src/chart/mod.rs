//! Charts as text: SVG written by hand, since a bar with a whisker is a few
//! lines and a library for it many thousands. Each is a pure function of what
//! was stored, says in words what it shows, can be read without colours, and
//! serves as a part of the page and as a file of its own.

mod axis;
mod bars;
mod block_map;
mod cache;
mod comparison;
mod curve;
mod cut_conditions;
mod cut_run;
mod cut_tally;
mod cuts;
mod folders;
mod ladder;
mod latency;
mod legend;
mod number_format;
mod plot;
mod rate;
mod ratios;
mod requests;
mod svg;
mod time_axis;
mod timeline;
mod treemap;

pub use bars::{Amount, amounts};
pub use block_map::{DamageMap, block_map};
pub use cache::{CacheCourse, RateBar, RatePair, beside_reference, cache_course};
pub use comparison::{Bar, Mark, comparison};
pub use curve::{CurveLine, curves};
pub use cut_run::{CutCell, CutRun, CutState};
pub use cuts::{are_equally_fast, cuts};
pub use folders::{FolderBars, folders};
pub use ladder::{ladder, sorted};
pub use latency::latency;
pub use number_format::{figure, microseconds, whole_size};
pub use plot::{TimeLine, over_time, throughput};
pub use rate::{area, sustained};
pub use ratios::{RatioBar, RatioClass, RatioGroup, ratios};
pub use requests::requests;
pub use timeline::{Moment, timeline};
pub use treemap::{TreemapClass, TreemapItem, treemap};
pub use waits::Waits;
pub(crate) use ways::distinct;
pub use ways::{Measure, WayPanel, WayRow, WayScale, ways};

use svg::{COLUMN, Canvas, character, escaped, wrapped};

/// Colours as variables, for light and dark.
pub const COLORS: &str = include_str!("colors.css");

/// Styles of the classes in a chart.
pub const STYLE: &str = include_str!("chart.css");

/// Text at the beginning of every file that is written for a report, so that the next
/// report can replace the file.
pub const MADE_HERE: &str = "<!-- made by fsure report -->";

/// Height of a line of the title, and room below the last one, in pixels.
const TITLE_LINE: f64 = 18.0;
const BELOW_TITLE: f64 = 8.0;
/// Characters of bold text that take the room of so many plain ones.
const BOLD: f64 = 1.1;

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Heading of the chart.
    pub title: String,
    /// Description of the chart in a sentence or two, with the figures that matter.
    pub description: String,
    width: f64,
    height: f64,
    body: String,
}

impl Chart {
    /// As a part of a page, in which `id` is used by nothing else.
    pub fn inline(&self, id: &str) -> String {
        let (title, description) = (escaped(&self.title), escaped(&self.description));
        let (above, body) = self.titled();
        format!(
            "<svg class=\"{}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\" {}>\
             <title id=\"{id}-t\">{title}</title><desc id=\"{id}-d\">{description}</desc>{body}</svg>",
            self.class(),
            self.size(above),
        )
    }

    /// As a file.
    pub fn alone(&self) -> String {
        let (title, description) = (escaped(&self.title), escaped(&self.description));
        let (above, body) = self.titled();
        format!(
            "{MADE_HERE}\n<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{}\" role=\"img\" \
             aria-labelledby=\"t d\" {}>\n<title id=\"t\">{title}</title>\n\
             <desc id=\"d\">{description}</desc>\n<style>\n{COLORS}{STYLE}\
             svg {{ background: var(--paper); max-width: 100%; height: auto; }}\n</style>\n{body}</svg>\n",
            self.class(),
            self.size(above),
        )
    }

    /// The same with a line below the title, such as the machine of which the figures are.
    pub fn with_subtitle(&self, subtitle: &str) -> Self {
        let (above, body) = self.below(subtitle, "soft", character(self.width), 6.0);
        let description = format!("{subtitle}. {}", self.description);
        Self { height: self.height + above, body, description, ..self.clone() }
    }

    /// Its style: a narrow one is shown whole on a telephone, and a wide one can be scrolled.
    fn class(&self) -> &'static str {
        if self.width <= COLUMN { "chart column" } else { "chart" }
    }

    /// The chart below its title, and the height of that.
    fn titled(&self) -> (f64, String) {
        self.below(&self.title, "strong", character(self.width) * BOLD, 3.0)
    }

    /// The chart below lines of text, and their height. The text has characters of this width, and
    /// baselines so far above the ends of the lines.
    fn below(&self, text: &str, class: &str, character: f64, baseline: f64) -> (f64, String) {
        let mut canvas = Canvas::default();
        let lines = wrapped(text, ((self.width - 8.0) / character) as usize);
        for (place, line) in lines.iter().enumerate() {
            canvas.text(4.0, (place as f64 + 1.0) * TITLE_LINE - baseline, class, line);
        }
        let above = lines.len() as f64 * TITLE_LINE + BELOW_TITLE;
        let shifted = format!("<g transform=\"translate(0 {above})\">\n");
        (above, format!("{}{shifted}{}</g>\n", canvas.body, self.body))
    }

    /// The size of the paper, with so much room above the chart.
    fn size(&self, above: f64) -> String {
        let (width, height) = (self.width, self.height + above);
        format!(
            "viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\""
        )
    }
}

#[cfg(test)]
mod tests;
mod waits;
mod ways;
