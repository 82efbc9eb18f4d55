//! Results as files: lines are appended as they come, so that a kill keeps
//! them, and what is read says whether the end is there.

use std::io::{self, BufRead, Write};

use super::bounded_lines::BoundedLines;
use super::read_error::ReadError;
use super::{ResultHeader, ResultLine, ResultSummary, VERSION};

/// A result as it was stored.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredResult {
    /// Its first line.
    pub header: ResultHeader,
    /// All lines between the first and the last.
    pub lines: Vec<ResultLine>,
    /// Its last line; `None` where the run was cut off.
    pub summary: Option<ResultSummary>,
}

/// Reads a result. A last line that is not whole is what a kill leaves, and no
/// error; types of lines that this version does not know are passed over.
pub fn read(input: impl BufRead) -> Result<StoredResult, ReadError> {
    let mut lines = BoundedLines::new(input);
    let first = lines.next_line()?.ok_or(ReadError::Empty)?;
    let first = first.parse().ok().flatten().ok_or(ReadError::NotAResult)?;
    read_on(first, lines)
}

/// Reads the rest of a result of which this is the first line.
pub fn read_on(
    first: serde_json::Value,
    mut rest: BoundedLines<impl BufRead>,
) -> Result<StoredResult, ReadError> {
    let header = header(first)?;
    let (mut lines, mut summary) = (Vec::new(), None);
    while let Some(text) = rest.next_line()? {
        let Some(value) = text.parse()? else { break };
        match known(value).map_err(|error| text.damaged(error.to_string()))? {
            Some(ResultLine::Summary(last)) => summary = Some(last),
            Some(line) => lines.push(line),
            None => {}
        }
    }
    Ok(StoredResult { header, lines, summary })
}

/// The version is looked at first: what a later one means by the rest is not
/// known.
fn header(value: serde_json::Value) -> Result<ResultHeader, ReadError> {
    if value["type"] != "result" {
        return Err(ReadError::NotAResult);
    }
    let version = value["version"].as_u64().and_then(|version| u32::try_from(version).ok());
    match version {
        Some(1..=VERSION) => {}
        Some(version) if version > 0 => {
            let program = value["program"].as_str().unwrap_or("an unknown program").to_owned();
            return Err(ReadError::TooNew { program, version });
        }
        _ => return Err(ReadError::NotAResult),
    }
    serde_json::from_value(value)
        .map_err(|error| ReadError::Damaged { line: 1, why: error.to_string() })
}

/// A line; `None` where its type is not known.
fn known(value: serde_json::Value) -> serde_json::Result<Option<ResultLine>> {
    let known = [
        "result",
        "rung",
        "not-run",
        "series",
        "limit",
        "tree-way",
        "cache-cost",
        "layer",
        "method",
        "curve",
        "profile",
        "verdict",
        "random",
        "sustained",
        "area",
        "warning",
        "summary",
    ];
    if value["type"].as_str().is_some_and(|name| !known.contains(&name)) {
        return Ok(None);
    }
    serde_json::from_value(value).map(Some)
}

impl ResultLine {
    /// The line as it is stored; no line end.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and text under fixed names")
    }
}

/// A result on its way to a file. Each line is with the system before the next
/// is measured.
pub struct ResultWriter<W: Write> {
    output: W,
}

impl<W: Write> ResultWriter<W> {
    /// A result to be written to `output`.
    pub fn new(output: W) -> Self {
        Self { output }
    }

    /// Appends one line.
    pub fn line(&mut self, line: &ResultLine) -> io::Result<()> {
        let mut text = line.to_json();
        text.push('\n');
        self.output.write_all(text.as_bytes())?;
        self.output.flush()
    }
}
