//! The environment as a source of options: `FSURE_THREADS=4` is `--threads 4` for every command
//! that has it. The command line goes before it, and it goes before `config.toml`.
//!
//! An empty variable counts as unset. The processes that fsure starts of itself heed none: they
//! inherit those of the user, who has not called them.

use std::ffi::{OsStr, OsString};

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::{Arg, ArgMatches, Command};

/// Parses a command line, with the environment for what it does not say.
pub(super) fn parse(command: Command, line: &[OsString]) -> Result<ArgMatches, Error> {
    let mut command = heed(command, true);
    let parsed = command.try_get_matches_from_mut(line);
    parsed.map_err(|error| name_variable(error, &command, line))
}

/// Returns a command whose options heed no variable: the user has not called it.
pub(super) fn ignore(command: Command) -> Command {
    heed(command, false)
}

/// Takes the variables from the options if they are empty or not heeded.
fn heed(command: Command, is_heeded: bool) -> Command {
    let is_empty = |arg: &Arg| value_of(arg).is_some_and(|value| value.is_empty());
    let command = command.mut_args(|arg| match is_heeded && !is_empty(&arg) {
        true => arg,
        false => arg.env(None),
    });
    command.mut_subcommands(|command| heed(command, is_heeded))
}

fn value_of(arg: &Arg) -> Option<OsString> {
    std::env::var_os(arg.get_env()?)
}

/// Adds to an error the name of the variable that it comes from.
fn name_variable(mut error: Error, command: &Command, line: &[OsString]) -> Error {
    if !matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation) {
        return error;
    }
    let Some(ContextValue::String(shown)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let shown = shown.clone();
    let mut called = command;
    for word in line.iter().skip(1) {
        called = called.find_subcommand(word).unwrap_or(called);
    }
    let args = called.get_arguments().chain(command.get_arguments());
    let bad = args.filter(|arg| arg.to_string() == shown && !is_given(arg, line));
    let variable = bad.filter_map(Arg::get_env).next().map(OsStr::to_string_lossy);
    if let Some(variable) = variable {
        let tip = format!("the value comes from the environment variable '{variable}'");
        let tip = ContextValue::StyledStrs(vec![StyledStr::from(tip)]);
        error.insert(ContextKind::Suggested, tip);
    }
    error
}

/// Returns true if the command line itself has an option.
fn is_given(arg: &Arg, line: &[OsString]) -> bool {
    let names = arg.get_long_and_visible_aliases().unwrap_or_default();
    let hidden = arg.get_all_aliases().unwrap_or_default();
    let long: Vec<_> = names.iter().chain(&hidden).map(|name| format!("--{name}")).collect();
    let short = arg.get_short().map(|short| format!("-{short}"));
    line.iter().map(|word| word.to_string_lossy()).any(|word| {
        let name = word.split('=').next().unwrap_or_default();
        long.iter().any(|long| long == name) || short.as_ref().is_some_and(|s| word.starts_with(s))
    })
}
