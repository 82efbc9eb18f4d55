//! `fsure verify`.

use clap::Args;
use fsure::job::verify;
use fsure::words::{ExitCode, Verdict};

use super::OutputArgs;
use super::effort::EffortArgs;
use super::roots::{RootArgs, run_all};

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
    run_all("verify", &args.roots, output, &screen, &|_| Ok(()), &|place| {
        verify(place, &args.roots.options(args.effort.effort()), &screen)
    })
}
