//! `fsure ram run`, and its process that writes its folders to the disk.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use fsure_core::{Error, ExitCode, Result};
use fsure_os::process_tree::{NOT_FOUND, NOT_STARTED};
use fsure_ram::service::run::{KeepOptions, RunOptions, RunOutcome, SyncerEvent, keep, run as job};

use super::super::screen::Screen;
use super::super::{OutputArgs, user_dirs};
use super::bind::{Size, size, time};
use crate::report::storage::command_code;

/// Run a command that sees folders in memory, without root
///
/// Other programs go on seeing the disk, to which all changes come while the command
/// runs and when it has ended, with all that it started. fsync in there returns at
/// once and does NOT hold: what it acknowledged is on the disk up to --max-loss
/// later. If one of the processes is killed, the rest still comes to the disk; if all
/// are killed at once, at most --max-loss is lost. Exit codes: the command's own; 2
/// refused and not started, 5 not all is on the disk.
#[derive(Args)]
pub(super) struct RunArgs {
    /// The folders
    #[arg(required = true, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    folders: Vec<PathBuf>,
    /// Maximum age of the oldest change that a crash loses: from 100ms to 1h
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    max_loss: Duration,
    /// Memory that each takes at most: 2G, or auto, which follows what is in it up to half
    /// of what is available to all of them
    #[arg(long, value_name = "SIZE", default_value = "auto", value_parser = size)]
    size: Size,
    /// The command, and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs the command.
pub(super) fn run(args: &RunArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen_beside_program();
    let code = run_on(args, &screen).unwrap_or_else(|error| {
        screen.error(&error);
        error.exit_code()
    });
    screen.end(code)
}

fn run_on(args: &RunArgs, screen: &Screen) -> Result<ExitCode> {
    let own = std::env::current_exe().map_err(|error| Error::Internal(error.to_string()))?;
    let options = RunOptions {
        folders: args.folders.clone(),
        command: args.command.clone(),
        max_loss: args.max_loss,
        bytes: match args.size {
            Size::Auto => None,
            Size::Bytes(bytes) => Some(bytes),
        },
        runtime: user_dirs::runtime().ok(),
        keeper: vec![own.into(), "ram".into(), "keep-run".into()],
    };
    let RunOutcome { command, lost, .. } = job(&options, &|words| screen.warn(words))?;
    for lost in &lost {
        let (folder, why) = (lost.folder.display(), &lost.why);
        screen.warn(&format!("the last changes in {folder} are NOT on the disk: {why}"));
    }
    let code = match command {
        Ok(end) => command_code(end.ended),
        Err(error) => {
            screen.warn(&error.to_string());
            let is_there = error.kind() != std::io::ErrorKind::NotFound;
            ExitCode::Program(if is_there { NOT_STARTED } else { NOT_FOUND })
        }
    };
    Ok(if lost.is_empty() { code } else { ExitCode::Incomplete })
}

/// Bring the folders of a command to the disk
#[derive(Args)]
pub(crate) struct KeepArgs {
    /// Maximum age of the changes that a crash loses, in milliseconds
    #[arg(long)]
    max_loss_ms: u64,
    /// Take over from another that was killed
    #[arg(long)]
    adopt: bool,
    /// Bytes that a folder has in any case, for each, if their sizes follow their use
    #[arg(long)]
    least: Vec<u64>,
    /// The folder for notes of what each run takes
    #[arg(long)]
    runtime: Option<PathBuf>,
    /// The first process of the command's namespaces
    first: i32,
    /// Both sides of each folder
    sides: Vec<i32>,
}

/// Runs the process that outlives the command and its starter.
pub(super) fn run_keeper(args: &KeepArgs) -> ExitCode {
    let options = KeepOptions {
        max_loss: Duration::from_millis(args.max_loss_ms),
        adopts: args.adopt,
        first: args.first,
        sides: args.sides.chunks_exact(2).map(|sides| (sides[0], sides[1])).collect(),
        least: args.least.clone(),
        runtime: args.runtime.clone(),
    };
    let report = |reported: &SyncerEvent| {
        let Ok(mut line) = serde_json::to_string(reported) else { return };
        line.push('\n');
        let is_reported = std::io::stdout().lock().write_all(line.as_bytes()).is_ok();
        // The starter was killed: this process then prints the report in its place.
        if let (false, SyncerEvent::Failed { why, .. }) = (is_reported, reported) {
            let line = format!("fsure: the last changes in RAM are NOT on the disk: {why}\n");
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
    };
    keep(&options, &report).map_or_else(|error| error.exit_code(), |()| ExitCode::Clean)
}
