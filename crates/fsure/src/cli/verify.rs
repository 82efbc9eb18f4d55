//! `fsure verify`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use fsure_core::ExitCode;
use fsure_integrity::catalog::RootLocation;
use fsure_integrity::manifest::{ManifestFormat, ManifestSource};
use fsure_integrity::model::{ScanMonitor, Verdict};
use fsure_integrity::{Options, verify, verify_against};

use super::OutputArgs;
use super::access_args::AccessArgs;
use super::choices::any_format;
use super::headings::RECORD;
use super::io_args::EffortArgs;
use super::list_advice;
use super::path_list::PathListArgs;
use super::root_runner::{MetricsArgs, RootArgs, RootRunner};
use super::screen::Screen;
use super::signed_by_args::SignedByArgs;

/// Read every file again, from the medium, and name what is damaged
///
/// Reads past the page cache wherever the file system allows it, and reports where it
/// did not. Changes nothing but the dates of verification.
#[derive(Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    roots: RootArgs,
    #[command(flatten)]
    list: PathListArgs,
    #[command(flatten)]
    effort: EffortArgs,
    #[command(flatten)]
    metrics: MetricsArgs,
    #[command(flatten)]
    access: AccessArgs,
    /// Compare the files with LIST instead of the record: a list by another program
    /// ('-' is standard input), or a bag; dates play no part then, and nothing is
    /// written
    #[arg(long, value_name = "LIST", conflicts_with_all = ["catalog", "signed_by", "files_from"],
          value_hint = ValueHint::AnyPath, help_heading = RECORD)]
    against: Option<PathBuf>,
    /// Format of LIST, if its content does not show it
    #[arg(long, value_name = "FORMAT", value_parser = any_format(), ignore_case = true,
          requires = "against", help_heading = RECORD)]
    format: Option<ManifestFormat>,
    #[command(flatten)]
    signed_by: SignedByArgs,
}

const HIDDEN: &[Verdict] = &[Verdict::Ignored];

/// Runs the command.
pub(crate) fn run(args: &VerifyArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen(args.roots.all, HIDDEN);
    let effort = args.effort.effort(&output.user);
    let options = args.roots.options(args.access.access(), effort, &output.user, &screen);
    let options = options.and_then(|options| {
        let signed_by = match &args.against {
            Some(_) => None,
            None => args.signed_by.signed_by(&output.user, options.access)?,
        };
        Ok(Options { signed_by, ..options })
    });
    let read = options.and_then(|options| Ok((options, args.list.paths(&screen)?)));
    let (options, listed) = match read {
        Ok(read) => read,
        Err(error) => return screen.failed(&error),
    };
    if let Some(list) = &args.against {
        return against(args, list, &options, output, &screen);
    }
    let job = |place: &RootLocation, _, monitor: &dyn ScanMonitor| verify(place, &options, monitor);
    let roots = args.roots.with_listed(listed);
    let run = RootRunner {
        command: "verify",
        args: &roots,
        output,
        screen: &screen,
        job: &job,
        metrics: &args.metrics,
    };
    run.run(&|_| Ok(()))
}

fn against(
    args: &VerifyArgs,
    list: &Path,
    options: &Options,
    output: &OutputArgs,
    screen: &Screen,
) -> ExitCode {
    let source = match ManifestSource::open(list, args.format, screen) {
        Ok(source) => source,
        Err(error) => {
            return screen.failed(&list_advice::advise(error, list, args.roots.first()));
        }
    };
    let job = |place: &RootLocation, _, monitor: &dyn ScanMonitor| {
        verify_against(place, &source, options, monitor)
    };
    let roots = args.roots.of_folders();
    RootRunner {
        command: "verify",
        args: &roots,
        output,
        screen,
        job: &job,
        metrics: &args.metrics,
    }
    .run(&|_| Ok(()))
}
