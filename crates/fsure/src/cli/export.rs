//! `fsure export`.

use std::path::{Path, PathBuf};

use crate::report::{RootPaths, import_export};
use clap::{Args, ValueHint};
use fsure_core::{ExitCode, Result};
use fsure_integrity::catalog::locate_record;
use fsure_integrity::manifest::ManifestFormat;
use fsure_integrity::{ExportTarget, Exported, Options, export};
use fsure_os::output::Destination;

use super::OutputArgs;
use super::access_args::NoWaitArgs;
use super::choices::written_format;
use super::headings::{OUTPUT, RECORD};
use super::io_args::EffortArgs;
use super::path_list::PathListArgs;
use super::root_runner::{refuse_unknown_root, select_listed};
use super::screen::Screen;

/// Write the record as a list that other programs read
///
/// Digests that the list needs and the record lacks are computed first, for files
/// whose content is the recorded one. A name that the list cannot express is
/// reported, and the exit code is then 5.
#[derive(Args)]
#[command(mut_arg("files_from", |arg| arg.help("List the paths in FILE only, a line each, all of them \
    below PATH; '-' is standard input")))]
pub(crate) struct ExportArgs {
    /// A folder or file that is recorded; names in the list are relative to it
    /// [default: the current folder]
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    path: Option<PathBuf>,
    #[command(flatten)]
    list: PathListArgs,
    /// The record is in FILE instead of PATH/.fsure/catalog.db; needs PATH
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = RECORD)]
    catalog: Option<PathBuf>,
    #[command(flatten)]
    wait: NoWaitArgs,
    #[command(flatten)]
    effort: EffortArgs,
    /// Format of the list
    #[arg(long, value_parser = written_format(), ignore_case = true, help_heading = OUTPUT)]
    format: ManifestFormat,
    /// Write to FILE instead of standard output ('-'); for bagit and ascmhl, which
    /// are several files, to a folder
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::AnyPath,
          help_heading = OUTPUT)]
    output: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &ExportArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen(false, &[]);
    match args.run(&screen, output) {
        Ok((paths, exported)) => {
            args.report(&paths, &exported, output, &screen);
            screen.end(exported.exit_code())
        }
        Err(error) => screen.failed(&error),
    }
}

impl ExportArgs {
    fn run(&self, screen: &Screen, output: &OutputArgs) -> Result<(RootPaths, Exported)> {
        refuse_unknown_root(
            self.path.as_deref(),
            self.catalog.as_deref(),
            "export",
            &self.options(),
        )?;
        let path = self.path.as_deref().unwrap_or(Path::new("."));
        let listed = self.list.paths(screen)?;
        let place = locate_record(path, self.catalog.as_deref())?;
        let place = select_listed(place, listed.as_deref(), "export")?;
        let options = Options {
            access: self.wait.access(),
            effort: self.effort.effort(&output.user),
            backup_folders: output.user.backup.clone(),
            ..Options::default()
        };
        screen.starts_on(std::slice::from_ref(&place));
        let task = screen.begin(screen.paths(&place), false);
        let exported = match self.file() {
            Some(path) => export(&place, self.format, &options, ExportTarget::Path(path), &task),
            None => {
                let mut results = screen.results();
                export(&place, self.format, &options, ExportTarget::Stream(&mut results), &task)
            }
        };
        Ok((screen.paths(&place), exported?))
    }

    /// The options that a command line needs beside the record.
    fn options(&self) -> String {
        format!(" --format {}", self.format.name())
    }

    /// The file to write to; `None` for standard output.
    fn file(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| !Destination::is_standard_output(path))
    }

    /// Reports what was done, unless standard output is the list itself.
    fn report(&self, paths: &RootPaths, exported: &Exported, output: &OutputArgs, screen: &Screen) {
        match self.file() {
            Some(_) if output.json => screen.print(&import_export::exported_json(exported)),
            Some(to) if !output.quiet => {
                screen.print(&import_export::exported(paths, exported, to));
            }
            _ => {}
        }
    }
}
