//! A command in the place of this process. See [`crate::foreground`].

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::poll;
use super::signal_forward::Relay;
use crate::process_tree::{CommandEnd, Ended};

/// A command that runs. Signals that ask this process to end are passed on to it.
pub(super) struct ForegroundCommand {
    child: Child,
    alive: OwnedFd,
    relay: Relay,
    began: Instant,
}

impl ForegroundCommand {
    /// Starts a command, once `prepare` has seen it.
    pub(super) fn start(
        command: &[OsString],
        prepare: impl FnOnce(&mut Command),
    ) -> io::Result<Self> {
        let [name, arguments @ ..] = command else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no command"));
        };
        let mut command = Command::new(name);
        command.args(arguments);
        prepare(&mut command);
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

    /// Ends it at once.
    #[cfg(feature = "io-trace")]
    pub(super) fn kill(mut self) {
        self.relay.stop_forwarding();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn run(command: &[OsString]) -> io::Result<CommandEnd> {
    let mut command = ForegroundCommand::start(command, |_| {})?;
    loop {
        if let Some(end) = command.wait(Duration::MAX)? {
            return Ok(end);
        }
    }
}
