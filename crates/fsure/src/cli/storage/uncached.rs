//! `fsure uncached`, and the keeper of its control group.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use crate::report::storage::{command_code, uncached as report};
use clap::Args;
use fsure_core::{Error, ExitCode, shell_quoted, units};
use fsure_os::process_tree::{NOT_FOUND, NOT_STARTED};
use fsure_os::uncached::{self, CACHE_MIN, Failure, Options};

use super::OutputArgs;
use super::screen::Screen;

/// Run a command without filling the page cache
///
/// Takes what the command reads and writes out of memory again, and leaves there what was there
/// before. For backups, copies and searches that would push out the files of other
/// programs. Works for every program, without a library in it. Needs Linux, and root or a
/// control group of one's own.
/// Exit codes: the command's own, 128 and the number if a signal ended it; 2 refused,
/// 126 and 127 not started.
#[derive(Args)]
pub(crate) struct UncachedArgs {
    /// The most page cache that the command may have while it runs, such as 64M; its own memory
    /// is not limited. auto: 128 MiB, or a 16th of a smaller machine's memory
    #[arg(long, value_name = "SIZE|auto", value_parser = limit, default_value = "auto")]
    limit: Limit,
    /// The command, and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The most page cache.
#[derive(Clone, Copy)]
enum Limit {
    Auto,
    Bytes(u64),
}

fn limit(text: &str) -> Result<Limit, String> {
    if text == "auto" {
        return Ok(Limit::Auto);
    }
    match units::size_option(text, "auto, or a size such as 64M")? {
        bytes if bytes < CACHE_MIN => Err(format!("at least {}", units::size(CACHE_MIN))),
        bytes => Ok(Limit::Bytes(bytes)),
    }
}

/// Runs the command.
pub(crate) fn run(args: &UncachedArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen_beside_program();
    let code =
        run_on(args, output, &screen).unwrap_or_else(|failure| failed(args, &screen, &failure));
    screen.end(code)
}

fn run_on(args: &UncachedArgs, output: &OutputArgs, screen: &Screen) -> Result<ExitCode, Failure> {
    let options = Options {
        command: args.command.clone(),
        cache: match args.limit {
            Limit::Auto => uncached::auto_cache(),
            Limit::Bytes(bytes) => bytes,
        },
        keeper: std::env::current_exe().map_err(Failure::Refused)?,
    };
    screen.print_start();
    let done = uncached::run(&options)?;
    if output.json {
        screen.end_output_of_program();
        screen.print(&report::json_line(&done, options.cache));
    } else if !output.quiet {
        for line in report::text(&done, options.cache).lines() {
            screen.note(line);
        }
    }
    if !done.bounded {
        screen.warn(
            "the process that bounds the command's page cache was killed: the command might have \
             had more of it than allowed",
        );
    }
    Ok(command_code(done.end.ended))
}

/// Says why there is no result, and returns the exit code for it.
fn failed(args: &UncachedArgs, screen: &Screen, failure: &Failure) -> ExitCode {
    let (why, hint) = match failure {
        Failure::Refused(error) => (refused(error), None),
        Failure::Denied { error, is_delegable } => {
            (refused(error), Some(remedy(args, *is_delegable)))
        }
        Failure::NotStarted(error) => {
            (format!("cannot start '{}': {error}", args.command[0].to_string_lossy()), None)
        }
        Failure::Lost(error) => (format!("the command's control group is lost: {error}"), None),
    };
    let code = screen.failed(&Error::FailedPrecondition { message: why, hint });
    match failure {
        Failure::NotStarted(error) if error.kind() == io::ErrorKind::NotFound => {
            ExitCode::Program(NOT_FOUND)
        }
        Failure::NotStarted(_) => ExitCode::Program(NOT_STARTED),
        Failure::Refused(_) | Failure::Denied { .. } | Failure::Lost(_) => code,
    }
}

fn refused(error: &io::Error) -> String {
    format!("cannot bound the page cache of a command: {error}")
}

/// Returns the command line that works for a user who may make no control group here.
fn remedy(args: &UncachedArgs, is_delegable: bool) -> String {
    let words = args.command.iter().map(|word| shell_quoted(Path::new(word)));
    let limit = match args.limit {
        Limit::Auto => String::new(),
        Limit::Bytes(bytes) => format!("--limit {bytes}B "),
    };
    let command = format!("fsure uncached {limit}-- {}", words.collect::<Vec<_>>().join(" "));
    match is_delegable {
        true => format!(
            "run it as root, or in a control group that systemd gives to you: \
             systemd-run --user --scope {command}"
        ),
        false => format!("run it as root: sudo {command}"),
    }
}

/// Bound the page cache of a control group, and remove it when it is empty
#[derive(Args)]
pub(crate) struct UncachedKeepArgs {
    /// Its folder
    group: PathBuf,
    /// Bytes of page cache
    cache: u64,
}

/// Runs the keeper.
pub(crate) fn keep(args: &UncachedKeepArgs) -> ExitCode {
    match uncached::keep(&args.group, args.cache, &io::stdin()) {
        Ok(()) => ExitCode::Clean,
        Err(_) => ExitCode::Incomplete,
    }
}
