//! `fsure log`.

use std::path::{Path, PathBuf};

use crate::report::log as report;
use clap::{Args, ValueHint};
use fsure_core::{ExitCode, Result};
use fsure_integrity::catalog::{RootLocation, locate_record};
use fsure_integrity::{History, log};

use super::OutputArgs;
use super::headings::RECORD;
use super::root_runner::refuse_unknown_root;
use super::screen::Screen;
use super::signed_by_args::public_key;

/// Show what changed when, what was verified, and who signed it
///
/// Lines after the last signature, and those of runs of verify, could have been
/// written by any other user. With --signed-by the newest has to be signed with that
/// key.
#[derive(Args)]
pub(crate) struct LogArgs {
    /// A folder that has a record [default: the current folder]
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    path: Option<PathBuf>,
    /// Use the record in FILE instead of PATH/.fsure/catalog.db; needs PATH
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = RECORD)]
    catalog: Option<PathBuf>,
    /// Check that the newest generation is signed with this key: a public key
    /// of minisign, as a file or as text
    #[arg(long, value_name = "KEY", value_hint = ValueHint::FilePath)]
    signed_by: Option<String>,
}

/// Runs the command.
pub(crate) fn run(args: &LogArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen(false, &[]);
    match args.run(&screen) {
        Ok((place, history)) => {
            let root = place.root.to_string_lossy();
            let code = history.exit_code();
            if output.json {
                report::json(&root, &history).iter().for_each(|line| screen.print(line));
            } else {
                screen.print(&report::text(&screen.paths(&place), &history));
            }
            screen.end(code)
        }
        Err(error) => screen.failed(&error),
    }
}

impl LogArgs {
    fn run(&self, screen: &Screen) -> Result<(RootLocation, History)> {
        let key = self.signed_by.as_deref().map(public_key).transpose()?;
        refuse_unknown_root(self.path.as_deref(), self.catalog.as_deref(), "log", "")?;
        let path = self.path.as_deref().unwrap_or(Path::new("."));
        let place = locate_record(path, self.catalog.as_deref())?;
        screen.starts_on(std::slice::from_ref(&place));
        let history = log(&place, key.as_ref())?;
        Ok((place, history))
    }
}
