//! A command that sees folders in memory in the place of folders on a disk, and no
//! process outside does. It needs no root: if this process is not permitted to mount, it
//! makes a user name space, in which the command is the user that it was.
//!
//! ```text
//! this process              the process that the user sees
//!  ├─ first                 process 1 of a process name space; dies with this process
//!  │   └─ the command       ... and all that it starts, which die with the first
//!  └─ a keeper              outlives this process: holds both sides by descriptor
//! ```
//!
//! The mounts are gone with the first process, and what was in memory with the last
//! descriptor of it. So a keeper that finds the first process ended has both sides
//! for itself: no process writes any more. Ctrl-C and Ctrl-Z are the command's.
//!
//! Linux only; elsewhere [`MountSandbox::enter`] fails with `Unsupported`.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::host;
use crate::process_tree::CommandEnd;

/// A folder to be covered.
#[derive(Clone, Debug)]
pub struct Overlay {
    /// Its path, without links.
    pub place: PathBuf,
    /// Bytes that may be in it at most, in memory.
    pub bytes: u64,
    /// Names that may be in it at most.
    pub names: u64,
}

/// Name spaces in which folders are covered. Dropping it ends all that is in them.
#[derive(Debug)]
pub struct MountSandbox(host::mount_sandbox::MountSandbox);

impl MountSandbox {
    /// Covers folders, with empty ones as yet, for `command`. Each folder is locked
    /// for as long as this or a keeper lives; `WouldBlock` where another has it.
    pub fn enter(covers: &[Overlay], command: &[OsString]) -> io::Result<Self> {
        host::mount_sandbox::MountSandbox::enter(covers, command).map(Self)
    }

    /// Starts a keeper, which goes on when its terminal is gone or this process is;
    /// what it says comes through a pipe.
    /// Its last arguments are what it opens: the first process, for [`Alive`], and
    /// for each folder its disk side and its memory, for [`side`].
    pub fn keep(&self, program: &OsStr, arguments: &[OsString]) -> io::Result<Child> {
        let mut keeper = Command::new(program);
        keeper.args(arguments).current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped());
        self.0.keep(keeper)
    }

    /// Starts the command, in the working folder, and waits until it has ended. From
    /// here on signals are the command's.
    pub fn run(&self) -> io::Result<CommandEnd> {
        self.0.run()
    }

    /// Ends all that is in them at once.
    pub fn kill(&self) -> io::Result<()> {
        self.0.kill()
    }
}

/// A handle to wait until no process in the namespaces is alive.
#[derive(Debug)]
pub struct Alive(host::mount_sandbox::Alive);

impl Alive {
    /// Opens it by the argument that the keeper was given.
    pub fn open(argument: i32) -> io::Result<Self> {
        host::mount_sandbox::Alive::open(argument).map(Self)
    }

    /// Waits at most this long until all have ended, and returns true if they have.
    pub fn has_ended(&self, at_most: Duration) -> io::Result<bool> {
        self.0.has_ended(at_most)
    }
}

/// Has this thread alone see the mounts of the command, so that it may change them, by the
/// argument that the keeper was given for the first process (Linux 5.8). They are there as
/// long as it is.
pub fn enter_mounts(argument: i32) -> io::Result<()> {
    host::mount_sandbox::enter_mounts(argument)
}

/// Returns true if the command is going to have a user name space of its own, in which
/// there is one user. This is so if this process is not permitted to mount, like root
/// in a container.
pub fn knows_one_user() -> bool {
    host::mount_sandbox::knows_one_user()
}

/// A path to what a keeper was given, by the descriptor: its name can lead elsewhere by
/// the time it is opened. It ends with a slash, so that no other begins with it.
pub fn side(argument: i32) -> PathBuf {
    format!("/proc/self/fd/{argument}/").into()
}

/// Its name for messages, where it has one.
pub fn name(argument: i32) -> Option<PathBuf> {
    host::mount_sandbox::named(argument)
}

/// The files that this process's output goes to.
pub fn outputs() -> Vec<PathBuf> {
    host::mount_sandbox::outputs()
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
