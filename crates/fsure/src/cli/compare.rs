//! `fsure compare`.

use std::path::{Path, PathBuf};

use crate::report::compare::Side;
use crate::report::{RootPaths, compare as report, last_word};
use clap::{Args, ValueHint};
use fsure_core::{Error, ExitCode};
use fsure_integrity::manifest::ManifestFormat;
use fsure_integrity::{CompareSide, Options, compare};

use super::OutputArgs;
use super::choices::any_format;
use super::io_args::EffortArgs;
use super::user_dirs::ACCEPT_UNSIGNED;

/// Compare two folders by content: the same, different, moved
///
/// Files without a current record are read, with the digest that the other side has;
/// nothing is recorded and nothing written. Dates do not matter, and neither does
/// what was recorded before a file changed. A list contains no folders and no links,
/// so these do not matter either if one side is a list.
#[derive(Args)]
pub(crate) struct CompareArgs {
    /// A folder, the catalog of one, or a list by another program ('-' is standard
    /// input)
    #[arg(value_name = "HERE", value_hint = ValueHint::AnyPath)]
    here: PathBuf,
    /// Another folder, catalog or list, to compare it with
    #[arg(value_name = "THERE", value_hint = ValueHint::AnyPath)]
    there: PathBuf,
    /// Compare the records only; read neither of the trees
    #[arg(long)]
    records: bool,
    /// Format of a list, if its content does not show it
    #[arg(long, value_name = "FORMAT", value_parser = any_format(), ignore_case = true)]
    format: Option<ManifestFormat>,
    #[command(flatten)]
    effort: EffortArgs,
}

/// Returns true if two paths lead to the same place.
fn is_same(here: &Path, there: &Path) -> bool {
    let found = |path| fsure_os::path::without_links(path).ok();
    found(here).is_some_and(|here| Some(here) == found(there))
}

/// Runs the command.
pub(crate) fn run(args: &CompareArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen(false, &[]);
    let options = Options {
        effort: args.effort.effort(&output.user),
        exclude_always: output.user.exclude.clone(),
        ..Options::default()
    };
    if [&args.here, &args.there].iter().all(|path| *path == Path::new("-")) {
        return screen.failed(&Error::Usage {
            message: "standard input can be one side only".to_owned(),
            hint: Some("name a folder, a record or a list for the other side".to_owned()),
        });
    }
    if output.user.signed_by.as_ref().is_some_and(|key| key != ACCEPT_UNSIGNED) {
        screen.warn(
            "compare checks no signature, whatever signed_by in your config.toml says; 'fsure \
             verify' does",
        );
    }
    if !output.json && is_same(&args.here, &args.there) {
        screen.warn("both sides are the same folder or file, so that nothing can differ");
    }
    for side in [&args.here, &args.there] {
        if fsure_os::user_file::names(side).is_ok_and(|names| names.is_empty()) {
            let side = side.display();
            screen.warn(&format!("{side} is empty: if a disk should be mounted there, mount it"));
        }
    }
    let task = screen.begin(RootPaths::at(&args.here), false);
    let side = |path: &PathBuf| CompareSide { path: path.clone(), format: args.format };
    let compared =
        compare(&side(&args.here), &side(&args.there), args.records, &options, &task, &mut |one| {
            screen.print(&if output.json {
                report::json_line(one)
            } else {
                report::text_line(one)
            });
        });
    drop(task);
    let code = match compared {
        Ok(found) => {
            let code = found.exit_code();
            if output.json {
                screen.print(&report::json_summary(&found, code.number()));
            } else if !output.quiet {
                let sides = [&args.here, &args.there].map(|path| Side::of(path));
                screen.print(&report::text_summary(&found, &sides));
                screen.print(&last_word::exit_code(code));
            }
            code
        }
        Err(error) => screen.failed(&error),
    };
    screen.end(code)
}
