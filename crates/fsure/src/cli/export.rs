//! `fsure export`.

use std::path::{Path, PathBuf};

use crate::report::import_export;
use clap::Args;
use fsure_core::{ExitCode, Result};
use fsure_integrity::catalog::locate;
use fsure_integrity::manifest::ManifestFormat;
use fsure_integrity::{ExportTarget, Exported, Options, export};
use fsure_os::output::Destination;

use super::OutputArgs;
use super::io_args::EffortArgs;
use super::screen::Screen;

/// Write the record as a list that other programs read
///
/// Digests that the list needs and the record lacks are computed first, for files
/// whose content is the recorded one. A name that the list cannot express is
/// reported, and the exit code is then 5.
#[derive(Args)]
pub(crate) struct ExportArgs {
    /// A folder or file that is recorded; names in the list are relative to it
    #[arg(value_name = "PATH", default_value = ".")]
    path: PathBuf,
    /// The record is in FILE instead of PATH/.fsure/catalog.db
    #[arg(long, value_name = "FILE")]
    catalog: Option<PathBuf>,
    #[command(flatten)]
    effort: EffortArgs,
    /// Format of the list: sha256sums, sha512sums, b3sum, hashdeep, bagit, ascmhl,
    /// mtree, json
    #[arg(long, value_parser = format)]
    format: ManifestFormat,
    /// Write to FILE instead of standard output ('-'); for bagit and ascmhl, which
    /// are several files, to a folder
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn format(name: &str) -> std::result::Result<ManifestFormat, String> {
    let known = || ManifestFormat::ALL.into_iter().filter(|format| format.is_written());
    known().find(|format| format.name() == name).ok_or_else(|| {
        let names: Vec<_> = known().map(ManifestFormat::name).collect();
        format!("known are {}", names.join(", "))
    })
}

/// Runs the command.
pub(crate) fn run(args: &ExportArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen(false, &[]);
    match args.run(&screen, output) {
        Ok(exported) => {
            args.report(&exported, output, &screen);
            screen.end(exported.exit_code())
        }
        Err(error) => {
            screen.error(&error);
            error.exit_code()
        }
    }
}

impl ExportArgs {
    fn run(&self, screen: &Screen, output: &OutputArgs) -> Result<Exported> {
        let place = locate(&self.path, self.catalog.as_deref())?;
        let options = Options {
            effort: self.effort.effort(&output.user),
            backup_folders: output.user.backup.clone(),
            ..Options::default()
        };
        screen.starts_on(std::slice::from_ref(&place));
        let task = screen.begin(screen.paths(&place), false);
        match self.file() {
            Some(path) => export(&place, self.format, &options, ExportTarget::Path(path), &task),
            None => {
                let mut results = screen.results();
                export(&place, self.format, &options, ExportTarget::Stream(&mut results), &task)
            }
        }
    }

    /// The file to write to; `None` for standard output.
    fn file(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| !Destination::is_standard_output(path))
    }

    /// Reports what was done, unless standard output is the list itself.
    fn report(&self, exported: &Exported, output: &OutputArgs, screen: &Screen) {
        match self.file() {
            Some(_) if output.json => screen.print(&import_export::exported_json(exported)),
            Some(to) if !output.quiet => screen.print(&import_export::exported(exported, to)),
            _ => {}
        }
    }
}

/// Parses the name of the format of a list that is read.
pub(crate) fn any_format(name: &str) -> std::result::Result<ManifestFormat, String> {
    ManifestFormat::from_name(name).ok_or_else(|| {
        let names: Vec<_> = ManifestFormat::ALL.into_iter().map(ManifestFormat::name).collect();
        format!("known are {}", names.join(", "))
    })
}
