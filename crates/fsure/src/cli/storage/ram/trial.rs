//! `fsure ram try`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use fsure_core::{Error, ExitCode, Result};
use fsure_os::storage_stack::Stack;

use super::super::save_args::SaveArgs;
use super::super::screen::Screen;
use super::super::{OutputArgs, user_dirs};
use super::bind::time;
use crate::ram_trial::{TrialOptions, run_once, trial};
use crate::report::storage::ram_trial as report;

/// Measure what a folder in memory, and deferred flushes, would gain a command
///
/// Runs the command in turns: as it is, as 'ram run' does, and as 'defer' does, if its
/// file system allows that; a first turn is not counted. Reports the times and how many
/// times as fast each way is, with a 95 % interval. What the command does in the folder
/// is really done, so it has to do the same work each time. Exit codes: 0 measured, 2
/// refused and not started, 5 the command failed, 130 ended early.
#[derive(Args)]
pub(super) struct TryArgs {
    /// The folder that the command works in
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    folder: PathBuf,
    /// Maximum age of the oldest change that a crash loses, from 100ms to 1h
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    max_loss: Duration,
    /// Turns that count
    #[arg(long, value_name = "N", default_value_t = 6,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    runs: u16,
    #[command(flatten)]
    save: SaveArgs,
    /// The command, and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The name of the command in its lines.
const NAME: &str = "ram try";

/// Runs the command.
pub(super) fn run(args: &TryArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen_beside_program();
    let code = try_it(args, output, &screen).unwrap_or_else(|error| screen.failed(&error));
    screen.end(code)
}

fn try_it(args: &TryArgs, output: &OutputArgs, screen: &Screen) -> Result<ExitCode> {
    screen.starts(NAME);
    args.save.begin(screen, NAME)?;
    screen.print_start();
    let options = TrialOptions {
        folder: args.folder.clone(),
        command: args.command.clone(),
        max_loss: args.max_loss,
        runtime: user_dirs::runtime().ok(),
        program: std::env::current_exe().map_err(|error| Error::Internal(error.to_string()))?,
    };
    let conditions = report::Conditions {
        max_loss: args.max_loss,
        file_system: Stack::of(&args.folder).ok().and_then(|stack| stack.file_system()),
    };
    let warn = |words: &str| screen.warn(words);
    let done = trial(args.runs, &mut |way| run_once(&options, way, &warn))?;
    if output.json {
        screen.end_output_of_program();
    }
    let code = done.ended_by.unwrap_or(ExitCode::Clean);
    report::lines(&done, &conditions, code).iter().for_each(|line| screen.result_line(line));
    if !output.json && !output.quiet {
        screen.print_beside(&report::text(&done, &conditions));
    }
    Ok(code)
}
