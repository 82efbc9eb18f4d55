//! Processes that may be storing into a file through a map, from the kernel's own count of
//! writers.

use std::os::fd::AsRawFd;

use rustix::fs::OFlags;

use crate::host::root_dir::Root;

/// `F_SETSIG` of `linux/fcntl.h`, which libc does not name.
const F_SETSIG: libc::c_int = 10;

/// See [`crate::mapped_write::unseen_write_max_ns`].
pub(crate) fn write_back_max_ns() -> i64 {
    let centiseconds = |name: &str| -> Option<i64> {
        let text = std::fs::read_to_string(format!("/proc/sys/vm/{name}")).ok()?;
        text.trim().parse().ok()
    };
    match (centiseconds("dirty_expire_centisecs"), centiseconds("dirty_writeback_centisecs")) {
        // Nothing is written back for its age.
        (_, Some(0)) => i64::MAX,
        (Some(expire), Some(every)) => expire.saturating_add(every).saturating_mul(2 * 10_000_000),
        _ => 0,
    }
}

/// Asks for a read lease, which the kernel gives only for a file that no process
/// has open for writing; a writable shared map holds its file open.
pub(crate) fn is_open_for_writing(root: &Root, path: &[u8]) -> Option<bool> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = root.open_at(path, flags).ok()?;
    let descriptor = file.as_raw_fd();
    // SAFETY: fcntl with integer arguments on a descriptor that is open. The
    // signal for an opener in that moment becomes one that is ignored by default;
    // SIGIO would end the process.
    let answer = unsafe {
        libc::fcntl(descriptor, F_SETSIG, libc::SIGURG);
        libc::fcntl(descriptor, libc::F_SETLEASE, libc::F_RDLCK)
    };
    if answer != 0 {
        let error = std::io::Error::last_os_error().raw_os_error();
        return (error == Some(libc::EAGAIN)).then_some(true);
    }
    // SAFETY: as above. Closing the descriptor ends the lease, too.
    unsafe { libc::fcntl(descriptor, libc::F_SETLEASE, libc::F_UNLCK) };
    Some(false)
}
