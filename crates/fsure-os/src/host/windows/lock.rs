//! Opens and stats a lock file, which must not be a link to another user's file.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsHandle;
use std::path::Path;

use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT, FILE_READ_ATTRIBUTES,
};

use super::stat;
use crate::Stat;

/// Makes a link be opened itself rather than followed, so that its stat says
/// what it is.
pub(crate) fn without_following(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT)
}

/// There are no FIFOs to be waited for.
pub(crate) fn without_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// The stat of an open file.
pub(crate) fn stat(file: &File) -> io::Result<Stat> {
    Ok(stat::of(file.as_handle())?.stat)
}

/// The stat of a path, not following a link.
pub(crate) fn stat_path(path: &Path) -> io::Result<Stat> {
    let file = OpenOptions::new()
        .access_mode(FILE_READ_ATTRIBUTES)
        .custom_flags(FILE_FLAG_OPEN_REPARSE_POINT | FILE_FLAG_BACKUP_SEMANTICS)
        .open(path)?;
    stat(&file)
}
