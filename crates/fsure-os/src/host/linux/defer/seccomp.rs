//! Calls met by the kernel: a filter in the command and all its children hands
//! `fsync` and its kin to fsure, and waits for its answer. It meets programs
//! without a loader, too. Each call costs two changes of process, where the shim
//! costs none.
//!
//! fsure says 0, or an error, or "go on", and then the kernel makes the call: with a
//! descriptor that may have been changed in between, but that is so with every
//! descriptor that two threads share.

use std::io;
use std::mem::{MaybeUninit, offset_of};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use libc::{seccomp_data, seccomp_notif, seccomp_notif_resp, sock_filter, sock_fprog};
use rustix::fs::{AtFlags, CWD, StatxFlags};

use super::shared::{Shared, now};
use super::shared_page::{FlushAnswer, device};

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: Option<u32> = Some(0xC000_003E);
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: Option<u32> = Some(0xC000_00B7);
#[cfg(target_arch = "riscv64")]
const ARCHITECTURE: Option<u32> = Some(0xC000_00F3);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
const ARCHITECTURE: Option<u32> = None;

const CALLS: [libc::c_long; 3] = [libc::SYS_fsync, libc::SYS_fdatasync, libc::SYS_syncfs];

/// The filter: calls of another architecture, and all but [`CALLS`], do not go to fsure.
fn filter(architecture: u32) -> Vec<sock_filter> {
    let step = |code: u32, jt: usize, jf: usize, k: u32| sock_filter {
        code: code as u16,
        jt: jt as u8,
        jf: jf as u8,
        k,
    };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let equals = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let mut steps = vec![
        step(load, 0, 0, offset_of!(seccomp_data, arch) as u32),
        step(equals, 0, CALLS.len() + 1, architecture),
        step(load, 0, 0, offset_of!(seccomp_data, nr) as u32),
    ];
    for (place, call) in CALLS.iter().enumerate() {
        steps.push(step(equals, CALLS.len() - place, 0, *call as u32));
    }
    let give = libc::BPF_RET | libc::BPF_K;
    steps.push(step(give, 0, 0, libc::SECCOMP_RET_ALLOW));
    steps.push(step(give, 0, 0, libc::SECCOMP_RET_USER_NOTIF));
    steps
}

/// Has a command hand its calls to fsure. The listener comes through what is
/// returned, once the command was started.
pub(super) fn prepare(command: &mut Command) -> io::Result<UnixDatagram> {
    let architecture = ARCHITECTURE.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::Unsupported,
            "there is no seccomp filter for this kind of processor",
        )
    })?;
    let (parent_end, child_end) = UnixDatagram::pair()?;
    let filter = filter(architecture);
    let install = move || {
        let listener = install(&filter)?;
        send(child_end.as_raw_fd(), listener)
    };
    // SAFETY: between fork and exec only system calls are made, and nothing is
    // allocated unless they fail, when the child is at its end.
    unsafe { command.pre_exec(install) };
    Ok(parent_end)
}

fn install(filter: &[sock_filter]) -> io::Result<RawFd> {
    let program = sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // A signal that comes while fsure decides must not restart the call (Linux 5.19).
    let killable = libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let listening = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    let mut last = io::Error::from(io::ErrorKind::Unsupported);
    for (flags, gives_up) in
        [(listening | killable, false), (listening | killable, true), (listening, true)]
    {
        // SAFETY: numbers, and a filter that lives through the call.
        let file = unsafe {
            if gives_up {
                // Without root: who cannot gain privileges may filter himself.
                libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            }
            let set = libc::SECCOMP_SET_MODE_FILTER;
            libc::syscall(libc::SYS_seccomp, set, flags, &raw const program)
        };
        if file >= 0 {
            return Ok(file as RawFd);
        }
        last = io::Error::last_os_error();
    }
    Err(last)
}

/// Room for one descriptor and its header.
#[repr(C, align(8))]
struct ControlBuffer([u8; 24]);

fn send(socket: RawFd, file: RawFd) -> io::Result<()> {
    let mut byte = 0_u8;
    let mut vector = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let mut control = ControlBuffer([0; 24]);
    // SAFETY: zeroes are a message; all that it points to lives through the call,
    // and its control part has the space for one descriptor.
    let sent = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut vector;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = size_of::<ControlBuffer>() as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(4) as _;
        libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(file);
        libc::sendmsg(socket, &raw const message, 0)
    };
    if sent == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn receive(socket: &UnixDatagram) -> io::Result<OwnedFd> {
    let mut byte = 0_u8;
    let mut vector = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let mut control = ControlBuffer([0; 24]);
    // SAFETY: as in `send`; the descriptor is a new one of this process.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut vector;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = size_of::<ControlBuffer>() as _;
        let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
        if libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) != 1 {
            return Err(io::Error::last_os_error());
        }
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if header.is_null() || (*header).cmsg_type != libc::SCM_RIGHTS {
            return Err(io::Error::other("the command sent no seccomp listener"));
        }
        Ok(OwnedFd::from_raw_fd(libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned()))
    }
}

/// Interval at which a thread that waits for the listener checks for a reason to stop.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The thread that answers.
pub(super) struct SeccompListener {
    /// Closed when it ends, however it does.
    ended: Receiver<()>,
}

impl SeccompListener {
    /// Begins to answer for a command that was started.
    pub(super) fn begin(socket: &UnixDatagram, shared: &Arc<Shared>) -> io::Result<Self> {
        let (file, shared) = (receive(socket)?, Arc::clone(shared));
        let (ends, ended) = channel();
        std::thread::spawn(move || {
            let _ends: Sender<()> = ends;
            answer_all(&file, &shared);
        });
        Ok(Self { ended })
    }

    /// Waits until no process is left that asks, unless there is a reason not to;
    /// whether none is left.
    pub(super) fn wait_unless(&self, reason: impl Fn() -> bool) -> bool {
        while self.ended.recv_timeout(STOP_POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            if reason() {
                return false;
            }
        }
        true
    }
}

/// The outcome of waiting for a call.
#[derive(Debug, PartialEq, Eq)]
enum Waited {
    Call,
    /// Nothing: a signal came.
    Nothing,
    /// No process is left that could ask.
    Over,
}

/// Waits for a call. Only one that is there may be received: on older kernels who
/// waits in there is not woken when the last process ends.
fn wait_for_call(listener: &OwnedFd) -> Waited {
    let mut poll = libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one structure, which lives through the call.
    unsafe { libc::poll(&raw mut poll, 1, -1) };
    match poll.revents {
        0 => Waited::Nothing,
        events if events & libc::POLLIN != 0 => Waited::Call,
        _ => Waited::Over,
    }
}

fn answer_all(listener: &OwnedFd, shared: &Shared) {
    loop {
        match wait_for_call(listener) {
            Waited::Call => {}
            Waited::Nothing => continue,
            Waited::Over => return,
        }
        let mut asked = MaybeUninit::<seccomp_notif>::zeroed();
        // SAFETY: the kernel wants it zeroed, and fills it.
        let asked = unsafe {
            let request = libc::SECCOMP_IOCTL_NOTIF_RECV;
            if libc::ioctl(listener.as_raw_fd(), request, asked.as_mut_ptr()) != 0 {
                // Its process was killed, or a signal came.
                continue;
            }
            asked.assume_init()
        };
        let mut answer = seccomp_notif_resp { id: asked.id, val: 0, error: 0, flags: 0 };
        match of_call(listener, &asked, shared) {
            FlushAnswer::Acknowledged { first: true } => shared.wake(),
            FlushAnswer::Acknowledged { first: false } => {}
            FlushAnswer::Real => answer.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
            FlushAnswer::Failed => answer.error = -libc::EIO,
        }
        // SAFETY: the structure lives through the call. It fails if no process waits
        // for the answer any more.
        unsafe {
            let request = libc::SECCOMP_IOCTL_NOTIF_SEND;
            libc::ioctl(listener.as_raw_fd(), request, &raw mut answer);
        }
    }
}

/// Decides the outcome of a call. A call for a file that cannot be checked is not deferred.
fn of_call(listener: &OwnedFd, asked: &seccomp_notif, shared: &Shared) -> FlushAnswer {
    let path = format!("/proc/{}/fd/{}", asked.pid, asked.data.args[0] as RawFd);
    // The link can be read or written as the file can: what is only a path can do
    // neither, and not be synced.
    let link = rustix::fs::lstat(&path);
    if !link.is_ok_and(|link| link.st_mode & 0o600 != 0) {
        return FlushAnswer::Real;
    }
    // A file system that would have to ask its server must not hold up a process.
    let flags = AtFlags::STATX_DONT_SYNC;
    let Ok(stat) = rustix::fs::statx(CWD, path, flags, StatxFlags::TYPE) else {
        return FlushAnswer::Real;
    };
    // SAFETY: a number that the kernel has given this process. The call says whether the
    // asking process still waits, and was not another one of that number.
    let waits = unsafe {
        let request = libc::SECCOMP_IOCTL_NOTIF_ID_VALID;
        libc::ioctl(listener.as_raw_fd(), request, &raw const asked.id) == 0
    };
    if !waits {
        return FlushAnswer::Real;
    }
    let device = device(stat.stx_mode, stat.stx_dev_major, stat.stx_dev_minor);
    shared.call(device, now())
}

#[cfg(test)]
mod tests {
    use std::os::unix::thread::JoinHandleExt as _;

    use super::*;

    extern "C" fn nothing(_: libc::c_int) {}

    #[test]
    fn a_signal_is_no_call_and_no_end() {
        let (reads, writes) = rustix::pipe::pipe().unwrap();
        // SAFETY: a handler that does nothing, for a signal that does nothing.
        unsafe { libc::signal(libc::SIGURG, nothing as *const () as usize) };
        let waiting = std::thread::spawn(move || (wait_for_call(&reads), reads));
        while !waiting.is_finished() {
            // SAFETY: the thread was not joined yet.
            unsafe { libc::pthread_kill(waiting.as_pthread_t(), libc::SIGURG) };
            std::thread::sleep(Duration::from_millis(5));
        }
        let (waited, reads) = waiting.join().unwrap();
        assert_eq!(waited, Waited::Nothing);
        rustix::io::write(&writes, b"x").unwrap();
        assert_eq!(wait_for_call(&reads), Waited::Call);
        rustix::io::read(&reads, &mut [0; 1]).unwrap();
        drop(writes);
        assert_eq!(wait_for_call(&reads), Waited::Over);
    }
}
