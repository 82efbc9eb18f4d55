//! Results as files: lines are appended as they come, so that a kill keeps
//! them, and what is read says whether the end is there.

use std::io::{self, BufRead, Write};

use super::{Header, Line, Summary, VERSION};

/// A result as it was stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Its first line.
    pub header: Header,
    /// All lines between the first and the last.
    pub lines: Vec<Line>,
    /// Its last line; `None` where the run was cut off.
    pub summary: Option<Summary>,
}

/// Why something is no result that can be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It does not begin as a result does.
    #[error("not a result of fsure: line 1 has no \"type\":\"result\"")]
    NotAResult,
    /// It was written by a later program.
    #[error(
        "written by {program} in version {version} of the format; this program reads {VERSION}"
    )]
    TooNew {
        /// Who wrote it.
        program: String,
        /// The format's version.
        version: u32,
    },
    /// A line is damaged.
    #[error("line {line}: {why}")]
    Damaged {
        /// Its number, from 1.
        line: usize,
        /// What the parser said.
        why: String,
    },
}

/// Reads a result. A last line that is not whole is what a kill leaves, and no
/// error; types of lines that this version does not know are passed over.
pub fn read(mut input: impl BufRead) -> Result<Stored, ReadError> {
    let mut text = String::new();
    input.read_line(&mut text)?;
    let header = header(&text)?;
    let (mut lines, mut summary) = (Vec::new(), None);
    for number in 2.. {
        text.clear();
        if input.read_line(&mut text)? == 0 {
            break;
        }
        match parse(&text) {
            Ok(Some(Line::Summary(last))) => summary = Some(last),
            Ok(Some(line)) => lines.push(line),
            Ok(None) => {}
            Err(_) if !text.ends_with('\n') => break,
            Err(error) => {
                return Err(ReadError::Damaged { line: number, why: error.to_string() });
            }
        }
    }
    Ok(Stored { header, lines, summary })
}

/// The version is looked at first: what a later one means by the rest is not
/// known.
fn header(text: &str) -> Result<Header, ReadError> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(|_| ReadError::NotAResult)?;
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
fn parse(text: &str) -> serde_json::Result<Option<Line>> {
    let value: serde_json::Value = serde_json::from_str(text)?;
    let known = [
        "result", "rung", "not-run", "series", "limit", "layer", "method", "curve", "profile",
        "verdict", "warning", "summary",
    ];
    if value["type"].as_str().is_some_and(|name| !known.contains(&name)) {
        return Ok(None);
    }
    serde_json::from_value(value).map(Some)
}

impl Line {
    /// The line as it is stored; no line end.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and text under fixed names")
    }
}

/// A result on its way to a file. Each line is with the system before the next
/// is measured.
pub struct Saved<W: Write> {
    output: W,
}

impl<W: Write> Saved<W> {
    /// A result to be written to `output`.
    pub fn new(output: W) -> Self {
        Self { output }
    }

    /// Appends one line.
    pub fn line(&mut self, line: &Line) -> io::Result<()> {
        let mut text = line.to_json();
        text.push('\n');
        self.output.write_all(text.as_bytes())?;
        self.output.flush()
    }
}
