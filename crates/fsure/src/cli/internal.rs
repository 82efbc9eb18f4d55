//! The commands with which fsure calls itself: helpers that have to be processes of their
//! own. They have a command line apart from the one for people, so that no help, manual page
//! or completion shows them.

use std::ffi::OsString;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use fsure_core::ExitCode;

#[cfg(feature = "storage")]
use super::storage::{self, StorageHelper};
use super::{OutputArgs, environment, loop_keeper};

/// The command line of a helper.
#[derive(Parser)]
#[command(name = "fsure", disable_help_subcommand = true)]
pub(super) struct Internal {
    #[command(subcommand)]
    helper: Helper,
    #[command(flatten)]
    output: OutputArgs,
}

/// A process that fsure starts for itself.
#[derive(Subcommand)]
enum Helper {
    // The tests of every build have loop devices.
    LoopKeeper(loop_keeper::LoopKeeperArgs),
    #[cfg(feature = "storage")]
    #[command(flatten)]
    Storage(StorageHelper),
}

/// Returns the helper that a command line asks for; `None` if it is a user's own.
pub(super) fn asked_for(args: &[OsString]) -> Option<Result<Internal, clap::Error>> {
    let mut words = args.iter().skip(1);
    let mut command = &Internal::command();
    while command.has_subcommands() {
        command = command.find_subcommand(words.next()?)?;
    }
    let parsed = environment::ignore(Internal::command()).try_get_matches_from(args);
    Some(parsed.and_then(|parsed| Internal::from_arg_matches(&parsed)))
}

/// Runs the helper.
pub(super) fn run(internal: &Internal) -> ExitCode {
    match &internal.helper {
        Helper::LoopKeeper(args) => loop_keeper::run(args),
        #[cfg(feature = "storage")]
        Helper::Storage(helper) => storage::run_helper(helper, &internal.output),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_internal(line: &str) -> bool {
        let args: Vec<_> = line.split(' ').map(OsString::from).collect();
        asked_for(&args).is_some()
    }

    #[test]
    fn the_definitions_are_sound() {
        Internal::command().debug_assert();
    }

    #[test]
    fn only_whole_names_of_helpers_are_taken_from_the_user() {
        #[cfg(feature = "storage")]
        for line in [
            "fsure family outer 1 / -- true",
            "fsure flush-again a b",
            "fsure ram keep id --alone",
            "fsure ram keep-run --max-loss-ms 100 1 2",
            "fsure workload run append .",
        ] {
            assert!(is_internal(line), "{line}");
        }
        for line in
            ["fsure", "fsure ram", "fsure ram status", "fsure workload", "fsure update sweep"]
        {
            assert!(!is_internal(line), "{line}");
        }
    }
}
