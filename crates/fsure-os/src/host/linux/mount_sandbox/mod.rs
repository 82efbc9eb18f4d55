//! A command in namespaces of its own. See [`crate::mount_sandbox`].

mod init;

use std::ffi::OsString;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketFlags,
    SocketType, recvmsg, send, socketpair,
};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpgrp, kill_process, pidfd_open, waitpid,
};
use rustix::termios::{isatty, tcgetpgrp, tcsetpgrp};

use super::poll;
use super::signal_forward::Relay;
use crate::mount_sandbox::Overlay;
use crate::process_tree::{CommandEnd, Ended};
use init::{SandboxPlan, Word};
pub(super) use init::{copy, put};

/// Maximum delay until a job takes the terminal that a shell has given it.
const TERMINAL_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Name spaces, and their first process.
#[derive(Debug)]
pub(crate) struct MountSandbox {
    first: Pid,
    /// Readable once the first process has ended, and with it all others.
    alive: OwnedFd,
    words: OwnedFd,
    /// Each covered folder, locked, and the folder in memory that covers it.
    sides: Vec<(OwnedFd, OwnedFd)>,
    /// True if a keeper has them, too, with the locks.
    is_kept: AtomicBool,
    /// True if the command has a terminal for itself, as a shell needs it.
    has_terminal: bool,
    /// True if the command has the terminal now. A shell takes it from a job that is stopped,
    /// and a job in the background must not take it back.
    is_in_front: AtomicBool,
}

impl MountSandbox {
    pub(crate) fn enter(covers: &[Overlay], command: &[OsString]) -> io::Result<Self> {
        let mut disks = Vec::new();
        for cover in covers {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let disk = rustix::fs::open(&cover.place, flags, Mode::empty())?;
            flock(&disk, FlockOperation::NonBlockingLockExclusive)?;
            disks.push(disk);
        }
        let has_terminal = has_terminal();
        let plan = SandboxPlan::new(covers, &modes(&disks)?, command, has_terminal)?;
        let flags = SocketFlags::CLOEXEC;
        let (words, firsts) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        let not_its: Vec<_> =
            disks.iter().map(OwnedFd::as_raw_fd).chain([words.as_raw_fd()]).collect();
        let first = init::start(&plan, &firsts, &not_its)?;
        drop(firsts);
        let alive = pidfd_open(first, PidfdFlags::empty())?;
        let [is_kept, is_in_front] = [false, has_terminal].map(AtomicBool::new);
        let sides = Vec::new();
        let mut inside = Self { first, alive, words, sides, is_kept, has_terminal, is_in_front };
        for disk in disks {
            let memory = inside.receive()?;
            inside.sides.push((disk, memory));
        }
        Ok(inside)
    }

    /// Receives the folder in memory that covers the next folder.
    fn receive(&self) -> io::Result<OwnedFd> {
        let mut word = [0; Word::LENGTH];
        let mut control = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut message = RecvAncillaryBuffer::new(&mut control);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let got = recvmsg(&self.words, &mut [IoSliceMut::new(&mut word)], &mut message, flags)?;
        for part in message.drain() {
            if let RecvAncillaryMessage::ScmRights(mut rights) = part
                && let Some(memory) = rights.next()
            {
                return Ok(memory);
            }
        }
        match Word::read(&word[..got.bytes]) {
            Some(Word::Failed { step, errno }) => Err(init::failure(step, errno)),
            _ => Err(io::Error::other("the first process has ended")),
        }
    }

    pub(crate) fn keep(&self, mut keeper: Command) -> io::Result<Child> {
        let mut all = vec![self.alive.as_raw_fd()];
        for (disk, memory) in &self.sides {
            all.extend([disk.as_raw_fd(), memory.as_raw_fd()]);
        }
        keeper.args(all.iter().map(RawFd::to_string));
        let first = self.alive.as_raw_fd();
        let prepare = move || {
            // SAFETY: open until this process has run another program.
            let first = unsafe { BorrowedFd::borrow_raw(first) };
            // Without a user name space, or without the first process: as the user that it is.
            let _ = own_all(first);
            // It belongs to no terminal, and none ends it.
            rustix::process::setsid()?;
            for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
                // SAFETY: a plain system call; who is told to end ends when its work is done.
                unsafe { libc::signal(signal, libc::SIG_IGN) };
            }
            for descriptor in &all {
                // SAFETY: open until this process has run another program.
                let descriptor = unsafe { BorrowedFd::borrow_raw(*descriptor) };
                fcntl_setfd(descriptor, FdFlags::empty())?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec only system calls are made.
        unsafe { keeper.pre_exec(prepare) };
        self.is_kept.store(true, SeqCst);
        keeper.spawn()
    }

    pub(crate) fn run(&self) -> io::Result<CommandEnd> {
        let relay = Relay::begin();
        let began = Instant::now();
        self.send_word(Word::Begin)?;
        relay.forward_to(self.first.as_raw_nonzero().get());
        let ended = self.listen();
        let time = began.elapsed();
        relay.stop_forwarding();
        if self.is_in_front.load(SeqCst) {
            take_terminal();
        }
        Ok(CommandEnd { ended: ended?, time, asked: relay.asked() })
    }

    pub(crate) fn kill(&self) -> io::Result<()> {
        Ok(rustix::process::pidfd_send_signal(&self.alive, Signal::KILL)?)
    }

    /// Hears the first process out.
    fn listen(&self) -> io::Result<Ended> {
        loop {
            match self.receive_word()? {
                Some(Word::Stopped) => self.stop()?,
                Some(Word::Ended { status }) => return Ok(ExitStatus::from_raw(status).into()),
                Some(Word::Failed { step, errno }) => return Err(init::failure(step, errno)),
                Some(Word::Begin | Word::Continue { .. }) => {}
                // It was killed, and all with it.
                None => return Ok(Ended::Signal(libc::SIGKILL)),
            }
        }
    }

    fn receive_word(&self) -> io::Result<Option<Word>> {
        let mut word = [0; Word::LENGTH];
        loop {
            // No process tells a job that it is in front again.
            while self.has_terminal
                && !self.is_in_front.load(SeqCst)
                && !poll::is_readable(&self.words, TERMINAL_POLL_INTERVAL)?
            {
                self.come_to_front()?;
            }
            match rustix::io::read(&self.words, &mut word) {
                Err(Errno::INTR) => {}
                Err(Errno::CONNRESET) => return Ok(None),
                read => return Ok(Word::read(&word[..read?])),
            }
        }
    }

    fn send_word(&self, word: Word) -> io::Result<()> {
        match send(&self.words, &word.bytes(), SendFlags::NOSIGNAL) {
            // It has ended; its last word is still to be heard.
            Ok(_) | Err(Errno::PIPE) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Stops this process, as the command was stopped, until another process continues it.
    /// If the command was stopped for want of the terminal, which this process has by now,
    /// the command gets that and goes on.
    fn stop(&self) -> io::Result<()> {
        if self.come_to_front()? {
            return Ok(());
        }
        if self.is_in_front.swap(false, SeqCst) {
            take_terminal();
        }
        // This thread at once: one that is sent to the process may stop another first, and
        // this one would see the terminal as it left it.
        // SAFETY: a plain system call.
        unsafe { libc::raise(libc::SIGSTOP) };
        match self.come_to_front()? {
            true => Ok(()),
            false => self.send_word(Word::Continue { in_front: false }),
        }
    }

    /// Hands the terminal on if a shell has given it to this process since. Returns true
    /// if it has.
    fn come_to_front(&self) -> io::Result<bool> {
        let is_given = self.has_terminal
            && !self.is_in_front.load(SeqCst)
            && tcgetpgrp(standard(0)).is_ok_and(|group| group == getpgrp());
        if is_given {
            self.is_in_front.store(true, SeqCst);
            self.send_word(Word::Continue { in_front: true })?;
        }
        Ok(is_given)
    }
}

impl Drop for MountSandbox {
    fn drop(&mut self) {
        let _ = kill_process(self.first, Signal::KILL);
        while let Err(Errno::INTR) = waitpid(Some(self.first), WaitOptions::empty()) {}
        if self.is_kept.load(SeqCst) {
            return;
        }
        for (disk, _) in &self.sides {
            // Said aloud: what another thread is just starting has a copy of the
            // descriptor until its `exec`, and it would be locked that long.
            let _ = flock(disk, FlockOperation::Unlock);
        }
    }
}

/// Makes this process one that may read and write all files of its user whatever
/// their modes say, as root may, in the command's user name space: one file that no user
/// may read must not keep the others from the disk. Kept when it runs a program.
fn own_all(first: BorrowedFd<'_>) -> io::Result<()> {
    use rustix::thread::{
        CapabilitySet, ThreadNameSpaceType, capabilities, configure_capability_in_ambient_set,
        move_into_thread_name_spaces, set_capabilities,
    };
    move_into_thread_name_spaces(first, ThreadNameSpaceType::USER)?;
    // The second: to see what the command has mapped, as a process outside may. The third and
    // the fourth: to have changes reported, since Linux 6.16. The third and the last: to change
    // the size of the memory.
    let wanted = [
        CapabilitySet::DAC_OVERRIDE,
        CapabilitySet::SYS_PTRACE,
        CapabilitySet::SYS_ADMIN,
        CapabilitySet::DAC_READ_SEARCH,
        CapabilitySet::SYS_CHROOT,
    ];
    let mut sets = capabilities(None)?;
    wanted.iter().for_each(|one| sets.inheritable |= *one);
    set_capabilities(None, sets)?;
    for one in wanted {
        configure_capability_in_ambient_set(one, true)?;
    }
    Ok(())
}

/// See [`crate::mount_sandbox::enter_mounts`].
pub(crate) fn enter_mounts(argument: i32) -> io::Result<()> {
    use rustix::thread::{
        ThreadNameSpaceType, UnshareFlags, move_into_thread_name_spaces, unshare_unsafe,
    };
    // SAFETY: this process was given it under this number, and one that is not open fails
    // the call.
    let first = unsafe { BorrowedFd::borrow_raw(argument) };
    // SAFETY: the working directory becomes this thread's own, and no descriptors do.
    unsafe { unshare_unsafe(UnshareFlags::FS) }?;
    Ok(move_into_thread_name_spaces(first, ThreadNameSpaceType::MOUNT)?)
}

/// See [`crate::mount_sandbox::knows_one_user`].
pub(crate) fn knows_one_user() -> bool {
    use rustix::thread::{CapabilitySet, capabilities};
    let own = capabilities(None);
    !own.is_ok_and(|own| own.effective.contains(CapabilitySet::SYS_ADMIN))
}

/// The descriptor that reports the end of all processes in the namespaces.
#[derive(Debug)]
pub(crate) struct Alive(OwnedFd);

impl Alive {
    pub(crate) fn open(argument: i32) -> io::Result<Self> {
        // SAFETY: this process was given it under this number, and one that is not
        // open fails the call.
        let given = unsafe { BorrowedFd::borrow_raw(argument) };
        Ok(Self(rustix::io::fcntl_dupfd_cloexec(given, 0)?))
    }

    pub(crate) fn has_ended(&self, at_most: Duration) -> io::Result<bool> {
        poll::is_readable(&self.0, at_most)
    }
}

/// The name of an open folder, where that leads to it.
pub(crate) fn named(argument: i32) -> Option<PathBuf> {
    let link = format!("/proc/self/fd/{argument}");
    let name = std::fs::read_link(&link).ok()?;
    let [one, other] = [Path::new(&link), &name].map(std::fs::metadata);
    let (one, other) = (one.ok()?, other.ok()?);
    ((one.dev(), one.ino()) == (other.dev(), other.ino())).then_some(name)
}

/// Returns the targets of standard output and standard error.
pub(crate) fn outputs() -> Vec<PathBuf> {
    let links = ["/proc/self/fd/1", "/proc/self/fd/2"].map(std::fs::read_link);
    links.into_iter().flatten().collect()
}

/// Mode, owner and group of each.
fn modes(folders: &[OwnedFd]) -> io::Result<Vec<(u32, u32, u32)>> {
    let stat = |folder: &OwnedFd| {
        let stat = std::fs::File::from(folder.try_clone()?).metadata()?;
        Ok((stat.mode() & 0o7777, stat.uid(), stat.gid()))
    };
    folders.iter().map(stat).collect()
}

/// Returns true if the command gets a process group of its own, which has the terminal. A
/// shell needs it that way: a group that was made outside has no number inside. In a
/// pipeline the other processes of this group need the terminal, too.
fn has_terminal() -> bool {
    (0..=2).all(|number| isatty(standard(number)))
        && tcgetpgrp(standard(0)).is_ok_and(|group| group == getpgrp())
}

/// Standard input, output and error.
fn standard(number: RawFd) -> BorrowedFd<'static> {
    // SAFETY: Rust opens these three in every process that has them closed.
    unsafe { BorrowedFd::borrow_raw(number) }
}

/// Takes the terminal back from a group that was in front.
fn take_terminal() {
    // Who is not in front is stopped for it, unless it does not hear of that.
    // SAFETY: the set is written before it is read; nothing else of this thread changes.
    unsafe {
        let mut stopping = MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(stopping.as_mut_ptr());
        libc::sigaddset(stopping.as_mut_ptr(), libc::SIGTTOU);
        libc::pthread_sigmask(libc::SIG_BLOCK, stopping.as_ptr(), before.as_mut_ptr());
        let _ = tcsetpgrp(standard(0), getpgrp());
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
    }
}
