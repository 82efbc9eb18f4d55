//! `fsure ram sync`.

use crate::report::storage::ram as report;
use clap::Args;
use fsure_core::{ExitCode, Result};
use fsure_ram::service::{Request, Response};

use super::super::OutputArgs;
use super::super::screen::Screen;

/// Make one generation now; returns when it is on the disk
#[derive(Args)]
pub(super) struct SyncArgs {
    #[command(flatten)]
    which: super::Which,
}

/// Runs the command.
pub(super) fn run(args: &SyncArgs, output: &OutputArgs, screen: &Screen) -> Result<ExitCode> {
    super::ask_each(&args.which, screen, Request::Sync, |path, answer| {
        let Response::Synced(done) = answer else { return ExitCode::Internal };
        let json = || report::json("synced", path, done);
        screen.print(&if output.json { json() } else { report::synced(path, done) });
        if done.unsettled.is_empty() { ExitCode::Clean } else { ExitCode::Differences }
    })
}
