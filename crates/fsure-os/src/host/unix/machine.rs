//! The machine and this process, as far as Linux and macOS report them alike.

use std::io;
use std::path::Path;
use std::time::Duration;

use crate::machine::ProcessorTime;

/// See [`crate::machine::own_processor_time`].
pub(crate) fn own_processor_time() -> Option<ProcessorTime> {
    used(libc::RUSAGE_SELF)
}

/// Of the processes that this one has started and waited for.
pub(crate) fn children_time() -> Option<Duration> {
    used(libc::RUSAGE_CHILDREN).map(|time| time.total())
}

fn used(by: libc::c_int) -> Option<ProcessorTime> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the structure is the call's own and outlives it.
    if unsafe { libc::getrusage(by, usage.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: the call has succeeded and filled it.
    let usage = unsafe { usage.assume_init() };
    let time = |time: libc::timeval| {
        let seconds = Duration::from_secs(u64::try_from(time.tv_sec).ok()?);
        Some(seconds + Duration::from_micros(u64::try_from(time.tv_usec).ok()?))
    };
    Some(ProcessorTime { user: time(usage.ru_utime)?, system: time(usage.ru_stime)? })
}

/// See [`crate::machine::is_full`].
pub(crate) fn is_full(folder: &Path) -> io::Result<bool> {
    let answer = rustix::fs::statvfs(folder)?;
    // btrfs has no number of inodes that it may run out of, and says 0.
    Ok(answer.f_bavail == 0 || (answer.f_files > 0 && answer.f_favail == 0))
}

/// See [`crate::machine::free_bytes`].
pub(crate) fn free_bytes(folder: &Path) -> io::Result<u64> {
    let answer = rustix::fs::statvfs(folder)?;
    Ok(answer.f_bavail.saturating_mul(answer.f_frsize))
}
