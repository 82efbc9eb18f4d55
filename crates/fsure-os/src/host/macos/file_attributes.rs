//! Attributes on macOS: of an open file, which a link can be, too.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, XattrFlags};
use rustix::io::Errno;

/// True if access lists (ACLs) can be read on this system: they are not among the
/// attributes here, and the library that reads them is not used.
pub const HAS_ACCESS_LISTS: bool = false;

/// The way to a name.
pub(crate) struct Reach(OwnedFd);

impl Reach {
    pub(crate) fn to(
        root: BorrowedFd<'_>,
        folder: Option<OwnedFd>,
        name: CString,
    ) -> io::Result<Self> {
        // Does not wait for a process that writes into a FIFO.
        let flags =
            OFlags::from_bits_retain(libc::O_SYMLINK as u32) | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let at = folder.as_ref().map_or(root, |folder| folder.as_fd());
        Ok(Self(rustix::fs::openat(at, &*name, flags, Mode::empty())?))
    }

    pub(crate) fn list(&self, buffer: &mut [u8]) -> rustix::io::Result<usize> {
        match buffer {
            [] => rustix::fs::flistxattr_query(&self.0),
            _ => rustix::fs::flistxattr(&self.0, buffer),
        }
    }

    pub(crate) fn get(&self, name: &CStr, buffer: &mut [u8]) -> rustix::io::Result<usize> {
        match buffer {
            [] => rustix::fs::fgetxattr_query(&self.0, name),
            _ => rustix::fs::fgetxattr(&self.0, name, buffer),
        }
    }

    pub(crate) fn set(
        &self,
        name: &CStr,
        value: &[u8],
        flags: XattrFlags,
    ) -> rustix::io::Result<()> {
        rustix::fs::fsetxattr(&self.0, name, value, flags)
    }

    pub(crate) fn remove(&self, name: &CStr) -> rustix::io::Result<()> {
        rustix::fs::fremovexattr(&self.0, name)
    }
}

/// The mode, with the bits for its kind.
pub(crate) fn mode_of(stat: &rustix::fs::Stat) -> u32 {
    stat.st_mode.into()
}

/// Returns true if the error means that the file does not have the attribute, or that
/// there are no attributes at all.
pub(crate) fn is_absent(error: Errno) -> bool {
    matches!(error, Errno::NOTSUP) || error.raw_os_error() == libc::ENOATTR
}

/// There is no namespace that only some are shown.
pub fn sees_trusted() -> bool {
    true
}
