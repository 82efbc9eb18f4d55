//! `fsure dupes`.

use std::path::PathBuf;

use clap::Args;
use fsure::catalog::locate;
use fsure::job::dupes;
use fsure::report::dupes as report;
use fsure::words::{Duplicates, ExitCode, Result, escape};

use super::OutputArgs;
use super::screen::Screen;

/// Show files of equal content, by their records; nothing is read or changed
///
/// Hard links of one file are no copies: they are shown as such and save
/// nothing. Files that are not as recorded are left out and counted; 'fsure
/// update' first compares them too. Each root is looked at by itself.
#[derive(Args)]
pub(crate) struct DupesArgs {
    /// Folders; each belongs to the nearest root above it that has a record
    /// [default: the current folder]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Use the record in FILE instead of PATH/.fsure/catalog.db
    #[arg(long, value_name = "FILE")]
    catalog: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &DupesArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen(false, &[]);
    let here = [PathBuf::from(".")];
    let paths = if args.paths.is_empty() { &here[..] } else { &args.paths };
    let (mut code, mut all) = (ExitCode::Clean, Duplicates::default());
    for path in paths {
        match run_one(path, args, output, &screen) {
            Ok(found) => {
                code = code.worse(code_of(&found));
                add(&mut all, &found);
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
    path: &std::path::Path,
    args: &DupesArgs,
    output: &OutputArgs,
    screen: &Screen,
) -> Result<Duplicates> {
    let place = locate(path, args.catalog.as_deref())?;
    let root = place.root.to_string_lossy().into_owned();
    let shown = escape(&fsure_os::path::bytes(&place.root));
    let task = screen.begin(root.clone(), false);
    let mut group = 0;
    let found = dupes(&place, &task, &mut |duplicate| {
        if output.json {
            screen.print(&report::json_line(&root, duplicate));
        } else {
            let is_first = std::mem::replace(&mut group, duplicate.group) != duplicate.group;
            screen.print(&report::text_line(&shown, duplicate, is_first));
        }
    })?;
    drop(task);
    if output.json {
        screen.print(&report::json_summary(Some(&root), &found, code_of(&found).number()));
    } else if !output.quiet {
        screen.print(report::text_summary(&shown, &found).trim_end());
    }
    Ok(found)
}

fn code_of(found: &Duplicates) -> ExitCode {
    if found.bad_records > 0 { ExitCode::RecordUntrusted } else { ExitCode::Clean }
}

fn add(all: &mut Duplicates, found: &Duplicates) {
    all.groups += found.groups;
    all.files += found.files;
    all.links += found.links;
    all.bytes_saved += found.bytes_saved;
    all.stale += found.stale;
    all.bad_records += found.bad_records;
    all.was_stopped |= found.was_stopped;
}
