//! `fsure family`, hidden: the processes between us and a program, so that all
//! that it starts ends with it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use fsure::words::ExitCode;
use fsure_os::family;

/// Run a program that ends with all that it has started
#[derive(Args)]
pub(crate) struct FamilyArgs {
    #[command(subcommand)]
    who: Who,
}

/// Which of the two processes this is.
#[derive(Subcommand)]
enum Who {
    /// The one that has the name space made
    Outer {
        /// The number of its parent
        parent: u32,
        #[command(flatten)]
        what: What,
    },
    /// The first one in there
    First(What),
}

#[derive(Args)]
struct What {
    /// The folder to run it in
    folder: PathBuf,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Runs the command; the answer is the program's exit code.
pub(crate) fn run(args: &FamilyArgs) -> ExitCode {
    let ended = match &args.who {
        Who::Outer { parent, what } => family::outer(*parent, &what.folder, &what.command),
        Who::First(what) => family::first(&what.folder, &what.command),
    };
    // What is not the program's end must not read as one: a check that ends with
    // most codes says that data is damaged.
    ExitCode::Program(ended.unwrap_or_else(|error| {
        let words = format!("cannot start a process for the program: {error}\n");
        // Who reads it reads the code, too.
        let _ = std::io::Write::write_all(&mut std::io::stderr(), words.as_bytes());
        family::NOT_STARTED
    }))
}
