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
    /// The folder [default: all that were in RAM]
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    folder: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn run(args: &RecoverArgs, output: &OutputArgs, screen: &Screen) -> Result<ExitCode> {
    let program = super::program()?;
    // A user may recover a folder of their own; which were in RAM only root sees.
    let registry = args.folder.as_ref().map_or_else(super::registry, |_| Registry::of_user(None));
    let call = CallerContext {
        stop: &super::signals(),
        report: &|reported| super::report(screen, reported),
    };
    let folders = match &args.folder {
        Some(folder) => vec![folder.clone()],
        None => left_over(&registry)?,
    };
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
