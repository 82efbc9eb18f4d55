//! `fsure compare`.

use std::path::PathBuf;

use clap::Args;
use fsure::job::{Options, compare};
use fsure::report::compare as report;
use fsure::words::{Comparison, ExitCode};

use super::OutputArgs;
use super::effort::EffortArgs;

/// Compare two trees by content: the same, different, only here or there, moved
///
/// What has no current record is read; nothing is recorded and nothing written.
/// Dates do not matter, and neither does what was recorded before a file changed.
#[derive(Args)]
pub(crate) struct CompareArgs {
    /// A folder, or the catalog of one
    #[arg(value_name = "HERE")]
    here: PathBuf,
    /// Another one
    #[arg(value_name = "THERE")]
    there: PathBuf,
    /// Take the records for the trees; look at neither
    #[arg(long)]
    records: bool,
    #[command(flatten)]
    effort: EffortArgs,
}

/// Runs the command.
pub(crate) fn run(args: &CompareArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen(false, &[]);
    let options = Options {
        effort: args.effort.effort(&output.user),
        exclude_always: output.user.exclude.clone(),
        ..Options::default()
    };
    let task = screen.begin(args.here.to_string_lossy().into_owned(), false);
    let compared = compare(&args.here, &args.there, args.records, &options, &task, &mut |one| {
        screen.print(&if output.json { report::json_line(one) } else { report::text_line(one) });
    });
    drop(task);
    let code = match compared {
        Ok(found) => {
            let code = code_of(&found);
            if output.json {
                screen.print(&report::json_summary(&found, code.number()));
            } else if !output.quiet {
                screen.print(&report::text_summary(&found));
            }
            code
        }
        Err(error) => {
            screen.error(&error);
            error.exit_code()
        }
    };
    screen.end(code)
}

fn code_of(found: &Comparison) -> ExitCode {
    let Comparison { different, only_here, only_there, moved, .. } = *found;
    if found.bad_records > 0 {
        ExitCode::RecordUntrusted
    } else if found.unknown > 0 {
        ExitCode::Unread
    } else if different + only_here + only_there + moved > 0 {
        ExitCode::Differences
    } else {
        ExitCode::Clean
    }
}
