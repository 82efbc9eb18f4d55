//! `fsure ram sync`.

use crate::report::storage::ram as report;
use clap::Args;
use fsure_core::{ExitCode, Result};
use fsure_ram::service::{Request, Response};

use super::super::OutputArgs;
use super::super::save_args::SaveArgs;
use super::super::screen::Screen;

/// Make one generation now; returns when it is on the disk
#[derive(Args)]
pub(super) struct SyncArgs {
    #[command(flatten)]
    which: super::Which,
    #[command(flatten)]
    save: SaveArgs,
}

/// Runs the command.
pub(super) fn run(args: &SyncArgs, output: &OutputArgs, screen: &Screen) -> Result<ExitCode> {
    args.save.begin(screen, "ram")?;
    super::ask_each(&args.which, screen, Request::Sync, |path, answer| {
        let Response::Synced(done) = answer else { return ExitCode::Internal };
        screen.result_line(&report::json("synced", path, done));
        if !output.json {
            screen.print(&report::synced(path, done));
        }
        if done.unsettled.is_empty() { ExitCode::Clean } else { ExitCode::Differences }
    })
}
