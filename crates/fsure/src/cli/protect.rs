//! `fsure protect`.

use std::path::PathBuf;

use crate::report::protect as report;
use clap::{Args, ValueHint};
use fsure_core::{ExitCode, Result, escape};
use fsure_integrity::catalog::{RootLocation, locate};
use fsure_integrity::model::{Allowed, ProtectOutcome};
use fsure_integrity::parity::folder;
use fsure_integrity::{Options, ProtectOptions, protect};

use super::OutputArgs;
use super::access_args::AccessArgs;
use super::headings::{NOT_THE_ROOT, RECORD};
use super::screen::Screen;

/// Keep recovery data, so that heal repairs damage without a copy
///
/// Reed-Solomon code over what is recorded, in groups of up to 64 MiB; update
/// keeps it in step from then on. It lies on the same disk: it repairs bad
/// sectors and flipped bits, and replaces no backup. Run again, it checks all
/// recovery data and makes anew what is damaged of them.
#[derive(Args)]
pub(crate) struct ProtectArgs {
    /// The root folder of a record
    #[arg(value_name = "PATH", value_hint = ValueHint::DirPath)]
    path: PathBuf,
    /// Share of each group that can be repaired, 0.1% to 100% in steps of 0.1%
    /// [default: 5%, or as it was]
    #[arg(long, value_name = "PERCENT", value_parser = per_mille)]
    redundancy: Option<u32>,
    /// Use the record in FILE, and keep the recovery data beside it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = RECORD)]
    catalog: Option<PathBuf>,
    /// Go on although the root is empty, as a mount point is without its disk
    #[arg(long, help_heading = NOT_THE_ROOT)]
    allow_empty: bool,
    /// Go on although the root is another file system than the recorded one
    #[arg(long, help_heading = NOT_THE_ROOT)]
    allow_other_disk: bool,
    /// Both
    #[arg(long, hide = true)]
    force: bool,
    #[command(flatten)]
    access: AccessArgs,
}

/// Runs the command.
pub(crate) fn run(args: &ProtectArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen(false, &[]);
    let root = args.path.to_string_lossy().into_owned();
    let code = match protected(args, &screen) {
        Ok((place, done)) => {
            if output.json {
                screen.print(&report::json_summary(&root, &done));
            } else if !output.quiet {
                let shown = escape(&fsure_os::path::bytes(&args.path));
                let (folder, paths) = (folder(&place.catalog), screen.paths(&place));
                screen.print(&report::text_summary(&shown, &folder, &paths, &done));
            }
            done.exit_code()
        }
        Err(error) => screen.failed(&error),
    };
    screen.end(code)
}

fn protected(args: &ProtectArgs, screen: &Screen) -> Result<(RootLocation, ProtectOutcome)> {
    let place = locate(&args.path, args.catalog.as_deref())?;
    screen.starts_on(std::slice::from_ref(&place));
    let task = screen.begin(screen.paths(&place), false);
    let allowed = Allowed {
        empty: args.allow_empty || args.force,
        other_disk: args.allow_other_disk || args.force,
        missing: false,
    };
    let common = Options { access: args.access.access(), allowed, ..Options::default() };
    let done = protect(&place, &ProtectOptions { common, per_mille: args.redundancy }, &task)?;
    drop(task);
    Ok((place, done))
}

/// A share in steps of a thousandth: what would have to be rounded is refused, so that no
/// user has another redundancy than the one asked for.
fn per_mille(text: &str) -> std::result::Result<u32, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
    let number = percent.map(|percent| (percent * 10.0, (percent * 10.0).round()));
    let is_step = |(exact, number): &(f64, f64)| {
        (exact - number).abs() < 1e-6 && (1.0..=1000.0).contains(number)
    };
    let number = number.filter(is_step).map(|(_, number)| number as u32);
    number.ok_or_else(|| "a share such as 5%, from 0.1% to 100% in steps of 0.1%".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_taken_as_it_is_or_not_at_all() {
        for (text, share) in
            [("5%", 50), ("5", 50), ("0.1%", 1), ("0.3 %", 3), ("100%", 1000), ("29.9%", 299)]
        {
            assert_eq!(per_mille(text), Ok(share), "{text}");
        }
        for text in ["0%", "0.05%", "0.15%", "5.01%", "100.1%", "-5%", "5%%", "nan", "inf", ""] {
            assert!(per_mille(text).is_err(), "{text}");
        }
    }
}
