//! `fsure sweep`, hidden: the guard of a scratch folder. It waits for the end of
//! the process that measures and removes what that could not.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use fsure_core::ExitCode;
use fsure_os::scratch_dir;
use signal_hook::consts::{SIGINT, SIGTERM};

/// Remove a scratch folder when its process has ended
#[derive(Args)]
pub(crate) struct SweepArgs {
    /// The folder that it is in
    folder: PathBuf,
    /// Its name
    name: String,
}

/// Runs the command.
pub(crate) fn run(args: &SweepArgs) -> ExitCode {
    for signal in [SIGINT, SIGTERM] {
        // A signal to all processes at once must not end this one before the other:
        // it ends by itself. Without a handler, it guards less well.
        let _ = signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)));
    }
    match scratch_dir::guard(&args.folder, &args.name, io::stdout()) {
        Ok(()) => ExitCode::Clean,
        Err(_) => ExitCode::Incomplete,
    }
}
