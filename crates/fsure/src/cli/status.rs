//! `fsure status`.

use std::collections::VecDeque;

use crate::report::age as report;
use crate::report::last_word::RootEnd;
use clap::Args;
use fsure_core::{Clock, ExitCode};
use fsure_integrity::catalog::RootLocation;
use fsure_integrity::model::{AgeHistogram, ScanMonitor, Verdict};
use fsure_integrity::scan::IoOptions;
use fsure_integrity::{Options, RecordAccess, age, age_by_folder, nested_place, status};

use super::OutputArgs;
use super::path_list::PathListArgs;
use super::root_runner::{MetricsArgs, RootArgs, RootRunner, asked_roots, find, print_last_word};
use super::screen::Screen;
use super::signed_by_args::SignedByArgs;

/// Compare names, sizes and dates only; no data is read
///
/// A file whose size and date are as recorded counts as ok here, whatever its content
/// has become: only verify can detect that.
#[derive(Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    roots: RootArgs,
    #[command(flatten)]
    list: PathListArgs,
    /// Show how much was verified when, by the record alone
    #[arg(long, conflicts_with_all = ["signed_by", "min_generation", "expect_head", "files_from"])]
    age: bool,
    #[command(flatten)]
    signed_by: SignedByArgs,
}

const HIDDEN: &[Verdict] = &[Verdict::Ignored];

/// Runs the command.
pub(crate) fn run(args: &StatusArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen(args.roots.all, HIDDEN);
    if args.age {
        return show_ages(args, output, &screen);
    }
    let access = RecordAccess::default();
    let options = args.roots.options(access, IoOptions::default(), &output.user, &screen);
    let options = options.and_then(|options| {
        let signed_by = args.signed_by.signed_by(&output.user, access)?;
        Ok(Options { signed_by, ..options })
    });
    let read = options.and_then(|options| Ok((options, args.list.paths(&screen)?)));
    let (options, listed) = match read {
        Ok(read) => read,
        Err(error) => return screen.failed(&error),
    };
    let job = |place: &RootLocation, _, monitor: &dyn ScanMonitor| status(place, &options, monitor);
    let (command, metrics) = ("status", &MetricsArgs::NONE);
    let roots = args.roots.with_listed(listed);
    let run = RootRunner { command, args: &roots, output, screen: &screen, job: &job, metrics };
    run.run(&|_| Ok(()))
}

fn show_ages(args: &StatusArgs, output: &OutputArgs, screen: &Screen) -> ExitCode {
    let mut places = match find(&args.roots.of_records(), "status") {
        Ok(places) => VecDeque::from(places),
        Err(error) => return screen.failed(&error),
    };
    screen.starts_on(places.make_contiguous());
    let asked_roots = asked_roots(places.make_contiguous());
    let (mut all, mut code, mut ends) = (AgeHistogram::default(), ExitCode::Clean, Vec::new());
    while let Some(place) = places.pop_front() {
        let root = place.root.to_string_lossy().into_owned();
        let paths = screen.paths(&place);
        let task = screen.begin(paths.clone(), !ends.is_empty() || !places.is_empty());
        let clock = Clock::default();
        // The report for a person has no line for each folder.
        let ages = match output.json {
            true => age_by_folder(&place, &clock, &task).map(|(all, each)| (all, Some(each))),
            false => age(&place, &clock, &task).map(|all| (all, None)),
        };
        drop(task);
        match ages {
            Ok((ages, folders)) => {
                if let Some(folders) = folders {
                    let lines = report::json_folders(&root, &folders);
                    lines.iter().for_each(|line| screen.print(line));
                    screen.print(&report::json_line(&root, &ages));
                } else {
                    screen.print(&report::text(&paths, &ages));
                }
                ends.push(RootEnd::of_ages(&paths, &ages));
                code = code.worse(ages.exit_code());
                let nested = ages.nested_roots.iter().map(|path| nested_place(&place, path));
                for nested in nested.rev().filter(|nested| !asked_roots.contains(&nested.root)) {
                    places.push_front(nested);
                }
                all.join(&ages);
            }
            Err(error) => {
                screen.error(&error);
                ends.push(RootEnd::failed(&paths, &error));
                code = code.worse(error.exit_code());
            }
        }
        if screen.stop_requested().is_some() {
            break;
        }
    }
    let code = screen.stop_requested().unwrap_or(code);
    if output.json {
        screen.print(&report::json_summary(&all, code));
    }
    ends.extend(places.iter().map(|place| RootEnd::not_reached(&screen.paths(place))));
    print_last_word(ends, code, output, screen);
    screen.end(code)
}
