//! `fsure scrub`.

use std::time::{Duration, Instant};

use clap::Args;
use fsure_core::{ExitCode, units};
use fsure_integrity::catalog::RootLocation;
use fsure_integrity::model::{ScanMonitor, Verdict};
use fsure_integrity::scan::Budget;
use fsure_integrity::{Options, ScrubOptions, scrub};
use fsure_os::device::StorageDevice;
use fsure_os::priority;
use fsure_os::root_dir::Root;

use super::OutputArgs;
use super::access_args::AccessArgs;
use super::io_args::EffortArgs;
use super::root_runner::{MetricsArgs, RootArgs, RootRunner};
use super::screen::Screen;
use super::signed_by_args::SignedByArgs;

/// Verify what was not verified for longest, as far as a budget goes
///
/// What was not good the last time comes first. The next run goes on where this one
/// ends, inside a large file too. Only recorded files are checked: new and moved ones
/// are found by status and update.
///
/// It takes no '--files-from': age decides on what is read, and 'fsure verify
/// --files-from' reads single files now.
///
/// Every night by cron: '0 2 * * * /usr/bin/fsure scrub --budget 1h --idle /srv/photos'. For
/// systemd, the packages bring a timer: fsure-scrub@.timer.
#[derive(Args)]
pub(crate) struct ScrubArgs {
    #[command(flatten)]
    roots: RootArgs,
    #[command(flatten)]
    metrics: MetricsArgs,
    #[command(flatten)]
    access: AccessArgs,
    /// End after a time (90s, 30m, 1h) for all roots together, or after so much
    /// content of each root (500GiB, 10%) [default: all that is due]
    #[arg(long, value_name = "AMOUNT", value_parser = budget)]
    budget: Option<Budget>,
    /// Let all other processes go first, on the processor and on the disk
    #[arg(long)]
    idle: bool,
    /// Leave out what was verified more recently, such as 90d
    #[arg(long, value_name = "TIME", value_parser = age)]
    max_age: Option<Duration>,
    /// End with exit code 5 if anything that was due is left
    #[arg(long)]
    require_complete: bool,
    #[command(flatten)]
    effort: EffortArgs,
    #[command(flatten)]
    signed_by: SignedByArgs,
}

fn budget(text: &str) -> Result<Budget, String> {
    let percent = text.strip_suffix('%').and_then(|number| number.trim_end().parse().ok());
    let percent = percent.filter(|percent| (0.0..=100.0).contains(percent)).map(Budget::Percent);
    let time = || units::parse_span(text).map(Budget::Time);
    // 5m are minutes, and a user need not know that 5M would be bytes.
    let is_size = text.ends_with(['b', 'B']);
    let bytes = || units::parse_size(text).filter(|_| is_size).map(Budget::Bytes);
    percent.or_else(time).or_else(bytes).ok_or_else(|| match units::parse_size(text) {
        Some(_) if !units::is_bare_number(text) => format!("as a size, write {text}iB or {text}B"),
        _ => "a time such as 90s, 30m or 1h, a size such as 500GiB, or a share such as 10%"
            .to_owned(),
    })
}

fn age(text: &str) -> Result<Duration, String> {
    units::age_option(text, "a time such as 12h or 90d")
}

const HIDDEN: &[Verdict] = &[Verdict::Ignored];

/// Runs the command.
pub(crate) fn run(args: &ScrubArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen(args.roots.all, HIDDEN);
    if args.idle {
        for refused in priority::lowest() {
            screen.warn(&format!("--idle: {refused}"));
        }
    }
    let began = Instant::now();
    let effort = args.effort.effort(&output.user);
    let common = args.roots.options(args.access.access(), effort, &output.user, &screen);
    let common = common.and_then(|common| {
        let signed_by = args.signed_by.signed_by(&output.user, common.access)?;
        Ok(Options { signed_by, ..common })
    });
    let common = match common {
        Ok(common) => common,
        Err(error) => return screen.failed(&error),
    };
    let job = |place: &RootLocation, roots: usize, monitor: &dyn ScanMonitor| {
        let budget = match args.budget.unwrap_or(Budget::All) {
            Budget::Time(time) => Budget::Time(time.saturating_sub(began.elapsed())),
            other => other,
        };
        let options = ScrubOptions {
            common: common.clone(),
            budget,
            roots: u32::try_from(roots).unwrap_or(u32::MAX),
            max_age: args.max_age,
            must_be_complete: args.require_complete,
        };
        scrub(place, &options, monitor)
    };
    let run = RootRunner {
        command: "scrub",
        args: &args.roots,
        output,
        screen: &screen,
        job: &job,
        metrics: &args.metrics,
    };
    run.run(&|places| {
        places.iter().filter(|_| args.idle).for_each(|place| warn_of_queue(place, &screen));
        Ok(())
    })
}

/// Warns if a low priority has no effect on the disk.
fn warn_of_queue(place: &RootLocation, screen: &Screen) {
    // A root that cannot be opened is reported in its turn.
    let Ok(root) = Root::open(&place.root) else { return };
    if priority::is_heeded_by(&StorageDevice::of(&root, b"")) == Some(false) {
        screen.warn(&format!(
            "--idle: the queue of the disk under {} knows no priorities, so that reads are not \
             held back there; '--rate' does that",
            place.root.display()
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_read_as_people_write_them() {
        for (text, expected) in [
            ("1h", Some(Budget::Time(Duration::from_secs(3_600)))),
            ("5m", Some(Budget::Time(Duration::from_secs(300)))),
            ("500GiB", Some(Budget::Bytes(500 << 30))),
            ("2 MB", Some(Budget::Bytes(2_000_000))),
            ("0B", Some(Budget::Bytes(0))),
            ("10%", Some(Budget::Percent(10.0))),
            ("0.5 %", Some(Budget::Percent(0.5))),
            ("5M", None),
            ("500", None),
            ("101%", None),
            ("-1%", None),
            ("NaN%", None),
            ("", None),
        ] {
            assert_eq!(budget(text).ok(), expected, "{text}");
        }
    }
}
