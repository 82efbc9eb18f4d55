//! Opens and stats a lock file, which must not be a link to another user's file.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::CWD;

use crate::Stat;
use crate::host::system::root_dir::{stat_at, stat_descriptor};

/// Makes a link be refused rather than followed, and a FIFO not be waited for.
pub(crate) fn without_following(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
}

/// Makes a FIFO not be waited for.
pub(crate) fn without_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(libc::O_NONBLOCK)
}

/// The stat of an open file.
pub(crate) fn stat(file: &File) -> io::Result<Stat> {
    stat_descriptor(file)
}

/// The stat of a path, not following a link.
pub(crate) fn stat_path(path: &Path) -> io::Result<Stat> {
    let path = super::root_dir::c_string(&super::path::bytes(path))?;
    stat_at(CWD, &path)
}
