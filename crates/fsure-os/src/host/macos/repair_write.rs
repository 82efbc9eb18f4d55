//! Copies what a file has besides its bytes, on macOS: one call copies all of it.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use crate::attributes_copied::AttributesCopied;
use crate::host::unix::repair_write::copy_owner_and_mode;

/// Owner, mode, ACL and extended attributes of a model.
pub(crate) fn copy_attributes(
    model: BorrowedFd<'_>,
    file: BorrowedFd<'_>,
    must: bool,
) -> io::Result<AttributesCopied> {
    copy_owner_and_mode(model, file, must, || {
        let (from, to) = (model.as_raw_fd(), file.as_raw_fd());
        let what = libc::COPYFILE_ACL | libc::COPYFILE_XATTR;
        // SAFETY: two open descriptors; no state is asked for.
        let done = unsafe { libc::fcopyfile(from, to, std::ptr::null_mut(), what) };
        match done {
            0 => Ok(AttributesCopied::Fully),
            _ if must => Err(io::Error::last_os_error()),
            _ => Ok(AttributesCopied::InPart),
        }
    })
}

/// There is no way to let go of what is in memory of a file here.
pub(crate) fn drop_cached(_: BorrowedFd<'_>) {}
