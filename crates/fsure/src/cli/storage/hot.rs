//! `fsure hot`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::report::storage::{command_code, hot as report};
use clap::{Args, Subcommand, ValueEnum};
use fsure_core::{Error, ExitCode, Monitor, Result, Step, StepMonitor, units};
use fsure_hot::{CallFilter, Hot, HotMonitor, HotOptions, Interval, hot, hot_history};
use fsure_os::io_trace::{LoggedCall, LoggedOperation, TraceSource};

use super::OutputArgs;
use super::hot_history::HistoryArgs;
use super::hot_record::{self, RecordArgs};
use super::save_args::SaveArgs;
use super::screen::progress::step_line;
use super::screen::{Live, Screen};

/// Find folders that programs wait for, and what memory would save
///
/// Watches all programs for a while, or one command with all that it starts: which
/// folders they read, write and flush, and how long that takes. The hottest folder is
/// the one where memory would save most time: flushes, and reads of what is not in
/// memory yet; everything else comes from the page cache anyway. Ctrl-C ends it early
/// and shows what was seen. Root uses
/// eBPF; other users can watch only folders that are named, and without times; a
/// command needs root, and so do single calls ('--log') and the live view ('--top'),
/// which go on until Ctrl-C. 'fsure hot record' watches for days, and '--history' answers from what
/// it has stored. Exit codes: 0 seen, 2 not allowed or no sense, 5 it cannot be
/// watched here, 130 ended early; with a command its own, or 2.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct HotArgs {
    #[command(subcommand)]
    command: Option<HotCommand>,
    #[command(flatten)]
    watch: WatchArgs,
    /// Measure by which folders are ranked
    #[arg(long, value_enum, value_name = "WHAT", default_value = "saved")]
    by: By,
    #[command(flatten)]
    log: LogArgs,
    /// Show what programs and folders do now, over and over, until Ctrl-C or for the time of
    /// '--for'
    #[arg(long, conflicts_with_all = ["log", "command", "history"])]
    top: bool,
    /// Time between two views
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "2s", requires = "top")]
    interval: Duration,
}

/// Single calls.
#[derive(Args)]
struct LogArgs {
    /// Print each call as it ends, failed ones too: time, program, call, duration, bytes and
    /// file; until Ctrl-C or for the time of '--for', with the folders behind it
    #[arg(long, conflicts_with = "history")]
    log: bool,
    /// Log this program only: its name, or the number of a process; can be repeated
    #[arg(long = "program", value_name = "NAME", requires = "log")]
    programs: Vec<String>,
    /// Log only files whose whole path matches, such as '*.sqlite*'; can be repeated
    #[arg(long = "path", value_name = "PATTERN", requires = "log")]
    patterns: Vec<String>,
    /// Log only these operations, separated by commas
    #[arg(
        long = "operation",
        value_enum,
        value_name = "WHAT",
        value_delimiter = ',',
        requires = "log"
    )]
    operations: Vec<OperationArg>,
}

/// An operation of which single calls are logged.
#[derive(Clone, Copy, ValueEnum)]
enum OperationArg {
    /// Calls that read
    Read,
    /// Calls that write
    Write,
    /// Calls that make something durable
    Flush,
    /// Pages of mappings that are fetched or dirtied
    Mapped,
}

#[derive(Subcommand)]
enum HotCommand {
    /// Advise what to do with the hottest folders: bind, pin, try, leave or exclude, and
    /// why
    Advise(WatchArgs),
    Record(RecordArgs),
}

#[derive(Args)]
struct WatchArgs {
    /// Folders to watch, with all below them [default: all there are]
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    paths: Vec<PathBuf>,
    /// Time to watch [default: 30s, or until Ctrl-C with '--log' and '--top']
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    span: Option<Duration>,
    /// Source of the events [default: ebpf, or fanotify if ebpf is not available]
    #[arg(long, value_enum, value_name = "SOURCE")]
    source: Option<SourceArg>,
    #[command(flatten)]
    history: HistoryArgs,
    #[command(flatten)]
    save: SaveArgs,
    /// Watch this command alone, with all that it starts, until it ends
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["span", "source"])]
    command: Vec<OsString>,
}

/// A measure by which folders are ranked.
#[derive(Clone, Copy, ValueEnum)]
enum By {
    /// The time that memory would save
    Saved,
    /// Bytes written, which wear out a medium
    Written,
    /// Bytes read
    Read,
    /// Calls
    Calls,
}

/// A source of events.
#[derive(Clone, Copy, ValueEnum)]
enum SourceArg {
    /// Programs in the kernel: every call, its bytes and its time; for root
    Ebpf,
    /// Notifications: merged, without bytes and times
    Fanotify,
}

fn time(text: &str) -> std::result::Result<Duration, String> {
    const FORM: &str = "a time such as 30s or 5m";
    let span = units::span_option(text, FORM)?;
    if span.is_zero() { Err(FORM.to_owned()) } else { Ok(span) }
}

/// Runs the command.
pub(crate) fn run(args: &HotArgs, output: &OutputArgs) -> ExitCode {
    if let Some(HotCommand::Record(record)) = &args.command {
        return hot_record::run(record, output);
    }
    let screen = match args.watch().command.is_empty() {
        true => output.patient_screen(),
        false => output.screen_beside_program(),
    };
    let code = watch(args, output, &screen).unwrap_or_else(|error| screen.failed(&error));
    screen.end(code)
}

fn watch(args: &HotArgs, output: &OutputArgs, screen: &Screen) -> Result<ExitCode> {
    let watch = args.watch();
    watch.save.begin(screen, "hot")?;
    let is_command = !watch.command.is_empty();
    refuse_mixed_output(args, output)?;
    if is_command {
        screen.print_start();
    }
    let is_shown_as_it_comes = args.log.log || args.top;
    let watching = Watching {
        args,
        screen,
        is_json: output.json,
        live: if is_shown_as_it_comes { None } else { screen.live_line() },
        has_head: AtomicBool::new(false),
    };
    let seen = match watch.history.options(&watch.paths) {
        Some(history) => hot_history(&history)?,
        None => hot(&args.options(), &watching)?,
    };
    drop(watching);
    let code = match &seen.command {
        Some(command) => command_code(command.ended),
        None => seen.ended_by.unwrap_or(ExitCode::Clean),
    };
    if output.json && is_command {
        screen.end_output_of_program();
    }
    let mut lines = match &args.command {
        Some(_) => report::advice_lines(&seen),
        None => report::recorded_lines(&seen).collect(),
    };
    lines.extend(report::folder_lines(&seen, args.by.report()));
    lines.push(report::summary_line(&seen, code));
    lines.iter().for_each(|line| screen.result_line(line));
    match (output.json, is_command) {
        (true, _) => {}
        (false, true) if output.quiet => {}
        (false, true) => screen.print_beside(&text(args, &seen)),
        (false, false) => screen.print(&text(args, &seen)),
    }
    Ok(code)
}

/// Refuses lines of JSON in the midst of what the command prints, whose lines may have no end.
fn refuse_mixed_output(args: &HotArgs, output: &OutputArgs) -> Result<()> {
    let is_mixed = args.log.log && output.prints_json() && !args.watch().command.is_empty();
    if !is_mixed {
        return Ok(());
    }
    Err(Error::Usage {
        message: "'--log --json' would write into what the command prints".to_owned(),
        hint: Some("send the lines elsewhere: '--json-fd 3 3> calls.jsonl'".to_owned()),
    })
}

impl HotArgs {
    fn options(&self) -> HotOptions {
        let log = self.log.log.then(|| self.log.filter());
        let interval = self.top.then_some(self.interval);
        let has_end = log.is_none() && interval.is_none();
        let options = self.watch().options();
        let span = self.watch().span.or(options.span.filter(|_| has_end));
        HotOptions { span, log, interval, ..options }
    }

    fn watch(&self) -> &WatchArgs {
        match &self.command {
            Some(HotCommand::Advise(watch)) => watch,
            _ => &self.watch,
        }
    }
}

fn text(args: &HotArgs, seen: &Hot) -> String {
    match args.command {
        Some(HotCommand::Advise(_)) => report::advice_text(seen),
        _ => report::text(seen, args.by.report()),
    }
}

impl WatchArgs {
    fn options(&self) -> HotOptions {
        let source = self.source.map(|source| match source {
            SourceArg::Ebpf => TraceSource::Ebpf,
            SourceArg::Fanotify => TraceSource::Fanotify,
        });
        let (below, command) = (self.paths.clone(), self.command.clone());
        HotOptions { below, command, source, ..HotOptions::default() }
    }
}

impl LogArgs {
    fn filter(&self) -> CallFilter {
        let operations = self.operations.iter().map(|operation| match operation {
            OperationArg::Read => LoggedOperation::Read,
            OperationArg::Write => LoggedOperation::Write,
            OperationArg::Flush => LoggedOperation::Flush,
            OperationArg::Mapped => LoggedOperation::Mapped,
        });
        let (programs, paths) = (self.programs.clone(), self.patterns.clone());
        CallFilter { programs, paths, operations: operations.collect() }
    }
}

impl By {
    fn report(self) -> report::By {
        match self {
            Self::Saved => report::By::Saved,
            Self::Written => report::By::Written,
            Self::Read => report::By::Read,
            Self::Calls => report::By::Calls,
        }
    }
}

/// The terminal, while it is watched.
struct Watching<'a> {
    args: &'a HotArgs,
    screen: &'a Screen,
    is_json: bool,
    live: Option<Live<'a>>,
    /// True once the heads of the columns were printed.
    has_head: AtomicBool,
}

impl Watching<'_> {
    /// Prints text of the log, beside what a command prints.
    fn print_log(&self, text: &str) {
        if self.args.watch().command.is_empty() {
            self.screen.print_now(text);
        } else {
            self.screen.print_beside(text);
        }
    }
}

impl HotMonitor for Watching<'_> {
    fn calls(&self, calls: &[LoggedCall]) {
        if self.screen.wants_result_lines() {
            self.screen.result_line(&report::call_lines(calls));
        }
        if !self.is_json {
            if !self.has_head.swap(true, Ordering::Relaxed) {
                self.print_log(report::LOG_HEAD);
            }
            self.print_log(&report::call_texts(calls));
        }
    }

    fn interval(&self, interval: &Interval) {
        let by = self.args.by.report();
        if self.screen.wants_result_lines() {
            self.screen.result_line(&report::interval_line(interval, by));
        }
        if !self.is_json {
            let rows = self.screen.view_rows();
            self.screen.draw(&report::top_text(interval, by, rows));
        }
    }
}

impl Monitor for Watching<'_> {
    fn warn(&self, message: &str) {
        self.screen.warn(message);
    }

    fn stop_requested(&self) -> Option<ExitCode> {
        // What goes on until it is ended has no use without a reader.
        let is_unread = self.screen.has_lost_output() && self.args.watch().span.is_none();
        self.screen.stop_requested().or(is_unread.then_some(ExitCode::Clean))
    }
}

impl StepMonitor for Watching<'_> {
    fn under_way(&self, step: &Step<'_>) {
        if let Some(live) = &self.live {
            live.set_text(step_line(step.what, step.share));
        }
    }
}
