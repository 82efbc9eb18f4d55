//! The two processes between fsure and a program. See [`crate::process_tree`].

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, getppid, pidfd_open,
    set_parent_process_death_signal, wait,
};
use rustix::thread::{UnshareFlags, clear_ambient_capability_set, unshare_unsafe};

use super::poll;
use crate::process_tree::{NOT_FOUND, NOT_STARTED};

/// The duty of the outer process, whose parent is `parent`: starts the first one
/// of a new process namespace, and dies when its parent does. The answer is the
/// program's exit code, or 128 and the number of the signal that ended it.
pub fn outer(parent: u32, folder: &Path, command: &[OsString]) -> io::Result<u8> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid().map(|pid| pid.as_raw_nonzero().get().unsigned_abs()) != Some(parent) {
        return Err(io::Error::other("its parent has ended"));
    }
    // SAFETY: the namespaces are for the children of this thread, which has
    // no other business.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::NEWPID | UnshareFlags::NEWIPC) }?;
    let own = std::env::current_exe()?;
    let mut first = Command::new(own);
    first.args(["family", "first"]).arg(folder).arg("--").args(command);
    let alive = pidfd_open(getpid(), PidfdFlags::empty())?;
    // SAFETY: between fork and exec only system calls are made.
    unsafe { first.pre_exec(move || die_with(&alive)) };
    Ok(code(first.spawn()?.wait()?))
}

/// The duty of the first process of a namespace: starts the program, and reaps
/// until that has ended.
pub fn first(folder: &Path, command: &[OsString]) -> io::Result<u8> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    // A program looks for itself there, by the number that it knows.
    let plain = MountFlags::NODEV | MountFlags::NOSUID | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", plain, None)?;
    // The memory that they share would outlive them, and take up the names of
    // those that are started next.
    let shared = mount("fsure", "/dev/shm", "tmpfs", plain, c"mode=1777");
    if let Err(error) = shared.or_else(|error| match error {
        rustix::io::Errno::NOENT => Ok(()),
        other => Err(other),
    }) {
        return Err(error.into());
    }
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    // SAFETY: between fork and exec only a system call is made. What let fsure make
    // the namespaces is not the program's.
    unsafe { command.pre_exec(|| Ok(clear_ambient_capability_set()?)) };
    let started = command.spawn();
    let program = match started {
        Ok(program) => program,
        Err(error) => {
            let words = format!("cannot start {}: {error}\n", program.display());
            // Who reads it reads the code, too.
            let _ = io::Write::write_all(&mut io::stderr(), words.as_bytes());
            let is_absent = error.kind() == io::ErrorKind::NotFound;
            return Ok(if is_absent { NOT_FOUND } else { NOT_STARTED });
        }
    };
    let program = Pid::from_child(&program);
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == program => {
                return Ok(code(ExitStatus::from_raw(status.as_raw())));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Has the calling process die with its parent, which may be gone already. It is
/// outside of the namespace and its number reads as 0, whatever it does: so it is
/// asked by its descriptor, which is readable once it has ended.
fn die_with(parent: &OwnedFd) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    match poll::is_readable(parent, Duration::ZERO)? {
        false => Ok(()),
        true => Err(rustix::io::Errno::SRCH.into()),
    }
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// Closes every other descriptor. It is not the first: those a process has.
pub(super) fn keep_only(kept: &OwnedFd) {
    let kept = kept.as_raw_fd().cast_unsigned();
    for (first, last) in [(0, kept.saturating_sub(1)), (kept + 1, u32::MAX)] {
        // SAFETY: nothing in this child uses them.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    }
}
