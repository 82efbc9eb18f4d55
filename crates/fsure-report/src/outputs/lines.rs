//! Reads the output of a command line by line. Every output may have a first line that says
//! when, where and of what it is, and lines of progress, warnings and errors between the
//! others: these are handled here, once for all commands.

use std::io::BufRead;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use fsure_measure::results::{BoundedLines, Machine, ReadError};

/// Warnings and errors that are kept of one output. More of them are not read by a person.
const MESSAGES_MAX: usize = 200;

/// The first line of an output: who ran what, and when. Outputs of older versions have none.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct StartLine {
    /// Version of fsure.
    pub(crate) fsure: String,
    /// The command, such as `verify` or `ram status`.
    pub(crate) command: String,
    /// Time at which it began, RFC 3339 in UTC.
    pub(crate) time: String,
    /// Name of the machine.
    pub(crate) host: Option<String>,
    /// Description of the machine; older results have none.
    pub(crate) machine: Option<StartMachine>,
    /// The roots that it was run on.
    pub(crate) roots: Vec<StartRoot>,
}

/// The machine that a command was run on; what it did not report is `None`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct StartMachine {
    pub(crate) system: Option<String>,
    pub(crate) processor: Option<String>,
    pub(crate) cores: Option<u64>,
    pub(crate) virtualization: Option<String>,
}

impl From<&Machine> for StartMachine {
    fn from(machine: &Machine) -> Self {
        let Machine { system, processor, cores, virtualization, .. } = machine;
        Self {
            system: Some(system.clone()),
            processor: processor.clone(),
            cores: Some(*cores as u64),
            virtualization: virtualization.clone(),
        }
    }
}

/// A root that a command was run on.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct StartRoot {
    /// Its path, as text.
    pub(crate) root: String,
    /// The file of its record.
    pub(crate) catalog: Option<String>,
    /// Generation of the record when the run began.
    pub(crate) generation: Option<u64>,
}

/// An error that ended a run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RunError {
    /// Description of the error.
    pub(crate) message: String,
    /// Advice on what to do now.
    pub(crate) hint: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WarningLine {
    message: String,
    words: String,
}

/// Lines that the outputs of all commands have in common.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CommonLines {
    /// The first line.
    pub(crate) start: Option<StartLine>,
    /// Warnings, in their order.
    pub(crate) warnings: Vec<String>,
    /// Errors that ended the run.
    pub(crate) failures: Vec<RunError>,
    /// Number of lines of types that this version does not know.
    pub(crate) unknown: u64,
}

/// A line of one command.
pub(crate) struct Line {
    number: usize,
    kind: String,
    value: Value,
}

impl Line {
    /// Its `type`.
    pub(crate) fn kind(&self) -> &str {
        &self.kind
    }

    /// Its fields.
    pub(crate) fn value(&self) -> &Value {
        &self.value
    }

    /// Returns the line as it is, for a reader of its own.
    pub(crate) fn into_value(self) -> Value {
        self.value
    }

    /// Reads the fields that the page shows.
    pub(crate) fn read<T: DeserializeOwned>(self) -> Result<T, ReadError> {
        let Self { number, value, .. } = self;
        serde_json::from_value(value)
            .map_err(|error| ReadError::Damaged { line: number, why: error.to_string() })
    }

    /// The error of a line that is not of the kind that it should be.
    pub(crate) fn refused(&self, why: &str) -> ReadError {
        ReadError::Damaged { line: self.number, why: why.to_owned() }
    }
}

/// The lines of an output.
pub(crate) struct OutputLines<R> {
    lines: BoundedLines<R>,
    next: Option<Line>,
    has_begun: bool,
    /// Lines that all commands have.
    pub(crate) common: CommonLines,
}

impl<R: BufRead> OutputLines<R> {
    /// Reads lines from `input`.
    pub(crate) fn new(input: R) -> Self {
        let lines = BoundedLines::new(input);
        Self { lines, next: None, has_begun: false, common: CommonLines::default() }
    }

    /// Returns the next line that belongs to the command, without taking it.
    pub(crate) fn peek(&mut self) -> Result<Option<&Line>, ReadError> {
        if self.next.is_none() {
            self.next = self.take_next()?;
        }
        Ok(self.next.as_ref())
    }

    /// Takes the next line that belongs to the command; `None` after the last.
    pub(crate) fn take(&mut self) -> Result<Option<Line>, ReadError> {
        match self.next.take() {
            Some(line) => Ok(Some(line)),
            None => self.take_next(),
        }
    }

    /// Counts a line of a type that this version does not know.
    pub(crate) fn pass_over(&mut self) {
        self.common.unknown += 1;
    }

    /// Returns the lines that were not taken, and what was common so far.
    pub(crate) fn into_rest(self) -> (BoundedLines<R>, CommonLines) {
        (self.lines, self.common)
    }

    fn take_next(&mut self) -> Result<Option<Line>, ReadError> {
        while let Some(text) = self.lines.next_line()? {
            if text.is_blank() {
                continue;
            }
            let value: Value = match text.parse() {
                Ok(Some(value)) => value,
                // A kill leaves half a line behind.
                Ok(None) if self.has_begun || self.common.start.is_some() => return Ok(None),
                Err(_) if self.is_mixed() => continue,
                Ok(None) | Err(_) => return Err(text.damaged(NOT_OURS.to_owned())),
            };
            let Some(kind) = value["type"].as_str().map(str::to_owned) else {
                if self.is_mixed() {
                    continue;
                }
                return Err(text.damaged(NOT_OURS.to_owned()));
            };
            let line = Line { number: text.number, kind, value };
            if let Some(line) = self.sort(line)? {
                self.has_begun = true;
                return Ok(Some(line));
            }
        }
        Ok(None)
    }

    /// Returns true if the lines of another program may be between those of fsure: these
    /// commands run a program that prints to the same place.
    fn is_mixed(&self) -> bool {
        let start = self.common.start.as_ref();
        start.is_some_and(|start| {
            matches!(&*start.command, "defer" | "hot" | "flush trace" | "ram try")
        })
    }

    /// Keeps a line that all commands have, and returns any other.
    fn sort(&mut self, line: Line) -> Result<Option<Line>, ReadError> {
        let begins = matches!(line.kind(), "start" | "result");
        if begins && (self.has_begun || self.common.start.is_some() && line.kind() == "start") {
            return Err(line.refused("a second result begins here; give each a file of its own"));
        }
        match line.kind() {
            "start" => self.common.start = Some(line.read()?),
            "progress" => {}
            "warning" => {
                let WarningLine { message, words } = line.read()?;
                keep(&mut self.common.warnings, message + &words);
            }
            "error" => keep(&mut self.common.failures, line.read()?),
            _ => return Ok(Some(line)),
        }
        Ok(None)
    }
}

fn keep<T>(kept: &mut Vec<T>, one: T) {
    if kept.len() < MESSAGES_MAX {
        kept.push(one);
    }
}

/// The error of a line that no command prints.
const NOT_OURS: &str = "fsure did not write this line: a line of '--json' or '--save' is a JSON \
                        object with a \"type\"";
