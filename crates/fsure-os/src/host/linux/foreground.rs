//! A command in the foreground. See [`crate::foreground`].

use std::ffi::OsString;
use std::io;
#[cfg(feature = "io-trace")]
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};
#[cfg(feature = "io-trace")]
use std::time::Duration;
use std::time::Instant;

#[cfg(feature = "io-trace")]
use rustix::process::{Pid, PidfdFlags, pidfd_open};

#[cfg(feature = "io-trace")]
use super::poll;
use super::signal_forward::Relay;
use crate::process_tree::CommandEnd;

/// A command that runs.
pub(super) struct ForegroundCommand {
    child: Child,
    relay: Relay,
    began: Instant,
}

impl ForegroundCommand {
    /// Starts a command, once `prepare` has seen it. The error is that of the system.
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
        let child = command.spawn()?;
        Ok(Self { child, relay, began })
    }

    /// Waits for its end. Signals that ask this process to end are passed on to it meanwhile.
    pub(super) fn wait(mut self) -> io::Result<CommandEnd> {
        let status = self.relay.wait(&mut self.child)?;
        Ok(self.end(status))
    }

    fn end(&self, status: ExitStatus) -> CommandEnd {
        CommandEnd { ended: status.into(), time: self.began.elapsed(), asked: self.relay.asked() }
    }
}

/// A command that is waited for in slices of time.
#[cfg(feature = "io-trace")]
pub(super) struct WatchedCommand {
    command: ForegroundCommand,
    /// Readable when it has ended.
    alive: OwnedFd,
}

#[cfg(feature = "io-trace")]
impl WatchedCommand {
    /// Takes a command that was just started; one that cannot be waited for is killed. Signals
    /// that ask this process to end are passed on to it.
    pub(super) fn of(mut command: ForegroundCommand) -> io::Result<Self> {
        let forwarded = i32::try_from(command.child.id()).map_err(io::Error::other);
        let forwarded = forwarded.map(|process| command.relay.forward_to(process));
        let alive = pidfd_open(Pid::from_child(&command.child), PidfdFlags::empty());
        match forwarded.and_then(|()| Ok(alive?)) {
            Ok(alive) => Ok(Self { command, alive }),
            Err(error) => {
                kill(&mut command);
                Err(error)
            }
        }
    }

    /// Waits so long for its end; `None` if it runs on.
    pub(super) fn wait(&mut self, at_most: Duration) -> io::Result<Option<CommandEnd>> {
        if !poll::is_readable(&self.alive, at_most)? {
            return Ok(None);
        }
        // From here on its number may be that of another process.
        self.command.relay.stop_forwarding();
        let status = self.command.child.wait()?;
        Ok(Some(self.command.end(status)))
    }

    /// Ends it at once.
    pub(super) fn kill(mut self) {
        kill(&mut self.command);
    }
}

#[cfg(feature = "io-trace")]
fn kill(command: &mut ForegroundCommand) {
    command.relay.stop_forwarding();
    let _ = command.child.kill();
    let _ = command.child.wait();
}

/// Returns the error for a command that could not be started, with its name.
pub(super) fn not_started(command: &[OsString], error: &io::Error) -> io::Error {
    let name = command.first().map(|name| name.to_string_lossy()).unwrap_or_default();
    io::Error::new(error.kind(), format!("cannot start '{name}': {error}"))
}

pub(crate) fn run(command: &[OsString]) -> io::Result<CommandEnd> {
    ForegroundCommand::start(command, |_| {}).map_err(|error| not_started(command, &error))?.wait()
}
