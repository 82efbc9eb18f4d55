//! `fsure ram verify`.

use crate::report::storage::ram as report;
use clap::Args;
use fsure_core::{ExitCode, Result};
use fsure_ram::service::{Request, Response};

use super::super::OutputArgs;
use super::super::screen::Screen;

/// Read the RAM side and the disk side, and compare; ends with 1 if they differ
#[derive(Args)]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    which: super::Which,
}

/// Runs the command.
pub(super) fn run(args: &VerifyArgs, output: &OutputArgs, screen: &Screen) -> Result<ExitCode> {
    super::ask_each(&args.which, screen, Request::Verify, |path, answer| {
        let Response::Verified { differences } = answer else { return ExitCode::Internal };
        let json = || report::json("verified", path, answer);
        screen.print(&if output.json { json() } else { report::verified(path, differences) });
        if differences.is_empty() { ExitCode::Clean } else { ExitCode::Differences }
    })
}
