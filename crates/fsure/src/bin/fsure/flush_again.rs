//! `fsure flush-again`, hidden: asks for a flush again and again while the drive
//! below fails a write. A process of its own, as all that touches a simulated
//! drive.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;
use fsure::job::ask_again_and_again;
use fsure::words::ExitCode;

/// Say what a flush reports after a write that failed
#[derive(Args)]
pub(crate) struct FlushAgainArgs {
    /// Where the file is
    folder: PathBuf,
    /// What is there once the next write is to fail
    armed: PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &FlushAgainArgs) -> ExitCode {
    let mut output = io::stdout().lock();
    // Where it fails nobody listens, and what was not heard was not said.
    let mut say = |line: &str| drop(writeln!(output, "{line}").and_then(|()| output.flush()));
    match ask_again_and_again(&args.folder, &args.armed, &mut say) {
        Ok(()) => ExitCode::Clean,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            error.exit_code()
        }
    }
}
