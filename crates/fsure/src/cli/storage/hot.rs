//! `fsure hot`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::report::storage::{command_code, hot as report};
use clap::{Args, Subcommand, ValueEnum};
use fsure_core::{ExitCode, Monitor, Result, units};
use fsure_core::{Step, StepMonitor};
use fsure_hot::{Hot, HotOptions, hot};
use fsure_os::io_trace;

use super::OutputArgs;
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
/// command needs root. Exit codes: 0 seen, 2 not allowed or no sense, 5 it cannot be
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
}

#[derive(Subcommand)]
enum HotCommand {
    /// Advise what to do with the hottest folders: bind, pin, leave or exclude, and
    /// why
    Advise(WatchArgs),
}

#[derive(Args)]
struct WatchArgs {
    /// Folders to watch, with all below them [default: all there are]
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    paths: Vec<PathBuf>,
    /// Time to watch
    #[arg(long = "for", value_name = "TIME", value_parser = time, default_value = "30s")]
    span: Duration,
    /// Source of the events [default: ebpf, or fanotify if ebpf is not available]
    #[arg(long, value_enum, value_name = "SOURCE")]
    source: Option<SourceArg>,
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
    if is_command {
        screen.print_start();
    }
    let watching = Watching { screen, live: screen.live_line() };
    let seen = hot(&watch.options(), &watching)?;
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
        None => report::folder_lines(&seen, args.by.report()),
    };
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

impl HotArgs {
    fn watch(&self) -> &WatchArgs {
        match &self.command {
            Some(HotCommand::Advise(watch)) => watch,
            None => &self.watch,
        }
    }
}

fn text(args: &HotArgs, seen: &Hot) -> String {
    match args.command {
        Some(HotCommand::Advise(_)) => report::advice_text(seen),
        None => report::text(seen, args.by.report()),
    }
}

impl WatchArgs {
    fn options(&self) -> HotOptions {
        let source = self.source.map(|source| match source {
            SourceArg::Ebpf => io_trace::TraceSource::Ebpf,
            SourceArg::Fanotify => io_trace::TraceSource::Fanotify,
        });
        let (below, span, command) = (self.paths.clone(), self.span, self.command.clone());
        HotOptions { below, span, command, source, ..HotOptions::default() }
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
    screen: &'a Screen,
    live: Option<Live<'a>>,
}

impl Monitor for Watching<'_> {
    fn warn(&self, message: &str) {
        self.screen.warn(message);
    }

    fn stop_requested(&self) -> Option<ExitCode> {
        self.screen.stop_requested()
    }
}

impl StepMonitor for Watching<'_> {
    fn under_way(&self, step: &Step<'_>) {
        if let Some(live) = &self.live {
            live.set_text(step_line(step.what, step.share));
        }
    }
}
