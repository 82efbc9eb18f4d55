//! `fsure import`.

use std::path::{Path, PathBuf};

use crate::report::{RootPaths, import_export};
use clap::{Args, ValueHint};
use fsure_core::{ExitCode, Result};
use fsure_integrity::catalog::locate;
use fsure_integrity::manifest::{ManifestFormat, ManifestSource};
use fsure_integrity::model::Allowed;
use fsure_integrity::{Imported, Options, import};

use super::OutputArgs;
use super::access_args::AccessArgs;
use super::choices::any_format;
use super::headings::{NOT_THE_ROOT, RECORD};
use super::list_advice;
use super::screen::Screen;

/// Make or complete a record from a list, without reading any data
///
/// Digests from the list count as recorded and not as verified: the next verify
/// judges them. What is recorded already stays as it is, and a list that contradicts
/// it is reported. The files of a list of CRC-32 values (SFV) are read, and those
/// that match are recorded by digests that deserve the name.
#[derive(Args)]
pub(crate) struct ImportArgs {
    /// The list, by another program or by 'fsure export', or a bag; '-' is standard
    /// input
    #[arg(value_name = "LIST", value_hint = ValueHint::AnyPath)]
    list: PathBuf,
    /// The folder that the names in it are relative to [default: where the list
    /// is; of standard input, the current folder]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    root: Option<PathBuf>,
    /// Keep the record in FILE instead of DIR/.fsure/catalog.db
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = RECORD)]
    catalog: Option<PathBuf>,
    /// Format of the list, if its content does not show it
    #[arg(long, value_name = "FORMAT", value_parser = any_format(), ignore_case = true)]
    format: Option<ManifestFormat>,
    /// Record the files of the list as missing although not one of them is there
    #[arg(long, help_heading = NOT_THE_ROOT)]
    allow_missing: bool,
    #[command(flatten)]
    access: AccessArgs,
}

/// Runs the command.
pub(crate) fn run(args: &ImportArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen(false, &[]);
    match args.run(&screen, output) {
        Ok((paths, imported)) => {
            if output.json {
                let root = paths.root().to_string_lossy();
                screen.print(&import_export::imported_json(&root, &imported));
            } else if !output.quiet {
                screen.print(&import_export::imported(&paths, &imported));
            }
            screen.end(imported.exit_code())
        }
        Err(error) => screen.failed(&error),
    }
}

impl ImportArgs {
    fn run(&self, screen: &Screen, output: &OutputArgs) -> Result<(RootPaths, Imported)> {
        let here = Path::new(".");
        let source = ManifestSource::open(&self.list, self.format, screen).map_err(|error| {
            list_advice::advise(error, &self.list, self.root.as_deref().unwrap_or(here))
        })?;
        let root = self.root.as_deref().unwrap_or(&source.folder);
        let place = locate(root, self.catalog.as_deref())?;
        screen.starts_on(std::slice::from_ref(&place));
        let task = screen.begin(screen.paths(&place), false);
        let options = Options {
            access: self.access.access(),
            allowed: Allowed { missing: self.allow_missing, ..Allowed::default() },
            backup_folders: output.user.backup.clone(),
            ..Options::default()
        };
        let imported = import(&place, &source, &options, &task)?;
        drop(task);
        Ok((screen.paths(&place), imported))
    }
}
