//! `fsure family`, hidden: the processes between fsure and a program, so that
//! everything that the program starts ends with it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use fsure_core::ExitCode;
use fsure_os::process_tree;

/// Run a program that ends with all that it has started
#[derive(Args)]
pub(crate) struct FamilyArgs {
    #[command(subcommand)]
    who: Who,
}

/// One of the two processes between fsure and a program.
#[derive(Subcommand)]
enum Who {
    /// The outer one, which has the name space made
    Outer {
        /// The number of its parent
        parent: u32,
        #[command(flatten)]
        what: ProcessCommand,
    },
    /// The first process in the name space
    First(ProcessCommand),
}

#[derive(Args)]
struct ProcessCommand {
    /// The folder to run it in
    folder: PathBuf,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Runs the command and returns the program's exit code.
pub(crate) fn run(args: &FamilyArgs) -> ExitCode {
    let ended = match &args.who {
        Who::Outer { parent, what } => process_tree::outer(*parent, &what.folder, &what.command),
        Who::First(what) => process_tree::first(&what.folder, &what.command),
    };
    // A failed start must not read as the end of the program: a check that ends with
    // most codes reports damaged data.
    ExitCode::Program(ended.unwrap_or_else(|error| {
        let words = format!("cannot start a process for the program: {error}\n");
        // The caller gets the exit code even if this line is lost.
        let _ = std::io::Write::write_all(&mut std::io::stderr(), words.as_bytes());
        process_tree::NOT_STARTED
    }))
}
