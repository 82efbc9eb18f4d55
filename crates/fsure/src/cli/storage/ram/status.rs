//! `fsure ram status`.

use std::path::PathBuf;

use crate::report::storage::ram as report;
use clap::Args;
use fsure_core::{ExitCode, Result};
use fsure_ram::service::{FolderStatus, status};

use super::super::OutputArgs;
use super::super::save_args::SaveArgs;
use super::super::screen::Screen;

/// Number of messages that are shown, the latest ones.
const MESSAGES_SHOWN_MAX: usize = 10;

/// Show what would be lost now, and what was done; ends with 1 if something is wrong
#[derive(Args)]
pub(super) struct StatusArgs {
    /// The folders [default: all]
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    folders: Vec<PathBuf>,
    #[command(flatten)]
    save: SaveArgs,
}

/// Runs the command.
pub(super) fn run(args: &StatusArgs, output: &OutputArgs, screen: &Screen) -> Result<ExitCode> {
    args.save.begin(screen, "ram")?;
    let registry = super::registry();
    let (mut all, mut code) = (vec![], ExitCode::Clean);
    for folder in &args.folders {
        match status(&registry, Some(folder)) {
            Ok(known) => all.extend(known),
            // The others are shown nevertheless.
            Err(error) => code = code.worse(screen.failed(&error)),
        }
    }
    if args.folders.is_empty() {
        all = status(&registry, None)?;
    } else if all.is_empty() {
        return Ok(code);
    }
    let of = |known: &FolderStatus| registry.events(Some(&known.entry.id), MESSAGES_SHOWN_MAX);
    let reported = match &*args.folders {
        [] => registry.events(None, MESSAGES_SHOWN_MAX),
        _ => all.iter().flat_map(of).collect(),
    };
    let code = code.worse(report::status_code(&all));
    screen.result_line(&report::status_json(&all, &reported, code));
    if !output.json {
        screen.print(&report::status(&all, &reported));
    }
    Ok(code)
}
