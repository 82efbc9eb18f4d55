//! What Linux and macOS have in common: descriptors, `openat`, errno.

pub(crate) mod folder;
pub(crate) mod lock;
pub(crate) mod memory;
pub(crate) mod path;
mod place;

use std::os::fd::OwnedFd;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

/// See [`crate::host::Handle::next_data`].
pub(super) fn next_data(
    file: &OwnedFd,
    offset: u64,
    size: u64,
) -> std::io::Result<Option<(u64, u64)>> {
    // `seek` moves the descriptor's own position, which nobody uses.
    let start = match rustix::fs::seek(file, SeekFrom::Data(offset)) {
        Ok(start) => start,
        Err(Errno::NXIO) => return Ok(None),
        Err(_) => return Ok(Some((offset, size))),
    };
    let end = rustix::fs::seek(file, SeekFrom::Hole(start)).unwrap_or(size);
    Ok((start < size).then_some((start, end.min(size))))
}
