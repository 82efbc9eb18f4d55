//! `fsure ram recover`.

use std::path::PathBuf;

use crate::report::storage::ram as report;
use clap::Args;
use fsure_core::{ExitCode, Result};
use fsure_ram::service::{CallerContext, Registry, left_over, recover_folder};

use super::super::OutputArgs;
use super::super::screen::Screen;

/// Complete or discard what was under way when a crash came
#[derive(Args)]
pub(super) struct RecoverArgs {
    /// The folders [default: all that were in RAM]
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    folders: Vec<PathBuf>,
}

/// Runs the command.
pub(super) fn run(args: &RecoverArgs, output: &OutputArgs, screen: &Screen) -> Result<ExitCode> {
    let program = super::program()?;
    // A user may recover a folder of their own; which were in RAM only root sees.
    let is_of_all = args.folders.is_empty();
    let registry = if is_of_all { super::registry() } else { Registry::of_user(None) };
    let call = CallerContext {
        stop: &super::signals(),
        report: &|reported| super::report(screen, reported),
    };
    let folders = if is_of_all { left_over(&registry)? } else { args.folders.clone() };
    let mut code = ExitCode::Clean;
    for folder in folders {
        match recover_folder(&registry, &program, &folder, &call) {
            Ok(outcome) => {
                let form = if output.json { report::recovered_json } else { report::recovered };
                screen.print(&form(&folder, &outcome));
            }
            // The others are not to wait for this one.
            Err(error) => {
                screen.error(&error);
                code = code.worse(error.exit_code());
            }
        }
    }
    Ok(code)
}
