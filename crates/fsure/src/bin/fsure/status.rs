//! `fsure status`.

use clap::Args;
use fsure::job::status;
use fsure::scan::Effort;
use fsure::words::{ExitCode, Verdict};

use super::OutputArgs;
use super::roots::{RootArgs, run_all};

/// Compare names, sizes and dates only; no data is read
///
/// A file whose size and date are as recorded counts as ok here, whatever its
/// content has become: only verify can tell.
#[derive(Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    roots: RootArgs,
}

const HIDDEN: &[Verdict] = &[Verdict::Ignored];

/// Runs the command.
pub(crate) fn run(args: &StatusArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen(args.roots.all, HIDDEN);
    run_all("status", &args.roots, output, &screen, &|_| Ok(()), &|place| {
        status(place, &args.roots.options(Effort::default()), &screen)
    })
}
