//! Charts as text: SVG written by hand, since a bar with a whisker is a few
//! lines and a library for it many thousands. Each is a pure function of what
//! was stored, says in words what it shows, can be read without colours, and
//! serves as a part of the page and as a file of its own.

mod axis;
mod bars;
mod block_map;
mod cache;
mod comparison;
mod ladder;
mod latency;
mod number_format;
mod plot;
mod rate;
mod requests;
mod svg;
mod timeline;
mod treemap;

pub use bars::{Amount, amounts};
pub use block_map::{DamageMap, block_map};
pub use cache::{CacheCourse, RateBar, RatePair, cache_course, potential_and_actual};
pub use comparison::{Bar, Mark, comparison};
pub use ladder::{ladder, sorted};
pub use latency::latency;
pub use number_format::{figure, microseconds};
pub use plot::{TimeLine, curve, over_time, throughput};
pub use rate::{area, sustained};
pub use requests::requests;
pub use timeline::{Moment, timeline};
pub use treemap::{TreemapClass, TreemapItem, treemap};

use svg::{CHARACTER, Canvas, clipped, escaped};

/// Colours as variables, for light and dark.
pub const COLORS: &str = include_str!("colors.css");

/// Styles of the classes in a chart.
pub const STYLE: &str = include_str!("chart.css");

/// Text at the beginning of every file that is written for a report, so that the next
/// report can replace the file.
pub const MADE_HERE: &str = "<!-- made by fsure report -->";

/// Room for the title above a chart in a file of its own, in pixels.
const TITLE_HEIGHT: f64 = 26.0;

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
        format!(
            "<svg class=\"chart\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\" {}>\
             <title id=\"{id}-t\">{title}</title><desc id=\"{id}-d\">{description}</desc>{}</svg>",
            self.size(0.0),
            self.body
        )
    }

    /// As a file, with its title above it: on a page the heading says it.
    pub fn alone(&self) -> String {
        let (title, description) = (escaped(&self.title), escaped(&self.description));
        let (size, body) = match self.body.contains(&format!(">{title}</text>")) {
            true => (self.size(0.0), self.body.clone()),
            false => {
                let mut canvas = Canvas::default();
                let characters = (self.width / CHARACTER) as usize;
                canvas.text(4.0, 16.0, "strong", &clipped(&self.title, characters));
                let shifted = format!("<g transform=\"translate(0 {TITLE_HEIGHT})\">\n");
                (self.size(TITLE_HEIGHT), format!("{}{shifted}{}</g>\n", canvas.body, self.body))
            }
        };
        format!(
            "{MADE_HERE}\n<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\" \
             aria-labelledby=\"t d\" {size}>\n<title id=\"t\">{title}</title>\n\
             <desc id=\"d\">{description}</desc>\n<style>\n{COLORS}{STYLE}\
             svg {{ background: var(--paper); }}\n</style>\n{body}</svg>\n"
        )
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
