//! `fsure ram unbind`.

use crate::report::storage::ram as report;
use clap::Args;
use fsure_core::{ExitCode, Result};
use fsure_ram::service::{Request, Response};

use super::super::OutputArgs;
use super::super::screen::Screen;

/// Bring everything to the disk, prove it, and unmount
#[derive(Args)]
pub(super) struct UnbindArgs {
    #[command(flatten)]
    which: super::Which,
}

/// Runs the command.
pub(super) fn run(args: &UnbindArgs, output: &OutputArgs, screen: &Screen) -> Result<ExitCode> {
    super::ask_each(&args.which, screen, Request::Unbind, |path, answer| {
        let Response::Ended(ended) = answer else { return ExitCode::Internal };
        let json = || report::json("unbound", path, ended);
        screen.print(&if output.json { json() } else { report::ended(path, ended) });
        ended.exit_code()
    })
}
