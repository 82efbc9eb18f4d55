//! Reads what a command has printed with `--json` or saved with `--save`. The types here are
//! the page's own: they have only the fields that are shown. A missing field is zero or
//! empty, and an unknown one is passed over. Each command has a file of its own.

mod cache_trial;
mod checked;
mod compared;
mod crash;
mod deferred;
mod duplicates;
mod flush_trace;
mod history;
mod hot;
mod lines;
mod power_cut;
mod protected;
mod ram;
mod recovered;
mod trial;

use std::io::BufRead;

use serde_json::Value;

use fsure_measure::results::{ReadError, StoredResult, read_on};

pub(crate) use cache_trial::{CacheTrial, CacheTrialRun, KeptShare};
pub(crate) use checked::{Age, Bar, Checked, FindingRow, OutputTotals, Remedy, Signed, Taken};
pub(crate) use compared::Compared;
pub(crate) use crash::{CrashRun, CutRow, DriveResult};
pub(crate) use deferred::Deferred;
pub(crate) use duplicates::{DuplicateRow, Duplicates};
pub(crate) use flush_trace::{FlushTraceRun, FlushTraceTotals, FlushedKind, TracedCost};
pub(crate) use history::History;
pub(crate) use hot::{HotAdvice, HotFolder, HotHistory, HotRun, HotTotals};
pub(crate) use lines::{CommonLines, Line, OutputLines, StartLine, StartMachine};
pub(crate) use power_cut::{PowerCut, PowerCutMethod};
pub(crate) use protected::Protected;
pub(crate) use ram::{RamFolder, RamRun};
pub(crate) use recovered::Recovered;
pub(crate) use trial::{TrialRun, TrialWay};

/// Output of a command, as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct AnyResult {
    pub(crate) common: CommonLines,
    pub(crate) content: ResultContent,
}

/// Content of an output.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ResultContent {
    /// Output of `speed` or `flush`.
    Measured(Box<StoredResult>),
    /// Output of `verify`, `update`, `scrub`, `status` or `heal`.
    Checked(Box<Checked>),
    /// Output of `compare`.
    Compared(Box<Compared>),
    /// Output of `dupes`.
    Duplicates(Box<Duplicates>),
    /// Output of `crash`.
    Crash(Box<CrashRun>),
    /// Output of `flush trace`.
    FlushTrace(Box<FlushTraceRun>),
    /// Output of `hot`.
    Hot(Box<HotRun>),
    /// Output of `ram status`, `ram sync` and the like.
    Ram(Box<RamRun>),
    /// Output of `ram try`.
    Trial(Box<TrialRun>),
    /// Output of `defer`.
    Deferred(Box<Deferred>),
    /// Result of `bench/uncached.py`.
    CacheTrial(Box<CacheTrialRun>),
    /// Output of `log` or `seal`.
    History(Box<History>),
    /// Output of `powercut check`.
    PowerCut(Box<PowerCut>),
    /// Output of `recover`.
    Recovered(Box<Recovered>),
    /// Output of `protect`.
    Protected(Box<Protected>),
}

/// Commands whose output is read in the same way.
#[derive(Clone, Copy)]
enum Reader {
    Measured,
    Checked,
    Compared,
    Duplicates,
    Crash,
    FlushTrace,
    Hot,
    Ram,
    Trial,
    Deferred,
    CacheTrial,
    History,
    PowerCut,
    Recovered,
    Protected,
}

impl Reader {
    /// The reader of a command's output; `None` if the page does not show the command.
    fn of_command(command: &str) -> Option<Self> {
        Some(match command {
            "verify" | "update" | "scrub" | "status" | "heal" => Self::Checked,
            "speed" | "flush" => Self::Measured,
            "flush trace" => Self::FlushTrace,
            "compare" => Self::Compared,
            "dupes" => Self::Duplicates,
            "hot" => Self::Hot,
            "defer" => Self::Deferred,
            "uncached trial" => Self::CacheTrial,
            "log" | "seal" => Self::History,
            "recover" => Self::Recovered,
            "protect" => Self::Protected,
            "ram try" => Self::Trial,
            "ram doctor" | "ram disk list" | "ram pin" | "ram unpin" => return None,
            _ => match command.split(' ').next() {
                Some("ram") => Self::Ram,
                Some("crash") => Self::Crash,
                Some("powercut") => Self::PowerCut,
                _ => return None,
            },
        })
    }

    /// The reader of an output that begins with this line and names no command before.
    fn of_line(line: &Line) -> Result<Self, ReadError> {
        let value = line.value();
        let has = |field: &str| !value[field].is_null();
        // Other lines name the command of a run that they are about.
        let is_total = matches!(line.kind(), "summary" | "root");
        if let Some(command) = value["command"].as_str().filter(|_| is_total) {
            let other = || ReadError::OtherCommand(command.to_owned());
            return Self::of_command(command).ok_or_else(other);
        }
        Ok(match line.kind() {
            "result" => Self::Measured,
            "finding" if has("about") => {
                return Err(ReadError::OtherCommand("ram doctor".to_owned()));
            }
            "finding" | "age" | "age-folder" | "remedy" => Self::Checked,
            "compared" => Self::Compared,
            "duplicate" => Self::Duplicates,
            "cut" | "drive" | "cell" | "flush-after-error" => Self::Crash,
            "folder" if has("is_visible") => Self::Hot,
            "advice" => Self::Hot,
            "flushes" | "flushed-file" => Self::FlushTrace,
            "trial" => Self::Trial,
            "cache-trial" => Self::CacheTrial,
            "folder" | "told" | "synced" | "bound" | "unbound" | "recovered" | "verified" => {
                Self::Ram
            }
            "generation" | "verification" | "known-damage" => Self::History,
            "method" if has("acked") => Self::PowerCut,
            "summary" => Self::of_summary(value),
            kind => return Err(line.refused(&unknown(kind))),
        })
    }

    /// The reader of a last line that names no command.
    fn of_summary(value: &Value) -> Self {
        let has = |field: &str| !value[field].is_null();
        match () {
            () if has("cuts_per_minute") => Self::Crash,
            () if has("heard_ms") => Self::PowerCut,
            () if has("folders") && value["folders"].is_u64() => Self::Ram,
            () => Self::Checked,
        }
    }
}

fn unknown(kind: &str) -> String {
    let kind: String = kind.chars().take(40).collect();
    format!(
        "the page does not show lines of type '{kind}'; it shows the output of verify, update, \
         scrub, status, heal, speed, flush, flush trace, compare, dupes, log, seal, recover, \
         protect, crash, powercut check, hot, defer, ram status and ram try"
    )
}

/// Reads the output of any command that the page shows.
pub fn read_any(input: impl BufRead) -> Result<AnyResult, ReadError> {
    let mut lines = OutputLines::new(input);
    let first = lines.peek()?.map(Reader::of_line).transpose();
    let named = lines.common.start.as_ref().map(|start| start.command.clone());
    let reader = match (named, first) {
        // A header tells more than the command does, and so does a line that names another.
        (_, Ok(Some(Reader::Measured))) => Reader::Measured,
        (_, Err(error @ ReadError::OtherCommand(_))) => return Err(error),
        (Some(command), first) if !command.is_empty() => match Reader::of_command(&command) {
            Some(Reader::Measured) => return Err(nothing_measured(first)),
            Some(reader) => reader,
            None => return Err(ReadError::OtherCommand(command)),
        },
        (_, first) => match first? {
            Some(reader) => reader,
            None if lines.common.failures.is_empty() && lines.common.start.is_none() => {
                return Err(ReadError::Empty);
            }
            None => Reader::Checked,
        },
    };
    read_as(reader, lines)
}

/// The error of an output of `speed` or `flush` without its header.
fn nothing_measured(first: Result<Option<Reader>, ReadError>) -> ReadError {
    first.err().unwrap_or(ReadError::NotAResult)
}

fn read_as(reader: Reader, lines: OutputLines<impl BufRead>) -> Result<AnyResult, ReadError> {
    match reader {
        Reader::Measured => measured(lines),
        Reader::Checked => of(lines, checked::read, ResultContent::Checked),
        Reader::Compared => of(lines, compared::read, ResultContent::Compared),
        Reader::Duplicates => of(lines, duplicates::read, ResultContent::Duplicates),
        Reader::Crash => of(lines, crash::read, ResultContent::Crash),
        Reader::FlushTrace => of(lines, flush_trace::read, ResultContent::FlushTrace),
        Reader::Hot => of(lines, hot::read, ResultContent::Hot),
        Reader::Ram => of(lines, ram::read, ResultContent::Ram),
        Reader::Trial => of(lines, trial::read, ResultContent::Trial),
        Reader::Deferred => of(lines, deferred::read, ResultContent::Deferred),
        Reader::CacheTrial => of(lines, cache_trial::read, ResultContent::CacheTrial),
        Reader::History => of(lines, history::read, ResultContent::History),
        Reader::PowerCut => of(lines, power_cut::read, ResultContent::PowerCut),
        Reader::Recovered => of(lines, recovered::read, ResultContent::Recovered),
        Reader::Protected => of(lines, protected::read, ResultContent::Protected),
    }
}

fn of<R: BufRead, T>(
    mut lines: OutputLines<R>,
    read: impl FnOnce(&mut OutputLines<R>) -> Result<T, ReadError>,
    content: impl FnOnce(Box<T>) -> ResultContent,
) -> Result<AnyResult, ReadError> {
    let content = content(Box::new(read(&mut lines)?));
    let (_, common) = lines.into_rest();
    Ok(AnyResult { common, content })
}

fn measured(mut lines: OutputLines<impl BufRead>) -> Result<AnyResult, ReadError> {
    let header = lines.take()?.ok_or(ReadError::NotAResult)?.into_value();
    let (rest, common) = lines.into_rest();
    let stored = read_on(header, rest)?;
    Ok(AnyResult { common, content: ResultContent::Measured(Box::new(stored)) })
}
