//! `fsure dupes`.

use std::path::PathBuf;

use crate::report::dupes as report;
use clap::{Args, ValueHint};
use fsure_core::{ExitCode, Result};
use fsure_integrity::catalog::{RootLocation, locate};
use fsure_integrity::model::Duplicates;
use fsure_integrity::{Options, dupes};

use super::OutputArgs;
use super::headings::RECORD;
use super::io_args::EffortArgs;
use super::root_runner::refuse_unknown_root;
use super::screen::Screen;

/// Show files of equal content; nothing is changed or recorded
///
/// A file that is as recorded is not read. One that is not, or not recorded at all,
/// is read if another file has its size; what is read is forgotten afterwards, unless
/// 'fsure update' has recorded it before. Hard links of one file are not copies: they
/// are shown as such and save nothing. Each root is searched by itself.
#[derive(Args)]
pub(crate) struct DupesArgs {
    /// Folders, recorded or not; each belongs to the nearest root above it that
    /// has a record [default: the current folder]
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    paths: Vec<PathBuf>,
    /// Use the record in FILE instead of PATH/.fsure/catalog.db; needs PATH
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = RECORD)]
    catalog: Option<PathBuf>,
    #[command(flatten)]
    effort: EffortArgs,
}

/// Runs the command.
pub(crate) fn run(args: &DupesArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen(false, &[]);
    let here = [PathBuf::from(".")];
    let paths = if args.paths.is_empty() { &here[..] } else { &args.paths };
    let (mut code, mut all) = (ExitCode::Clean, Duplicates::default());
    let named = args.paths.first().map(PathBuf::as_path);
    if let Err(error) = refuse_unknown_root(named, args.catalog.as_deref(), "dupes", "") {
        return screen.failed(&error);
    }
    let places: Vec<_> = paths.iter().map(|path| locate(path, args.catalog.as_deref())).collect();
    let found: Vec<_> = places.iter().flatten().cloned().collect();
    screen.starts_on(&found);
    for place in places {
        match place.and_then(|place| run_one(&place, args, output, &screen)) {
            Ok(found) => {
                code = code.worse(found.exit_code());
                all.add(&found);
            }
            Err(error) => {
                code = code.worse(error.exit_code());
                screen.error(&error);
            }
        }
        if let Some(stopped) = screen.stop_requested() {
            code = stopped;
            break;
        }
    }
    if output.json {
        screen.print(&report::json_summary(None, &all, code.number()));
    }
    screen.end(code)
}

fn run_one(
    place: &RootLocation,
    args: &DupesArgs,
    output: &OutputArgs,
    screen: &Screen,
) -> Result<Duplicates> {
    let root = place.root.to_string_lossy().into_owned();
    let paths = screen.paths(place);
    let task = screen.begin(paths.clone(), false);
    let mut group = 0;
    let options = Options { effort: args.effort.effort(&output.user), ..Options::default() };
    let found = dupes(place, &options, &task, &mut |duplicate| {
        if output.json {
            screen.print(&report::json_line(&root, duplicate));
        } else {
            let is_first = std::mem::replace(&mut group, duplicate.group) != duplicate.group;
            screen.print(&report::text_line(&paths, duplicate, is_first));
        }
    })?;
    drop(task);
    if output.json {
        screen.print(&report::json_summary(Some(&root), &found, found.exit_code().number()));
    } else if !output.quiet {
        screen.print(report::text_summary(&paths, &found).trim_end());
    }
    Ok(found)
}
