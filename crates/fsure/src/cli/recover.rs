//! `fsure recover`.

use std::path::{Path, PathBuf};

use crate::report::recover as report;
use clap::{Args, ValueHint};
use fsure_core::{ExitCode, Result};
use fsure_integrity::catalog::{RootLocation, locate};
use fsure_integrity::{CatalogRepair, RecoverOptions, locate_backup, recover};

use super::OutputArgs;
use super::access_args::AccessArgs;
use super::headings::RECORD;
use super::root_runner::refuse_unknown_root;

/// Put a damaged record together from what is sound and its backup
///
/// Takes only rows that a checksum proves: from the pages of the damaged record that
/// can still be read, from the backup beside it, from backups kept elsewhere
/// ('--from') and from what travels with the data. Reports whether anything is
/// lacking. The damaged record is kept beside the new one. A record that is sound is
/// left alone.
#[derive(Args)]
pub(crate) struct RecoverArgs {
    /// A folder or file; it belongs to the nearest root above it that has a record
    /// or a backup of one [default: the current folder]
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    path: Option<PathBuf>,
    /// Take rows from the backup in FILE, too; can be repeated
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    from: Vec<PathBuf>,
    #[command(flatten)]
    access: AccessArgs,
    /// Recover the record in FILE instead of PATH/.fsure/catalog.db; needs PATH
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = RECORD)]
    catalog: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &RecoverArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen(false, &[]);
    let place = match args.place() {
        Ok(place) => place,
        Err(error) => return screen.failed(&error),
    };
    let options = RecoverOptions {
        from: args.from.clone(),
        access: args.access.access(),
        backup_folders: output.user.backup.clone(),
    };
    let root = place.root.to_string_lossy().into_owned();
    screen.starts_on(std::slice::from_ref(&place));
    let task = screen.begin(screen.paths(&place), false);
    let recovered: Result<CatalogRepair> = recover(&place, &options, &task);
    drop(task);
    match recovered {
        Ok(recovery) => {
            if output.json {
                screen.print(&report::json(&root, &recovery));
            } else if !output.quiet {
                screen.print(&report::text(&screen.paths(&place), &recovery));
            }
            screen.end(recovery.exit_code())
        }
        Err(error) => screen.end(screen.failed(&error)),
    }
}

impl RecoverArgs {
    fn place(&self) -> Result<RootLocation> {
        refuse_unknown_root(self.path.as_deref(), self.catalog.as_deref(), "recover", "")?;
        let path = self.path.as_deref().unwrap_or(Path::new("."));
        if self.catalog.is_none()
            && let Some(place) = locate_backup(path)?
        {
            return Ok(place);
        }
        locate(path, self.catalog.as_deref())
    }
}
