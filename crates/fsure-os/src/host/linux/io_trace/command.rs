//! A command that is watched alone. It makes a call that means nothing to any other program,
//! and by which the programs in the kernel know its process: its number would be another one
//! in a PID namespace.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;

use crate::foreground::StartError;

use super::super::foreground::{ForegroundCommand, WatchedCommand, not_started};

/// The call that carries the mark: `prctl`, which refuses it.
pub(super) const MARK_CALL: libc::c_long = libc::SYS_prctl;

/// Makes up a mark. Its lower half is a negative number, which is not an option of the call.
pub(super) fn new_mark() -> u64 {
    crate::scratch_dir::random() | 0x8000_0000
}

/// Starts a command with a mark.
pub(super) fn start(command: &[OsString], mark: u64) -> Result<WatchedCommand, StartError> {
    let started = ForegroundCommand::start(command, |command| {
        // SAFETY: between fork and exec only a system call is made, which fails.
        unsafe {
            command.pre_exec(move || {
                libc::syscall(MARK_CALL, mark);
                Ok(())
            })
        };
    });
    let started = started.map_err(|error| StartError::NotStarted(not_started(command, &error)))?;
    Ok(WatchedCommand::of(started)?)
}
