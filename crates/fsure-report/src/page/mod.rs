//! Stored results as one page that needs nothing else: no network, and no
//! script to be read. The policy in its head names the hashes of its own style
//! and script, so that nothing else would run even if it came in. Every text
//! goes through one formatter, which escapes what would be obeyed by a reader's
//! eye (direction marks) before what would be obeyed by a browser.

mod band;
mod charts;
mod pieces;
mod sections;
mod words;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, escape_formatter};
use sha2::{Digest as _, Sha256};

use super::chart::{COLORS, MADE_HERE, STYLE};
use crate::AnyResult;
use charts::Charts;
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
    pub result: AnyResult,
}

impl Named {
    /// The name of the file as words, without the number that puts it into its place.
    fn words(&self) -> String {
        let file = self.file.rsplit('/').next().unwrap_or(&self.file);
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        let words = stem.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
        words.replace('-', " ")
    }
}

/// A page and its charts.
#[derive(Clone, Debug)]
pub struct Report {
    /// The page.
    pub html: String,
    /// File names and contents of the charts.
    pub charts: Vec<(String, String)>,
}

/// The page of these results, in their order. `is_anonymous` says so on the page; the
/// results are [`Anonymous`](crate::Anonymous) since they were read.
///
/// # Errors
/// Only those that the template engine reports for a fault of fsure itself.
pub fn page(results: &[Named], is_anonymous: bool) -> Result<Report, minijinja::Error> {
    let mut charts = Charts::default();
    let mut sections = sections::side_by_side(results, &mut charts);
    sections.extend(results.iter().map(|named| sections::of(named, &mut charts)));
    let band = band::of(&sections);
    let mut environment = Environment::new();
    environment.set_formatter(|out, state, value| match value.as_str() {
        Some(text) if !value.is_safe() => escape_formatter(out, state, &Value::from(safe(text))),
        _ => escape_formatter(out, state, value),
    });
    // Escaping follows from the name's end.
    environment.add_template("page.html", TEMPLATE)?;
    let style = format!("{COLORS}{STYLE}{LAYOUT}");
    let mut html = environment.get_template("page.html")?.render(minijinja::context! {
        made_here => Value::from_safe_string(MADE_HERE.to_owned()),
        style_hash => hash(&style),
        script_hash => hash(SCRIPT),
        style => Value::from_safe_string(style),
        script => Value::from_safe_string(SCRIPT.to_owned()),
        is_anonymous => is_anonymous,
        band => Serde(band),
        sections => Serde(sections),
    })?;
    html.push('\n');
    Ok(Report { html, charts: charts.into_files() })
}

fn hash(text: &str) -> String {
    BASE64.encode(Sha256::digest(text))
}
