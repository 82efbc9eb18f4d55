//! `fsure status`.

use clap::Args;
use fsure::catalog::Place;
use fsure::job::status;
use fsure::scan::Effort;
use fsure::words::{ExitCode, Monitor, Verdict};

use super::OutputArgs;
use super::roots::{RootArgs, Run};

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
    let options = args.roots.options(Effort::default());
    let job = |place: &Place, _, monitor: &dyn Monitor| status(place, &options, monitor);
    let run = Run { command: "status", args: &args.roots, output, screen: &screen, job: &job };
    run.run(&|_| Ok(()))
}
