//! `fsure verify`.

use clap::Args;
use fsure::catalog::Place;
use fsure::job::verify;
use fsure::words::{ExitCode, Monitor, Verdict};

use super::OutputArgs;
use super::effort::EffortArgs;
use super::roots::{RootArgs, Run};

/// Read everything again, from the medium, and judge it against the record
///
/// Reads past the page cache wherever the file system allows it, and says
/// where it did not. Changes nothing but the dates of verification.
#[derive(Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    roots: RootArgs,
    #[command(flatten)]
    effort: EffortArgs,
}

const HIDDEN: &[Verdict] = &[Verdict::Ignored];

/// Runs the command.
pub(crate) fn run(args: &VerifyArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen(args.roots.all, HIDDEN);
    let options = args.roots.options(args.effort.effort());
    let job = |place: &Place, monitor: &dyn Monitor| verify(place, &options, monitor);
    let run = Run { command: "verify", args: &args.roots, output, screen: &screen, job: &job };
    run.run(&|_| Ok(()))
}
