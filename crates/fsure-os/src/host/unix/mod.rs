//! The code that Linux and macOS have in common: descriptors, `openat`, errno.

pub(crate) mod aligned_memory;
pub(crate) mod control_socket;
pub(crate) mod durable_write;
pub(crate) mod file_attributes;
pub(crate) mod lock;
pub(crate) mod machine;
pub(crate) mod output;
pub(crate) mod path;
mod physical_order;
pub(crate) mod repair_write;
pub(crate) mod root_dir;
pub(crate) mod scratch_dir;

use std::os::fd::OwnedFd;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use crate::opener::not_that_file;

/// See [`crate::user::is_root`].
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// See [`crate::user::is_of_another_user`].
pub(crate) fn is_of_another_user(path: &std::path::Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::symlink_metadata(path).is_ok_and(|stat| stat.uid() != user_and_group().0)
}

/// See [`crate::user::home_of`].
pub(crate) fn home_of(user: u32) -> Option<std::path::PathBuf> {
    use std::os::unix::ffi::OsStrExt as _;
    /// Bytes for the texts of an entry. Longer ones are as good as none.
    const ENTRY_BYTES_MAX: usize = 16 << 10;
    let mut texts = vec![0; ENTRY_BYTES_MAX];
    let mut entry = std::mem::MaybeUninit::<libc::passwd>::zeroed();
    let mut found = std::ptr::null_mut();
    // SAFETY: room for the entry and its texts, whose lengths are told. What is found points
    // into both, which outlive it.
    let home = unsafe {
        let room = (texts.as_mut_ptr(), texts.len());
        let failed = libc::getpwuid_r(user, entry.as_mut_ptr(), room.0, room.1, &raw mut found);
        if failed != 0 || found.is_null() || (*found).pw_dir.is_null() {
            return None;
        }
        std::ffi::CStr::from_ptr((*found).pw_dir)
    };
    let home = std::path::PathBuf::from(std::ffi::OsStr::from_bytes(home.to_bytes()));
    home.is_absolute().then_some(home)
}

/// See [`crate::user::user_and_group`].
pub(crate) fn user_and_group() -> (u32, u32) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}

/// The name of this host.
pub(crate) fn name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// See [`crate::host::Handle::next_data`].
pub(super) fn next_data(
    file: &OwnedFd,
    offset: u64,
    size: u64,
) -> std::io::Result<Option<(u64, u64)>> {
    // `seek` moves the descriptor's own position, which no caller uses.
    let start = match rustix::fs::seek(file, SeekFrom::Data(offset)) {
        Ok(start) => start,
        Err(Errno::NXIO) => return Ok(None),
        Err(_) => return Ok(Some((offset, size))),
    };
    let end = rustix::fs::seek(file, SeekFrom::Hole(start)).unwrap_or(size);
    Ok((start < size).then_some((start, end.min(size))))
}

/// Replaces `ESTALE`, the error of network file systems and FUSE for a file that was
/// replaced between being found and being opened: it is another one, and not unreadable.
pub(super) fn if_stale(error: std::io::Error) -> std::io::Error {
    if Errno::from_io_error(&error) == Some(Errno::STALE) { not_that_file() } else { error }
}

/// Lets as many callers wait as the system allows, and not the 128 of the
/// standard library: each that finds no space calls again only after a second.
pub(crate) fn long_queue(listener: &std::net::TcpListener) {
    // SAFETY: an open descriptor and a number. Where it is refused, the queue is
    // as long as it was.
    let _ = unsafe { libc::listen(std::os::fd::AsRawFd::as_raw_fd(listener), 4096) };
}

/// See [`crate::rlimit::open_files`].
pub(crate) fn open_files() -> usize {
    use rustix::process::{Resource, getrlimit, setrlimit};
    /// macOS refuses more than its `OPEN_MAX` where it names no limit.
    const OPEN_FILES_WANTED: u64 = 10_240;
    let mut limit = getrlimit(Resource::Nofile);
    let before = limit.current;
    limit.current = Some(
        limit.maximum.unwrap_or(OPEN_FILES_WANTED).min(OPEN_FILES_WANTED).max(before.unwrap_or(0)),
    );
    let granted = if setrlimit(Resource::Nofile, limit).is_ok() { limit.current } else { before };
    granted.and_then(|files| usize::try_from(files).ok()).unwrap_or(OPEN_FILES_WANTED as usize)
}
