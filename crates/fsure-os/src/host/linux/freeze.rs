//! Freezing by `FIFREEZE`, and the guard. See [`crate::freeze`].
//!
//! The guard is a copy of this process that makes system calls only. It holds the
//! folder, the lock and one end of a pair of sockets, whose other end only this process
//! has: when that is closed, the guard thaws and ends, and with it the lock is free. It is
//! closed when this process is killed, unless one of its threads waits for the thaw itself:
//! a process that freezes a file system must not write to it. The lock is a file of this
//! user alone: another user who may open the folder could lock the folder, and would keep
//! this process from ever freezing it.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, WaitOptions, waitpid};

use super::mount_sandbox::copy;

/// `_IOWR('X', 119, int)` and the next.
const FIFREEZE: libc::c_ulong = 0xc004_5877;
const FITHAW: libc::c_ulong = 0xc004_5878;

/// Timeout for the guard of an earlier freeze to thaw.
const THAW_TIMEOUT: Duration = Duration::from_secs(5);
const THAW_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// A file system that can be frozen.
#[derive(Debug)]
pub(crate) struct FreezeGuard {
    folder: OwnedFd,
    guard: Pid,
    /// `None` once the guard is to end.
    words: Option<OwnedFd>,
}

impl FreezeGuard {
    pub(crate) fn of(folder: &Path, lock: &Path) -> io::Result<Self> {
        let locked = take(lock)?;
        let folder = open(folder)?;
        if let Err(errno) = ask(&folder, FITHAW)
            && ![Errno::INVAL, Errno::OPNOTSUPP].contains(&errno)
        {
            return Err(refused(errno));
        }
        let (words, guards) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        let Some(guard) = copy(0)? else { watch(&folder, &locked, &guards, &words) };
        Ok(Self { folder, guard, words: Some(words) })
    }

    pub(crate) fn freeze(&self) -> io::Result<()> {
        // The remaining dirty pages are written while the writers wait.
        rustix::fs::syncfs(&self.folder)?;
        ask(&self.folder, FIFREEZE).map_err(refused)
    }

    pub(crate) fn thaw(&self) -> io::Result<()> {
        ask(&self.folder, FITHAW).map_err(refused)
    }
}

impl Drop for FreezeGuard {
    fn drop(&mut self) {
        drop(self.words.take());
        while let Err(Errno::INTR) = waitpid(Some(self.guard), WaitOptions::empty()) {}
    }
}

pub(crate) fn thaw(folder: &Path) -> io::Result<bool> {
    match ask(&open(folder)?, FITHAW) {
        Ok(()) => Ok(true),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(false),
        Err(errno) => Err(refused(errno)),
    }
}

fn open(folder: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(folder, flags, Mode::empty())?)
}

/// Takes the lock, which is free once the guard of one before has thawed.
fn take(lock: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let locked = rustix::fs::open(lock, flags, Mode::RUSR | Mode::WUSR)?;
    let began = Instant::now();
    loop {
        match flock(&locked, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(locked),
            Err(Errno::AGAIN | Errno::INTR) if began.elapsed() < THAW_TIMEOUT => {
                sleep(THAW_POLL_INTERVAL)
            }
            Err(Errno::AGAIN) => {
                let why = format!("another process holds the lock {}: end it", lock.display());
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn refused(errno: Errno) -> io::Error {
    let why = match errno {
        Errno::OPNOTSUPP => "this file system cannot be frozen",
        Errno::PERM => "needs root (CAP_SYS_ADMIN) to freeze a file system",
        Errno::BUSY => "another program has already frozen it",
        _ => return errno.into(),
    };
    io::Error::new(io::Error::from(errno).kind(), why)
}

/// The life of the guard.
fn watch(folder: &OwnedFd, locked: &OwnedFd, words: &OwnedFd, parent_end: &OwnedFd) -> ! {
    // SAFETY: plain system calls. The parent's end would otherwise stay open in the guard.
    // A terminal or a signal to the group that ends the parent must not end the guard.
    unsafe {
        libc::setsid();
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::close(parent_end.as_raw_fd());
    }
    close_all_but([folder, locked, words].map(OwnedFd::as_raw_fd));
    let mut word = [0; 1];
    while let Err(Errno::INTR) = rustix::io::read(words, &mut word) {}
    // It fails if the file system is no longer frozen.
    let _ = ask(folder, FITHAW);
    // SAFETY: ends this process.
    unsafe { libc::_exit(0) }
}

/// Closes all descriptors of the guard but these. If it held any other file that the parent
/// has open, a mount would be busy.
fn close_all_but(mut kept: [i32; 3]) {
    kept.sort_unstable();
    let mut first = 0;
    for kept in kept.map(i32::cast_unsigned) {
        close(first..kept);
        first = kept + 1;
    }
    close(first..u32::MAX);
}

fn close(range: std::ops::Range<u32>) {
    if !range.is_empty() {
        // SAFETY: descriptors of this process, which uses none of them.
        unsafe { libc::syscall(libc::SYS_close_range, range.start, range.end - 1, 0) };
    }
}

fn ask(folder: &OwnedFd, what: libc::c_ulong) -> Result<(), Errno> {
    // SAFETY: neither reads nor writes memory of this process.
    match unsafe { libc::ioctl(folder.as_raw_fd(), what as _, 0) } {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}
