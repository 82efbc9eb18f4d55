//! `fsure ram doctor`.

use std::path::PathBuf;

use crate::report::storage::doctor as report;
use clap::Args;
use fsure_core::{ExitCode, Result};
use fsure_ram::doctor;

use super::super::screen::Screen;
use super::super::{OutputArgs, user_dirs};

/// Report what this machine lacks for RAM folders, what is wrong with those that are
/// there, and what to do
///
/// Changes nothing. Exit codes: 0 nothing is to be done now, 1 something is.
#[derive(Args)]
pub(super) struct DoctorArgs {
    /// Folders that a crash may have left in disorder, beside those that are known
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    folders: Vec<PathBuf>,
}

/// Runs the command.
pub(super) fn run(args: &DoctorArgs, output: &OutputArgs, screen: &Screen) -> Result<ExitCode> {
    let runtime = user_dirs::runtime().ok();
    let facts = doctor::gather(&super::registry(), runtime.as_deref(), &args.folders)?;
    let mut findings = doctor::judge(&facts);
    if output.quiet {
        findings.retain(|finding| finding.state == doctor::FindingState::Act);
    }
    let text = if output.json { report::json_lines } else { report::text }(&findings);
    if !text.is_empty() {
        screen.print(&text);
    }
    Ok(report::exit_code(&findings))
}
