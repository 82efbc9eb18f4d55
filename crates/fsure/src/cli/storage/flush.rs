//! `fsure flush`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::report::storage::flush as report;
use clap::{Args, Subcommand, ValueEnum};
use fsure_core::{ExitCode, Result, units};
use fsure_measure::results::Measurement;
use fsure_measure::{FlushOptions, Pattern, flush};

use super::comparison::CompareArgs;
use super::flush_trace::FlushTraceArgs;
use super::measurement_screen::Measuring;
use super::save_args::SaveArgs;
use super::screen::Screen;
use super::{OutputArgs, user_dirs};

/// Measure what fsync costs, and whether the drive can be believed
///
/// Writes small files of its own into each PATH, by every method that this system has
/// to make a write durable, and removes them again; counts what the device was really
/// sent; and reports what to believe of it. Only cutting the power proves anything.
/// Exit codes: 0 nothing speaks against it, 1 suspicious, 3 bad, 5 not measured.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct FlushArgs {
    #[command(subcommand)]
    command: Option<FlushCommand>,
    /// Folders to measure in; a file stands for the folder that it is in
    /// [default: the current folder]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Time to measure each method [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    time: Option<Duration>,
    /// A fifth of the time: a first impression, too short for a slow drive
    #[arg(long, conflicts_with = "time")]
    quick: bool,
    /// Also commit as these databases do
    #[arg(long, value_enum, value_name = "DATABASE", value_delimiter = ',')]
    profile: Vec<Database>,
    /// Threads that commit at the same time, at most
    #[arg(long, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    /// Make no more than so many writes a second, such as 30/s, to compare what they cost at
    /// the same rate [default: as many as possible]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Option<u32>,
    #[command(flatten)]
    save: SaveArgs,
}

#[derive(Subcommand)]
enum FlushCommand {
    /// Compare saved results, such as those of several drives
    ///
    /// Reports how many times faster or slower a durable write is than in the first, with an
    /// interval, and which of them suits which purpose. A difference is by ranks of the turns,
    /// corrected for the number of ratios, with intervals that have no value in common, and of
    /// 5 % or more. Exit codes: 0 no difference seen, 1 a difference, 5 nothing in common.
    Compare(CompareArgs),
    Trace(FlushTraceArgs),
}

/// A database with a way of its own to commit.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Database {
    Etcd,
    Postgres,
    Sqlite,
}

const TRIAL_TIME: Duration = Duration::from_millis(200);

fn time(text: &str) -> std::result::Result<Duration, String> {
    units::span_option(text, "a time such as 1s or 0.5s")
}

fn rate(text: &str) -> std::result::Result<u32, String> {
    const FORM: &str = "a rate of 1/s to 100000/s, such as 30/s";
    if units::is_bare_number(text) {
        let number = text.trim();
        return Err(format!("without a unit it could be writes or bytes: say {number}/s"));
    }
    let number = text.strip_suffix("/s").and_then(|number| number.trim().parse().ok());
    number.filter(|rate| (1..=100_000).contains(rate)).ok_or_else(|| FORM.to_owned())
}

/// Runs the command.
pub(crate) fn run(args: &FlushArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.patient_screen();
    let done = match &args.command {
        Some(FlushCommand::Trace(args)) => return super::flush_trace::run(args, output),
        Some(FlushCommand::Compare(args)) => args.run(Measurement::Flush, output, &screen),
        None => measure(args, output, &screen),
    };
    let code = done.unwrap_or_else(|error| screen.failed(&error));
    screen.end(code)
}

fn measure(args: &FlushArgs, output: &OutputArgs, screen: &Screen) -> Result<ExitCode> {
    let options = args.options();
    let measuring = Measuring::begin(screen, output.json, args.save.path())?;
    let prints_lines = measuring.prints_lines;
    let ended = flush(&options, &measuring);
    let code = ended.as_ref().map_or_else(fsure_core::Error::exit_code, |done| done.exit_code);
    let (lines, code) = measuring.end(code);
    if !prints_lines {
        let report = if output.quiet { report::verdicts } else { report::text };
        let report = report(&lines);
        if !report.is_empty() {
            screen.print(&report);
        }
    }
    match ended?.ended_by {
        // It is among the lines, of which the summary is the last.
        Some(error) if output.json => screen.warn(&error.to_string()),
        Some(error) => screen.error(&error),
        None => {}
    }
    Ok(code)
}

impl FlushArgs {
    fn options(&self) -> FlushOptions {
        let defaults = FlushOptions::default();
        let here = [PathBuf::from(".")];
        let paths = if self.paths.is_empty() { &here[..] } else { &self.paths };
        let pattern = |database: &Database| match database {
            Database::Etcd => Pattern::Etcd,
            Database::Postgres => Pattern::Postgres,
            Database::Sqlite => Pattern::Sqlite,
        };
        FlushOptions {
            paths: paths.iter().map(|path| folder_of(path)).collect(),
            span: self.time.unwrap_or(if self.quick { TRIAL_TIME } else { defaults.span }),
            threads: usize::from(self.threads),
            rate: self.rate,
            profiles: self.profile.iter().map(pattern).collect(),
            guard: std::env::current_exe().ok(),
            cuts: user_dirs::cuts_if_any(),
            ..defaults
        }
    }
}

/// Returns the folder that a file is in; any other path is returned as it is.
fn folder_of(path: &Path) -> PathBuf {
    if fsure_os::path::is_folder(path) || !fsure_os::path::exists(path) {
        return path.to_owned();
    }
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}
