//! `fsure flush-again`, hidden: asks for a flush again and again while the drive
//! below fails a write. A process of its own, as all that touches a simulated
//! drive.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;
use fsure_core::ExitCode;
use fsure_crash::ask_again_and_again;

/// Print what a flush reports after a write that failed
#[derive(Args)]
pub(crate) struct FlushAgainArgs {
    /// Folder of the file
    folder: PathBuf,
    /// Path that exists once the next write is to fail
    armed: PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &FlushAgainArgs) -> ExitCode {
    let mut output = io::stdout().lock();
    // If it fails, no process reads the output any more.
    let mut print_line =
        |line: &str| drop(writeln!(output, "{line}").and_then(|()| output.flush()));
    match ask_again_and_again(&args.folder, &args.armed, &mut print_line) {
        Ok(()) => ExitCode::Clean,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            error.exit_code()
        }
    }
}
