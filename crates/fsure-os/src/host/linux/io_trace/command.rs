//! A command that is watched alone. It makes a call that means nothing to any other program,
//! and by which the programs in the kernel know its process: its number would be another one
//! in a PID namespace.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;

use super::super::foreground::ForegroundCommand;

/// The call that carries the mark: `prctl`, which refuses it.
pub(super) const MARK_CALL: libc::c_long = libc::SYS_prctl;

/// Makes up a mark. Its lower half is a negative number, which is no option of the call.
pub(super) fn new_mark() -> u64 {
    crate::scratch_dir::random() | 0x8000_0000
}

/// Starts a command with a mark.
pub(super) fn start(command: &[OsString], mark: u64) -> io::Result<ForegroundCommand> {
    ForegroundCommand::start(command, |command| {
        // SAFETY: between fork and exec only a system call is made, which fails.
        unsafe {
            command.pre_exec(move || {
                libc::syscall(MARK_CALL, mark);
                Ok(())
            })
        };
    })
}
