//! `fsure loop-keeper`, hidden: the process that attaches a loop device to a file, and
//! notices what other processes do to it. It has to be another process than the one
//! that serves the file.

use std::io;
use std::path::PathBuf;

use clap::Args;
use fsure_core::ExitCode;
use fsure_os::loop_device;

/// Attach a loop device and watch it until standard input ends
#[derive(Args)]
pub(crate) struct LoopKeeperArgs {
    /// The file
    file: PathBuf,
    /// The folder that the device is mounted at
    place: PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &LoopKeeperArgs) -> ExitCode {
    let files = (args.file.as_path(), args.place.as_path());
    match loop_device::keep(files, io::stdin().lock(), io::stdout()) {
        Ok(()) => ExitCode::Clean,
        Err(_) => ExitCode::Incomplete,
    }
}
