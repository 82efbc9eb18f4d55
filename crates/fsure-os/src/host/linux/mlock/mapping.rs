//! One file in memory: mapped, locked, and then read. The lock comes first and alone,
//! since mlock(2) says the same of a limit and of a block that cannot be read.

use std::ffi::c_void;
use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MlockFlags, MremapFlags, ProtFlags};

/// Bytes that are read before `is_over` is called again.
const READ_CHUNK_BYTES: usize = 64 << 20;

/// The reason why a file is not held.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    #[error("there is not enough memory for it")]
    TooMuch,
    #[error("vm.max_map_count allows no more files")]
    Mappings,
    #[error("RLIMIT_MEMLOCK does not allow more")]
    Limit,
    #[error("it cannot be read into memory in full")]
    Unreadable,
    #[error("it is over")]
    Over,
    #[error("{0}")]
    System(io::Error),
}

/// A file in memory.
#[derive(Debug)]
pub(super) struct Mapping {
    start: *mut c_void,
    length: usize,
}

// SAFETY: no thread reads or writes through the address.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Returns when all of it is there.
    pub(super) fn new(
        file: &OwnedFd,
        bytes: u64,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Self, Trouble> {
        let length = usize::try_from(bytes).map_err(|_| Trouble::TooMuch)?;
        // SAFETY: a new mapping at an address of the kernel's choice. It is never
        // read, so that a file that gets shorter does no harm.
        let start = unsafe {
            let nowhere = std::ptr::null_mut();
            rustix::mm::mmap(nowhere, length, ProtFlags::READ, MapFlags::SHARED, file, 0)
        };
        let start = start.map_err(|errno| match errno {
            Errno::NOMEM => Trouble::Mappings,
            other => Trouble::System(other.into()),
        })?;
        let mapping = Self { start, length };
        // SAFETY: the mapping made above.
        unsafe { rustix::mm::mlock_with(start, length, MlockFlags::ONFAULT) }.map_err(|errno| {
            match errno {
                Errno::PERM | Errno::NOMEM | Errno::AGAIN => Trouble::Limit,
                other => Trouble::System(other.into()),
            }
        })?;
        mapping.fill(is_over)?;
        Ok(mapping)
    }

    /// Reads what of it is not there: for the first time, or since another process took
    /// pages away. A process does that if it cuts a file short, punches a hole into it, or
    /// writes past the page cache.
    pub(super) fn fill(&self, is_over: &dyn Fn() -> bool) -> Result<(), Trouble> {
        for from in (0..self.length).step_by(READ_CHUNK_BYTES) {
            if is_over() {
                return Err(Trouble::Over);
            }
            let length = READ_CHUNK_BYTES.min(self.length - from);
            // SAFETY: a part of this mapping.
            while let Err(errno) = unsafe { populate(self.start.byte_add(from), length) } {
                match errno {
                    Errno::INTR if !is_over() => {}
                    Errno::INTR => return Err(Trouble::Over),
                    // The last two are how mlock says it.
                    Errno::FAULT | Errno::HWPOISON | Errno::NOMEM | Errno::AGAIN => {
                        return Err(Trouble::Unreadable);
                    }
                    other => return Err(Trouble::System(other.into())),
                }
            }
        }
        Ok(())
    }

    /// Changes the length of the mapping, in bytes. The new part is locked, as all of it was,
    /// and not in memory yet.
    pub(super) fn resize(&mut self, bytes: u64) -> Result<(), Trouble> {
        let length = usize::try_from(bytes).map_err(|_| Trouble::TooMuch)?;
        if length == self.length {
            return Ok(());
        }
        // SAFETY: a whole mapping of this process, to which nothing points.
        let start =
            unsafe { rustix::mm::mremap(self.start, self.length, length, MremapFlags::MAYMOVE) };
        self.start = start.map_err(|errno| match errno {
            Errno::AGAIN => Trouble::Limit,
            other => Trouble::System(other.into()),
        })?;
        self.length = length;
        Ok(())
    }
}

/// Has pages of a mapping be there. mlock(2) does that, too, and tries a block that
/// cannot be read again and again, for ever; so only before Linux 5.14.
///
/// # Safety
/// They are of a mapping that is only read.
unsafe fn populate(start: *mut c_void, length: usize) -> rustix::io::Result<()> {
    // SAFETY: as the caller promises.
    match unsafe { rustix::mm::madvise(start, length, Advice::LinuxPopulateRead) } {
        // SAFETY: as the caller promises.
        Err(Errno::INVAL) => unsafe { rustix::mm::mlock(start, length) },
        other => other,
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: a whole mapping of this process, to which nothing points.
        let unmapped = unsafe { rustix::mm::munmap(self.start, self.length) };
        debug_assert!(unmapped.is_ok(), "a whole mapping can always be unmapped");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_no_limit() {
        let page = rustix::param::page_size() as u64;
        let file = tempfile::tempfile().unwrap();
        file.set_len(page).unwrap();
        // A read behind its end fails, as one in a bad block does.
        let file = OwnedFd::from(file);
        let mapped = Mapping::new(&file, 2 * page, &|| false);
        assert!(matches!(mapped, Err(Trouble::Unreadable)), "{mapped:?}");
        assert!(Mapping::new(&file, page, &|| false).is_ok());
    }
}
