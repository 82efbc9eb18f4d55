//! `fsure ram status`.

use std::path::PathBuf;

use crate::report::storage::ram as report;
use clap::Args;
use fsure_core::{ExitCode, Result};
use fsure_ram::service::status;

use super::super::OutputArgs;
use super::super::save_args::SaveArgs;
use super::super::screen::Screen;

/// Number of messages that are shown, the latest ones.
const MESSAGES_SHOWN_MAX: usize = 10;

/// Show what would be lost now, and what was done; ends with 1 if something is wrong
#[derive(Args)]
pub(super) struct StatusArgs {
    /// The folder [default: all]
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    folder: Option<PathBuf>,
    #[command(flatten)]
    save: SaveArgs,
}

/// Runs the command.
pub(super) fn run(args: &StatusArgs, output: &OutputArgs, screen: &Screen) -> Result<ExitCode> {
    args.save.begin(screen, "ram")?;
    let registry = super::registry();
    let all = status(&registry, args.folder.as_deref())?;
    let only = args.folder.as_ref().and_then(|_| all.first()).map(|known| &*known.entry.id);
    let reported = registry.events(only, MESSAGES_SHOWN_MAX);
    screen.result_line(&report::status_json(&all, &reported));
    if !output.json {
        screen.print(&report::status(&all, &reported));
    }
    Ok(report::status_code(&all))
}
