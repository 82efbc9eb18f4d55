//! `fsure defer`, and its process that outlives the command.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::report::storage::defer as report;
use clap::{Args, ValueEnum};
use fsure_core::{ExitCode, Result, units};
use fsure_defer::{DeferOptions, defer};
use fsure_os::defer::Backend;

use super::OutputArgs;
use super::save_args::SaveArgs;
use super::screen::Screen;

/// Run a command whose fsync returns at once and follows soon
///
/// A flush in the background follows so closely that nothing that is acknowledged
/// and not on the medium is older than TIME. Only on file systems that keep the
/// order of writes, so that a database loses its last second and is not corrupt.
/// Exit codes: the command's own; 2 refused, 3 a background flush failed.
#[derive(Args)]
pub(crate) struct DeferArgs {
    /// Maximum age of the changes that a power cut loses: from 10ms to 1h
    #[arg(long, value_name = "TIME", value_parser = time)]
    max_loss: Duration,
    /// Defer on the file system of PATH, too [default: that of the working folder]
    #[arg(long, value_name = "PATH")]
    dir: Vec<PathBuf>,
    /// Interception of the calls: by a library that the loader loads (preload), or by
    /// the kernel (seccomp)
    #[arg(long, value_enum, value_name = "BACKEND", default_value = "auto")]
    backend: Choice,
    /// Also run if the file system does not keep the order of writes: CORRUPTION RISK
    #[arg(long)]
    force_unordered: bool,
    #[command(flatten)]
    save: SaveArgs,
    /// The command, and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Choice {
    Auto,
    Preload,
    Seccomp,
}

fn time(text: &str) -> std::result::Result<Duration, String> {
    units::span_option(text, "a time such as 1s or 200ms")
}

/// Runs the command.
pub(crate) fn run(args: &DeferArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen_beside_program();
    let code = run_on(args, output, &screen).unwrap_or_else(|error| screen.failed(&error));
    screen.end(code)
}

fn run_on(args: &DeferArgs, output: &OutputArgs, screen: &Screen) -> Result<ExitCode> {
    let folders = if args.dir.is_empty() { vec![PathBuf::from(".")] } else { args.dir.clone() };
    let options = DeferOptions {
        command: args.command.clone(),
        folders,
        longest: args.max_loss,
        backend: match args.backend {
            Choice::Auto => None,
            Choice::Preload => Some(Backend::Preload),
            Choice::Seccomp => Some(Backend::Seccomp),
        },
        force_unordered: args.force_unordered,
        heir: std::env::current_exe().ok(),
    };
    args.save.begin(screen, "defer")?;
    screen.print_start();
    let done = defer(&options, &|words| screen.warn(words))?;
    if output.json {
        screen.end_output_of_program();
    } else if !output.quiet {
        for line in report::text(&done, args.max_loss).lines() {
            screen.note(line);
        }
    }
    screen.result_line(&report::json_line(&done, args.max_loss));
    if output.json || output.quiet {
        report::warnings(&done, args.max_loss).iter().for_each(|words| screen.warn(words));
    }
    Ok(report::exit_code(&done))
}

/// Flush when the process that defers was killed
#[derive(Args)]
pub(crate) struct OutliveArgs {
    /// On the file systems of these
    folders: Vec<PathBuf>,
}

/// Runs the process that outlives the command.
pub(crate) fn outlive(args: &OutliveArgs) -> ExitCode {
    match fsure_os::defer::outlive(&args.folders, std::io::stdin()) {
        Ok(()) => ExitCode::Clean,
        Err(_) => ExitCode::Incomplete,
    }
}
