//! Priorities on Linux: `SCHED_IDLE`, and the idle class of I/O priorities, as
//! far as the scheduler of the disk knows it. Both are a thread's own, and go to
//! the threads that it starts.

use std::io;

use super::device::scheduler_of;
use crate::device::StorageDevice;

/// See [`crate::priority::lowest`].
pub(crate) fn lowest() -> Vec<String> {
    let mut refused = Vec::new();
    if let Err(error) = idle_processor() {
        // Nearly as good, where the policy is not to be had.
        match rustix::process::setpriority_process(None, 19) {
            Ok(()) => refused.push(format!("only nice 19 for the processor: {error}")),
            Err(nice) => refused.push(format!("no priority for the processor: {error}; {nice}")),
        }
    }
    if let Err(error) = idle_disk() {
        refused.push(format!("no priority for the disk: {error}"));
    }
    refused
}

/// See [`crate::priority::highest`]. The nice value is a thread's own on Linux: the
/// `None` of this call is the calling thread. A refusal is one for want of `CAP_SYS_NICE`.
pub(crate) fn highest() {
    let _ = rustix::process::setpriority_process(None, -20);
}

/// `sched_setscheduler(2)` without the C library: that of musl refuses it.
fn idle_processor() -> io::Result<()> {
    let priority: libc::c_int = 0;
    // SAFETY: 0 is this thread, and `priority`, all that the structure has, outlives the call.
    let done = unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_IDLE, &raw const priority)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// `ioprio_set(2)`, for which the C library has no function.
fn idle_disk() -> io::Result<()> {
    const WHO_PROCESS: libc::c_int = 1;
    const IDLE: libc::c_int = 3 << 13;
    // SAFETY: three numbers; 0 is this thread.
    let done = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, IDLE) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// See [`crate::priority::is_heeded_by`]. BFQ and mq-deadline (from 5.14) know
/// the idle class; kyber and none do not.
pub(crate) fn is_heeded_by(device: &StorageDevice) -> Option<bool> {
    let schedulers: Vec<_> = device.disks.iter().filter_map(|disk| scheduler_of(*disk)).collect();
    let knows = |name: &String| ["bfq", "mq-deadline"].contains(&&**name);
    (!schedulers.is_empty()).then(|| schedulers.iter().all(knows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_goes_first_and_the_others_stay() {
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let before = nice();
        let first = std::thread::spawn(move || {
            highest();
            nice()
        });
        match first.join().unwrap() {
            -20 => assert_eq!(nice(), before),
            refused => {
                assert_eq!(refused, before);
                super::super::file::did_not_run("one_thread_goes_first", "no CAP_SYS_NICE");
            }
        }
    }

    #[test]
    fn a_thread_that_was_started_later_stands_back_too() {
        let thread = std::thread::spawn(|| {
            let refused = lowest();
            let after = std::thread::spawn(|| {
                // SAFETY: a number in, a number out; 0 is this thread.
                let policy = unsafe { libc::sched_getscheduler(0) };
                // SAFETY: likewise.
                let class = unsafe { libc::syscall(libc::SYS_ioprio_get, 1, 0) };
                (policy, class >> 13)
            });
            (refused, after.join().unwrap())
        });
        let (refused, (policy, class)) = thread.join().unwrap();
        if refused.is_empty() {
            assert_eq!((policy, class), (libc::SCHED_IDLE, 3));
        } else {
            super::super::file::did_not_run("a_thread_that_was_started_later", &refused.join("; "));
        }
    }
}
