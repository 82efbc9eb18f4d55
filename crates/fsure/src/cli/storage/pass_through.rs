//! `fsure pass-through`, hidden: the server of a FUSE file system that is
//! measured. It has to be another process than the one that uses it.

use std::io;
use std::path::PathBuf;

use clap::Args;
use fsure_core::ExitCode;
use fsure_os::passthrough;

/// Pass a folder on through FUSE until standard input ends
#[derive(Args)]
pub(crate) struct PassThroughArgs {
    /// The folder that is passed on
    source: PathBuf,
    /// Mount point
    at: PathBuf,
    /// Serve what is mounted already, by this descriptor of its device
    #[arg(long)]
    device: Option<i32>,
    /// Have the kernel read and write by itself
    #[arg(long)]
    kernel: bool,
}

/// Runs the command.
pub(crate) fn run(args: &PassThroughArgs) -> ExitCode {
    match passthrough::serve(&args.source, &args.at, args.kernel, args.device, io::stdout()) {
        Ok(()) => ExitCode::Clean,
        Err(_) => ExitCode::Incomplete,
    }
}
