//! `fsure flush trace`.

use std::ffi::OsString;

use crate::report::storage::{command_code, flush_trace as report};
use clap::Args;
use fsure_core::{ExitCode, Result};
use fsure_hot::flush_trace;

use super::OutputArgs;
use super::save_args::SaveArgs;
use super::screen::Screen;

/// Measure what flushes cost a command of yours
///
/// Runs the command and reports the time that it and all that it starts spent in each
/// kind of flush, by file, its share of the whole, and what 'fsure defer' would save at
/// most. Static programs and io_uring are seen, too. Root only (eBPF); a server that runs
/// already is not watched. Exit codes: the command's own; 2 not allowed or not started.
#[derive(Args)]
pub(crate) struct FlushTraceArgs {
    #[command(flatten)]
    save: SaveArgs,
    /// The command, and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The name of the command in its lines.
const NAME: &str = "flush trace";

/// Runs the command.
pub(crate) fn run(args: &FlushTraceArgs, output: &OutputArgs) -> ExitCode {
    let screen = output.screen_beside_program();
    let code = trace(args, output, &screen).unwrap_or_else(|error| screen.failed(&error));
    screen.end(code)
}

fn trace(args: &FlushTraceArgs, output: &OutputArgs, screen: &Screen) -> Result<ExitCode> {
    screen.starts(NAME);
    args.save.begin(screen, NAME)?;
    screen.print_start();
    let traced = flush_trace(&args.command)?;
    if output.json {
        screen.end_output_of_program();
    }
    report::lines(&traced).iter().for_each(|line| screen.result_line(line));
    if !output.json && !output.quiet {
        screen.print_beside(&report::text(&traced));
    }
    Ok(command_code(traced.command.ended))
}
