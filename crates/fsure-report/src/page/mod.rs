//! Stored results as one page that needs nothing else: no network, and no
//! script to be read. The policy in its head names the hashes of its own style
//! and script, so that nothing else would run even if it came in. Every text
//! goes through one formatter, which escapes what would be obeyed by a reader's
//! eye (direction marks) before what would be obeyed by a browser.

mod measure_section;
mod verify_section;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, escape_formatter};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::chart::{COLORS, Chart, MADE_HERE, STYLE};
use crate::ResultContent;
use crate::rank::MEANING;
use fsure_core::safe;

const TEMPLATE: &str = include_str!("page.html");
const LAYOUT: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// A result, and the name of the file that holds it.
#[derive(Clone, Debug)]
pub struct Named {
    /// The file, as text.
    pub file: String,
    /// Content of the file.
    pub content: ResultContent,
}

/// A page and its charts.
#[derive(Clone, Debug)]
pub struct Report {
    /// The page.
    pub html: String,
    /// File names and contents of the charts.
    pub charts: Vec<(String, String)>,
}

/// Data of a result for the template.
#[derive(Serialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
enum Section {
    Measured(Box<measure_section::Measured>),
    Checked(Box<verify_section::Checked>),
}

/// A chart in its place on the page.
#[derive(Serialize)]
struct Figure {
    title: String,
    svg: Value,
}

/// The charts so far. Each has a number of its own, as identifiers must.
#[derive(Default)]
struct Charts(Vec<(String, String)>);

impl Charts {
    /// Keeps the chart as a file called after what it shows, and gives it for
    /// the page.
    fn add(&mut self, chart: &Chart) -> Figure {
        let number = self.0.len() + 1;
        let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let words = chart.title.chars().map(letter).collect::<String>();
        let words: Vec<_> = words.split('-').filter(|word| !word.is_empty()).collect();
        let slug = words.join("-").chars().take(60).collect::<String>();
        self.0.push((format!("{number:02}-{slug}.svg"), chart.alone()));
        let svg = Value::from_safe_string(chart.inline(&format!("chart{number}")));
        Figure { title: chart.title.clone(), svg }
    }
}

/// The page of these results, in their order.
///
/// # Errors
/// Only those that the template engine reports for a fault of fsure itself.
pub fn page(results: &[Named]) -> Result<Report, minijinja::Error> {
    let mut charts = Charts::default();
    let sections: Vec<_> = results
        .iter()
        .map(|named| match &named.content {
            ResultContent::Measured(stored) => Section::Measured(Box::new(
                measure_section::section(&named.file, stored, &mut charts),
            )),
            ResultContent::Checked(found) => {
                Section::Checked(Box::new(verify_section::section(&named.file, found, &mut charts)))
            }
        })
        .collect();
    let mut environment = Environment::new();
    environment.set_formatter(|out, state, value| match value.as_str() {
        Some(text) if !value.is_safe() => escape_formatter(out, state, &Value::from(safe(text))),
        _ => escape_formatter(out, state, value),
    });
    // Escaping follows from the name's end.
    environment.add_template("page.html", TEMPLATE)?;
    let style = format!("{COLORS}{STYLE}{LAYOUT}");
    let html = environment.get_template("page.html")?.render(minijinja::context! {
        made_here => Value::from_safe_string(MADE_HERE.to_owned()),
        style_hash => hash(&style),
        script_hash => hash(SCRIPT),
        style => Value::from_safe_string(style),
        script => Value::from_safe_string(SCRIPT.to_owned()),
        rank_meaning => MEANING.join(" "),
        sections => Serde(sections),
    })?;
    Ok(Report { html, charts: charts.0 })
}

fn hash(text: &str) -> String {
    BASE64.encode(Sha256::digest(text))
}
