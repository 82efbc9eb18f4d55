//! A command that is watched alone. It makes a call that means nothing to any other program,
//! and by which the programs in the kernel know its process: its number would be another one
//! in a PID namespace.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::super::poll;
use super::super::signal_forward::Relay;
use crate::io_trace::CommandEnd;
use crate::process_tree::Ended;

/// The call that carries the mark: `prctl`, which refuses it.
pub(super) const MARK_CALL: libc::c_long = libc::SYS_prctl;

/// Makes up a mark. Its lower half is a negative number, which is no option of the call.
pub(super) fn new_mark() -> u64 {
    crate::scratch_dir::random() | 0x8000_0000
}

/// A command that runs. Signals that ask this process to end are passed on to it.
pub(super) struct WatchedCommand {
    child: Child,
    alive: OwnedFd,
    relay: Relay,
    began: Instant,
}

impl WatchedCommand {
    pub(super) fn start(command: &[OsString], mark: u64) -> io::Result<Self> {
        let [name, arguments @ ..] = command else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no command"));
        };
        let mut command = Command::new(name);
        command.args(arguments);
        // SAFETY: between fork and exec only a system call is made, which fails.
        unsafe {
            command.pre_exec(move || {
                libc::syscall(MARK_CALL, mark);
                Ok(())
            })
        };
        let relay = Relay::begin();
        let began = Instant::now();
        let child = command.spawn().map_err(|error| {
            let why = format!("cannot start '{}': {error}", name.to_string_lossy());
            io::Error::new(io::ErrorKind::NotFound, why)
        })?;
        relay.forward_to(i32::try_from(child.id()).map_err(io::Error::other)?);
        let alive = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        Ok(Self { child, alive, relay, began })
    }

    /// Waits so long for its end; `None` if it runs on.
    pub(super) fn wait(&mut self, at_most: Duration) -> io::Result<Option<CommandEnd>> {
        if !poll::is_readable(&self.alive, at_most)? {
            return Ok(None);
        }
        let time = self.began.elapsed();
        // From here on its number may be that of another process.
        self.relay.stop_forwarding();
        let status = self.child.wait()?;
        let signal = || Ended::Signal(status.signal().unwrap_or(0));
        Ok(Some(CommandEnd { ended: status.code().map_or_else(signal, Ended::Code), time }))
    }

    /// Ends it, if it cannot be watched.
    pub(super) fn kill(mut self) {
        self.relay.stop_forwarding();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
