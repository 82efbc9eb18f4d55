//! `fsure workload`, hidden: the programs that come with `fsure crash`, and their
//! checks. They are processes of their own, since they are to do what a user's
//! program may do to a simulated drive.

use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::path::PathBuf;

use crate::workload;
use crate::workload::{Ended, Workload};
use clap::{Args, Subcommand};
use fsure_core::ExitCode;

use super::built_in::built_in;

/// Run a workload of `fsure crash`, or check what a cut left of it
#[derive(Args)]
pub(crate) struct WorkloadArgs {
    #[command(subcommand)]
    command: WorkloadCommand,
}

#[derive(Subcommand)]
enum WorkloadCommand {
    /// Write into an empty folder, and print `ACK n` when all up to n is safe
    Run {
        /// Name of the workload
        #[arg(value_parser = built_in())]
        name: &'static Workload,
        /// Empty folder to write into
        folder: PathBuf,
    },
    /// Print `LAST n` if all up to n is there; exit with 1 if it is corrupt
    Check {
        /// Name of the workload
        #[arg(value_parser = built_in())]
        name: &'static Workload,
        /// Folder to check
        folder: PathBuf,
    },
}

/// Runs the command.
pub(crate) fn run(args: &WorkloadArgs) -> ExitCode {
    match &args.command {
        WorkloadCommand::Run { name, folder } => {
            let mut acknowledge = |number| match print_line(&format!("ACK {number}\n")) {
                Ok(()) => ControlFlow::Continue(()),
                // No process reads the output any more.
                Err(_) => ControlFlow::Break(()),
            };
            match workload::run(name, folder, &mut acknowledge) {
                Ok(Ended::Stopped) => ExitCode::Clean,
                Ok(Ended::Full) => {
                    report("there is no room left");
                    ExitCode::Clean
                }
                Err(error) => {
                    report(&error.to_string());
                    error.exit_code()
                }
            }
        }
        WorkloadCommand::Check { name, folder } => {
            let checked = workload::check(name, folder);
            if let Some(why) = checked.corrupt {
                report(&why);
                return ExitCode::Differences;
            }
            match checked.last.map(|last| print_line(&format!("LAST {last}\n"))) {
                Some(Err(_)) => ExitCode::Incomplete,
                _ => ExitCode::Clean,
            }
        }
    }
}

fn print_line(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(line.as_bytes())?;
    stdout.flush()
}

fn report(words: &str) {
    // If this fails, there is no output left to report it on.
    let _ = writeln!(io::stderr(), "{words}");
}
