//! The location of a file's first byte on the disk: `F_LOG2PHYS_EXT`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::OFlags;

/// Access times cannot be kept back here.
pub(crate) const KEEPS_ACCESS_TIME: OFlags = OFlags::empty();

/// Returns true if any part of a file is in the page cache. That is not known here.
pub(crate) fn is_in_memory(_: &OwnedFd) -> bool {
    false
}

/// The disk address of a file's first byte.
pub(crate) fn first_byte(file: BorrowedFd<'_>) -> io::Result<Option<u64>> {
    // In: how much from which byte of the file on. Out: where that lies.
    let mut map = libc::log2phys { l2p_flags: 0, l2p_contigbytes: 1, l2p_devoffset: 0 };
    // SAFETY: the command reads and writes one `log2phys`, which `map` is.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_LOG2PHYS_EXT, &raw mut map) };
    if done == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(u64::try_from(map.l2p_devoffset).ok())
}
