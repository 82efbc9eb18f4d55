//! Signals that ask this process to end, or for something that only the command knows,
//! are passed on to the command. This process goes on until the command has ended,
//! since what the command acknowledged is still to be made durable.
//!
//! What a terminal sends goes to all processes of a group, so that the command
//! has it already: a second Ctrl-C means something else to many programs. Only
//! what another process sent to this process alone is passed on.

use std::io;
use std::mem::MaybeUninit;
use std::process::{Child, ExitStatus};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicI32, AtomicU32};

const SIGNALS: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// Those that ask for something else, which only the command knows.
const MESSAGES: [i32; 2] = [libc::SIGUSR1, libc::SIGUSR2];

/// The command's process; 0 where there is none.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// The first signal that asked.
static ASKED: AtomicI32 = AtomicI32::new(0);
/// Number of signals received that ask this process to end, not only the command.
static TIMES: AtomicU32 = AtomicU32::new(0);

/// Handlers, until this is dropped.
pub(super) struct Relay {
    before: Vec<(i32, libc::sigaction)>,
}

impl Relay {
    /// Begins to listen. What comes before there is a command is passed on when
    /// there is one.
    pub(super) fn begin() -> Self {
        ASKED.store(0, SeqCst);
        TIMES.store(0, SeqCst);
        let mut before = Vec::new();
        for signal in SIGNALS.into_iter().chain(MESSAGES) {
            let mut old = MaybeUninit::<libc::sigaction>::uninit();
            // SAFETY: zeroes are an action; the handler does only what handlers may.
            unsafe {
                let mut new: libc::sigaction = std::mem::zeroed();
                new.sa_sigaction = pass_on as *const () as usize;
                new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
                if libc::sigaction(signal, null_mut(), old.as_mut_ptr()) != 0 {
                    continue;
                }
                let old = old.assume_init();
                // As `nohup` has it.
                if old.sa_sigaction != libc::SIG_IGN
                    && libc::sigaction(signal, &raw const new, null_mut()) == 0
                {
                    before.push((signal, old));
                }
            }
        }
        Self { before }
    }

    /// Passes on what comes, and what has come, to a child that was not waited for
    /// yet; until [`Self::stop_forwarding`], which is before it is.
    pub(super) fn forward_to(&self, child: i32) {
        CHILD.store(child, SeqCst);
        if let Some(signal) = self.asked() {
            // SAFETY: a number, of a child.
            unsafe { libc::kill(child, signal) };
        }
    }

    pub(super) fn stop_forwarding(&self) {
        CHILD.store(0, SeqCst);
    }

    /// Waits for a child, and passes on what comes meanwhile.
    pub(super) fn wait(&self, child: &mut Child) -> io::Result<ExitStatus> {
        self.forward_to(i32::try_from(child.id()).map_err(io::Error::other)?);
        // Its number can be another process's once it was waited for.
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        let waited = loop {
            let flags = libc::WEXITED | libc::WNOWAIT;
            // SAFETY: the structure lives through the call.
            let result = unsafe { libc::waitid(libc::P_PID, child.id(), info.as_mut_ptr(), flags) };
            let error = io::Error::last_os_error();
            match result {
                0 => break Ok(()),
                _ if error.kind() == io::ErrorKind::Interrupted => {}
                _ => break Err(error),
            }
        };
        self.stop_forwarding();
        waited.and_then(|()| child.wait())
    }

    /// The first signal that asked this process to end.
    pub(super) fn asked(&self) -> Option<i32> {
        Some(ASKED.load(SeqCst)).filter(|signal| *signal != 0)
    }

    /// Returns the number of SIGINT and SIGTERM signals received.
    #[cfg(feature = "defer")]
    pub(super) fn times(&self) -> u32 {
        TIMES.load(SeqCst)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        for (signal, old) in &self.before {
            // SAFETY: an action that was there before.
            unsafe { libc::sigaction(*signal, old, null_mut()) };
        }
    }
}

extern "C" fn pass_on(signal: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    if !MESSAGES.contains(&signal) {
        let _ = ASKED.compare_exchange(0, signal, SeqCst, SeqCst);
    }
    if matches!(signal, libc::SIGINT | libc::SIGTERM) {
        TIMES.fetch_add(1, SeqCst);
    }
    let child = CHILD.load(SeqCst);
    // SAFETY: the kernel's own structure, for this call. What a process has sent
    // has a code of 0 or below; `kill` may be called here, and keeps to a child
    // that was not waited for. `errno` is as it was where it succeeds.
    unsafe {
        if child != 0 && (*info).si_code <= 0 {
            libc::kill(child, signal);
        }
    }
}
