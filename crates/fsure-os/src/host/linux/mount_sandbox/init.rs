//! The first process of the namespaces. It is a copy of one of fsure's threads, so
//! that another may have held any lock when it was made: it makes system calls on
//! what was prepared before, and nothing else. It cannot become another program,
//! since where no user is root that would end its right to mount.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, OpenTreeFlags, mount, mount_change, open_tree,
};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, send, sendmsg};
use rustix::process::{
    Pid, Signal, WaitOptions, kill_process, kill_process_group, set_parent_process_death_signal,
    setpgid, wait,
};
use rustix::termios::tcsetpgrp;

use crate::mount_sandbox::Overlay;
use crate::process_tree::{NOT_FOUND, NOT_STARTED};

/// Steps at which the first process can fail, as text.
const STEPS: [&str; 7] = [
    "enter its own namespaces",
    "map its user into them",
    "cover the folder with memory",
    "hand the memory over",
    "go to the working folder",
    "start the command",
    "wait for the command",
];
const MAP: u8 = 1;
const COVER: u8 = 2;
const HAND: u8 = 3;
const FOLDER: u8 = 4;
const START: u8 = 5;
const WAIT: u8 = 6;

/// A message between the first process and the process that started it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Word {
    /// To it: start the command.
    Begin,
    /// To it: continue the command, with the terminal if the sender is in front.
    Continue { in_front: bool },
    /// From it: the command was stopped.
    Stopped,
    /// From it: the command has ended, with its status as `wait` reports it.
    Ended { status: i32 },
    /// From it: the step and the error because of which there is no command.
    Failed { step: u8, errno: i32 },
}

impl Word {
    pub(super) const LENGTH: usize = 6;

    pub(super) fn bytes(self) -> [u8; Self::LENGTH] {
        let (kind, detail, number) = match self {
            Self::Begin => (b'b', 0, 0),
            Self::Continue { in_front } => (b'c', u8::from(in_front), 0),
            Self::Stopped => (b's', 0, 0),
            Self::Ended { status } => (b'e', 0, status),
            Self::Failed { step, errno } => (b'f', step, errno),
        };
        let [a, b, c, d] = number.to_ne_bytes();
        [kind, detail, a, b, c, d]
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let [kind, detail, number @ ..] = bytes else { return None };
        let number = i32::from_ne_bytes(number.try_into().ok()?);
        match kind {
            b'b' => Some(Self::Begin),
            b'c' => Some(Self::Continue { in_front: *detail != 0 }),
            b's' => Some(Self::Stopped),
            b'e' => Some(Self::Ended { status: number }),
            b'f' => Some(Self::Failed { step: *detail, errno: number }),
            _ => None,
        }
    }
}

/// Returns the error of a step, with the step in its text.
pub(super) fn failure(step: u8, errno: i32) -> io::Error {
    let error = io::Error::from_raw_os_error(errno);
    let what = STEPS.get(usize::from(step)).copied().unwrap_or("go on");
    io::Error::new(error.kind(), format!("cannot {what}: {error}"))
}

/// All data that the first process needs, made before it starts.
pub(super) struct SandboxPlan {
    /// Each place, and the options for what covers it, the best first.
    covers: Vec<(CString, [CString; 2])>,
    users: String,
    groups: String,
    folder: CString,
    /// Paths that the program of the command might have.
    programs: Vec<CString>,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    has_terminal: bool,
}

impl SandboxPlan {
    pub(super) fn new(
        covers: &[Overlay],
        modes: &[(u32, u32, u32)],
        command: &[OsString],
        has_terminal: bool,
    ) -> io::Result<Self> {
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        let mut prepared = Vec::new();
        for (cover, (mode, uid, gid)) in covers.iter().zip(modes) {
            let Overlay { bytes, names, .. } = cover;
            let plain = format!("size={bytes},nr_inodes={names},mode={mode:o},uid={uid},gid={gid}");
            let huge = format!("{plain},huge=within_size");
            let place = CString::new(cover.place.as_os_str().as_bytes())?;
            prepared.push((place, [CString::new(huge)?, CString::new(plain)?]));
        }
        let folder = std::env::current_dir()?;
        let program = command.first().ok_or(io::ErrorKind::InvalidInput)?;
        let pair = |(name, value): (OsString, OsString)| {
            CString::new([name.as_bytes(), b"=", value.as_bytes()].concat())
        };
        let arguments = command.iter().map(|one| CString::new(one.as_bytes()));
        Ok(Self {
            covers: prepared,
            users: format!("{0} {0} 1", uid.as_raw()),
            groups: format!("{0} {0} 1", gid.as_raw()),
            folder: CString::new(folder.into_os_string().into_vec())?,
            programs: programs(program)?,
            arguments: arguments.collect::<Result<_, _>>()?,
            environment: std::env::vars_os().map(pair).collect::<Result<_, _>>()?,
            has_terminal,
        })
    }
}

/// Returns the paths that a program might have, as a shell searches for it.
fn programs(program: &OsStr) -> io::Result<Vec<CString>> {
    if program.as_bytes().contains(&b'/') {
        return Ok(vec![CString::new(program.as_bytes())?]);
    }
    let folders = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    let path = |folder: &[u8]| {
        let folder = if folder.is_empty() { b"." } else { folder };
        CString::new(Path::new(OsStr::from_bytes(folder)).join(program).as_os_str().as_bytes())
    };
    Ok(folders.as_bytes().split(|byte| *byte == b':').map(path).collect::<Result<_, _>>()?)
}

/// Pointers to texts, for the kernel.
fn pointers(texts: &[CString]) -> Vec<*const libc::c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
}

/// Starts it; without a user name space where that can be. `not_its` are descriptors
/// that it must not keep.
pub(super) fn start(plan: &SandboxPlan, words: &OwnedFd, not_its: &[RawFd]) -> io::Result<Pid> {
    let pointers = (pointers(&plan.arguments), pointers(&plan.environment));
    let own = libc::CLONE_NEWNS | libc::CLONE_NEWPID;
    for (flags, has_users) in [(own, false), (own | libc::CLONE_NEWUSER, true)] {
        match copy(flags) {
            Ok(None) => {
                let first = First { plan, words, pointers: &pointers, has_users };
                let failed = first.live(not_its);
                let _ = send(words, &failed.bytes(), SendFlags::NOSIGNAL);
                end(NOT_STARTED)
            }
            Ok(Some(child)) => return Ok(child),
            Err(Errno::PERM) if !has_users => {}
            Err(errno) => return Err(refused(errno)),
        }
    }
    Err(io::ErrorKind::PermissionDenied.into())
}

fn refused(errno: Errno) -> io::Error {
    let why = match errno {
        Errno::PERM | Errno::NOSPC | Errno::USERS => {
            "needs root, or user namespaces, which this system does not allow \
             (user.max_user_namespaces, kernel.unprivileged_userns_clone, \
             kernel.apparmor_restrict_unprivileged_userns)"
        }
        _ => return errno.into(),
    };
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

/// A copy of this thread, in new namespaces; `None` in the copy.
pub(in crate::host::linux) fn copy(flags: i32) -> Result<Option<Pid>, Errno> {
    let flags = libc::c_long::from(flags | libc::SIGCHLD);
    // SAFETY: as `fork`, without what a library does at one: the copy makes system
    // calls and ends.
    match unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) } {
        -1 => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)),
        0 => Ok(None),
        child => Ok(i32::try_from(child).ok().and_then(Pid::from_raw)),
    }
}

fn end(code: u8) -> ! {
    // SAFETY: ends this process.
    unsafe { libc::_exit(code.into()) }
}

struct First<'a> {
    plan: &'a SandboxPlan,
    words: &'a OwnedFd,
    pointers: &'a (Vec<*const libc::c_char>, Vec<*const libc::c_char>),
    has_users: bool,
}

impl First<'_> {
    /// All of its life. Returns why it cannot go on.
    fn live(&self, not_its: &[RawFd]) -> Word {
        match self.try_to_live(not_its) {
            Ok(never) => never,
            Err((step, errno)) => Word::Failed { step, errno: errno.raw_os_error() },
        }
    }

    fn try_to_live(&self, not_its: &[RawFd]) -> Result<Word, (u8, Errno)> {
        let at = |step: u8| move |errno: Errno| (step, errno);
        let signals = hold_signals().map_err(at(0))?;
        for descriptor in not_its {
            // SAFETY: they belong to the process that this is a copy of.
            unsafe { libc::close(*descriptor) };
        }
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(at(0))?;
        if self.is_alone().map_err(at(0))? {
            end(NOT_STARTED);
        }
        if self.has_users {
            put(c"/proc/self/setgroups", b"deny").map_err(at(MAP))?;
            put(c"/proc/self/gid_map", self.plan.groups.as_bytes()).map_err(at(MAP))?;
            put(c"/proc/self/uid_map", self.plan.users.as_bytes()).map_err(at(MAP))?;
        }
        let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
        mount_change(c"/", slave).map_err(at(0))?;
        for (place, options) in &self.plan.covers {
            self.cover(place, options)?;
        }
        let plain = MountFlags::NODEV | MountFlags::NOSUID | MountFlags::NOEXEC;
        // A container might not be permitted to: then processes have other numbers in there.
        let _ = mount(c"proc", c"/proc", c"proc", plain, None::<&CStr>);
        self.wait_for_word().map_err(at(HAND))?;
        rustix::process::chdir(&*self.plan.folder).map_err(at(FOLDER))?;
        let command = match copy(0).map_err(at(START))? {
            None => self.become_command(),
            Some(command) => command,
        };
        self.follow(command, &signals).map_err(at(WAIT))
    }

    /// Returns true if no process waits for it any more.
    fn is_alone(&self) -> Result<bool, Errno> {
        let mut words = [PollFd::new(self.words, PollFlags::empty())];
        Ok(poll(&mut words, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? > 0)
    }

    fn cover(&self, place: &CStr, options: &[CString; 2]) -> Result<(), (u8, Errno)> {
        let flags = MountFlags::NODEV | MountFlags::NOSUID | MountFlags::NOATIME;
        let [best, plain] = options;
        let done = match mount(c"fsure", place, c"tmpfs", flags, Some(&**best)) {
            // A kernel without huge pages.
            Err(Errno::INVAL) => mount(c"fsure", place, c"tmpfs", flags, Some(&**plain)),
            other => other,
        };
        done.map_err(|errno| (COVER, errno))?;
        let memory = bare(place).map_err(|errno| (COVER, errno))?;
        let mut control = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut message = SendAncillaryBuffer::new(&mut control);
        let memory = [memory.as_fd()];
        message.push(SendAncillaryMessage::ScmRights(&memory));
        let word = Word::Begin.bytes();
        let sent = sendmsg(self.words, &[IoSlice::new(&word)], &mut message, SendFlags::NOSIGNAL);
        sent.map(drop).map_err(|errno| (HAND, errno))
    }

    fn wait_for_word(&self) -> Result<Option<Word>, Errno> {
        let mut word = [0; Word::LENGTH];
        match rustix::io::read(self.words, &mut word)? {
            // The process that started this one is gone, and this one ends, too.
            0 => end(NOT_STARTED),
            length => Ok(Word::read(&word[..length])),
        }
    }

    /// The command's process.
    fn become_command(&self) -> ! {
        if self.plan.has_terminal {
            // In front before it begins. It is held that this would stop it.
            let _ = setpgid(None, None);
            let _ = tcsetpgrp(super::standard(0), rustix::process::getpgrp());
        }
        // SAFETY: plain system calls. What Rust has changed of a process is put back.
        unsafe {
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            let mut none = MaybeUninit::<libc::sigset_t>::uninit();
            libc::sigemptyset(none.as_mut_ptr());
            libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
        }
        let mut why = libc::ENOENT;
        for program in &self.plan.programs {
            // SAFETY: texts that end, and lists of them that end.
            unsafe {
                libc::execve(program.as_ptr(), self.pointers.0.as_ptr(), self.pointers.1.as_ptr())
            };
            match io::Error::last_os_error().raw_os_error() {
                Some(libc::ENOENT | libc::ENOTDIR) | None => {}
                Some(other) => why = other,
            }
        }
        let word = Word::Failed { step: START, errno: why };
        let _ = send(self.words, &word.bytes(), SendFlags::NOSIGNAL);
        end(if why == libc::ENOENT { NOT_FOUND } else { NOT_STARTED })
    }

    /// Reaps orphans and passes on what comes, until the command has ended; and with
    /// this process all others.
    fn follow(&self, command: Pid, signals: &OwnedFd) -> Result<Word, Errno> {
        loop {
            let mut ready =
                [PollFd::new(signals, PollFlags::IN), PollFd::new(self.words, PollFlags::IN)];
            match poll(&mut ready, None) {
                Err(Errno::INTR) => continue,
                polled => polled?,
            };
            let (has_signal, has_word) =
                (!ready[0].revents().is_empty(), !ready[1].revents().is_empty());
            if has_signal {
                pass_on(signals, command)?;
            }
            if has_word && let Some(Word::Continue { in_front }) = self.wait_for_word()? {
                if in_front {
                    let _ = tcsetpgrp(super::standard(0), command);
                }
                let _ = kill_process_group(command, Signal::CONT);
            }
            if let Some(status) = self.reap(command)? {
                let word = Word::Ended { status };
                send(self.words, &word.bytes(), SendFlags::NOSIGNAL)?;
                end(0);
            }
        }
    }

    /// The command's end, if that has come.
    fn reap(&self, command: Pid) -> Result<Option<i32>, Errno> {
        let mut options = WaitOptions::NOHANG;
        if self.plan.has_terminal {
            options |= WaitOptions::UNTRACED;
        }
        loop {
            match wait(options) {
                Ok(None) => return Ok(None),
                Ok(Some((process, status))) if process == command => {
                    if !status.stopped() {
                        return Ok(Some(status.as_raw()));
                    }
                    send(self.words, &Word::Stopped.bytes(), SendFlags::NOSIGNAL)?;
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
}

/// Holds all signals; what is to be heard of them is read from the descriptor.
fn hold_signals() -> Result<OwnedFd, Errno> {
    let last = || Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO);
    // SAFETY: the set is filled before it is read; the descriptor is new.
    unsafe {
        let mut all = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(all.as_mut_ptr());
        if libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut()) != 0 {
            return Err(last());
        }
        let descriptor = libc::signalfd(-1, all.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if descriptor < 0 {
            return Err(last());
        }
        Ok(std::os::fd::FromRawFd::from_raw_fd(descriptor))
    }
}

/// Sends to the command, and to no other process of its group, the signals that a process
/// outside the sandbox has sent to this one by `kill`: fsure does, and any process that may.
/// None of those has a number in here, so the kernel gives 0. All other signals are dropped,
/// those of a terminal among them: the command gets these from the terminal.
fn pass_on(signals: &OwnedFd, command: Pid) -> Result<(), Errno> {
    const LENGTH: usize = size_of::<libc::signalfd_siginfo>();
    let mut bytes = [0; LENGTH];
    loop {
        match rustix::io::read(signals, &mut bytes) {
            Err(Errno::AGAIN) => return Ok(()),
            Err(Errno::INTR) => continue,
            read => read?,
        };
        // SAFETY: the kernel's own structure, of plain numbers.
        let info: libc::signalfd_siginfo =
            unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) };
        let signal = i32::try_from(info.ssi_signo).ok().and_then(Signal::from_named_raw);
        if info.ssi_code == libc::SI_USER
            && info.ssi_pid == 0
            && let Some(signal) = signal
        {
            let _ = kill_process(command, signal);
        }
    }
}

/// Opens what is mounted on a folder, as a mount of its own. It does not contain what the
/// command mounts in the folder, and keeps what that covers.
fn bare(place: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    match open_tree(CWD, place, flags) {
        // Before Linux 5.2, or in a container that is not permitted to.
        Err(Errno::NOSYS | Errno::PERM) => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            openat(CWD, place, flags, Mode::empty())
        }
        other => other,
    }
}

pub(in crate::host::linux) fn put(path: &CStr, text: &[u8]) -> Result<(), Errno> {
    let file = openat(CWD, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, text).map(drop)
}
