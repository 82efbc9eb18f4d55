//! `fsure protect`.

use std::path::PathBuf;

use clap::Args;
use fsure::catalog::locate;
use fsure::job::{Options, ProtectOptions, protect};
use fsure::report::protect as report;
use fsure::words::{ExitCode, Protected, Result, escape};

use super::OutputArgs;
use super::screen::Screen;

/// Keep recovery data beside the record, for heal to repair damage without a copy
///
/// Reed-Solomon code over what is recorded, in groups of up to 64 MiB; update
/// keeps it in step from then on. It lies on the same disk: it repairs bad
/// sectors and flipped bits, and replaces no backup. Run again, it checks all
/// recovery data and makes anew what is damaged of them.
#[derive(Args)]
pub(crate) struct ProtectArgs {
    /// The root folder of a record
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// How much of each group can be repaired, 0.1% to 100% [default: 5%, or as
    /// it was]
    #[arg(long, value_name = "PERCENT", value_parser = per_mille)]
    redundancy: Option<u32>,
    /// Use the record in FILE, and keep the recovery data beside it
    #[arg(long, value_name = "FILE")]
    catalog: Option<PathBuf>,
    /// Go on although the root is another file system or empty
    #[arg(long)]
    force: bool,
}

/// Runs the command.
pub(crate) fn run(args: &ProtectArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen(false, &[]);
    let root = args.path.to_string_lossy().into_owned();
    let code = match protected(args, &screen) {
        Ok(done) => {
            if output.json {
                screen.print(&report::json_summary(&root, &done));
            } else if !output.quiet {
                let shown = escape(&fsure_os::path::bytes(&args.path));
                screen.print(&report::text_summary(&shown, &done));
            }
            done.exit_code()
        }
        Err(error) => {
            screen.error(&error);
            error.exit_code()
        }
    };
    screen.end(code)
}

fn protected(args: &ProtectArgs, screen: &Screen) -> Result<Protected> {
    let place = locate(&args.path, args.catalog.as_deref())?;
    let task = screen.begin(args.path.to_string_lossy().into_owned(), false);
    let common = Options { force: args.force, ..Options::default() };
    protect(&place, &ProtectOptions { common, per_mille: args.redundancy }, &task)
}

fn per_mille(text: &str) -> std::result::Result<u32, String> {
    let number = text.trim_end_matches('%').trim().parse::<f64>().ok();
    let number = number.map(|percent| (percent * 10.0).round());
    let number = number.filter(|number| (1.0..=1000.0).contains(number));
    number.map(|number| number as u32).ok_or_else(|| "a share such as 5%, 0.1% to 100%".to_owned())
}
