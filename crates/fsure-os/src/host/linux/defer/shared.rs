//! The side of `fsure defer` of the memory that is shared, and the clock that goes with it.

use std::ffi::OsString;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

use super::shared_page::{DEVICES, DIGITS, DeferPage, FAILED, MAGIC, REAL, SEALS};

/// The page, and the file without a name that it is in.
pub(super) struct Shared {
    page: &'static DeferPage,
    file: OwnedFd,
}

impl Deref for Shared {
    type Target = DeferPage;

    fn deref(&self) -> &DeferPage {
        self.page
    }
}

impl Shared {
    /// One that lets every call be real, until it is opened. It stays mapped until
    /// the process ends: the kernel writes to it when a thread does.
    pub(super) fn new(longest: Duration, devices: &[u64]) -> io::Result<Self> {
        if devices.len() > DEVICES {
            let why = format!("more than {DEVICES} file systems at once");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create(c"fsure-defer", flags)?;
        rustix::fs::ftruncate(&file, size_of::<DeferPage>() as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::from_bits_retain(SEALS))?;
        // SAFETY: a new mapping of a whole file, at an address of the kernel's
        // choice.
        let at = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                size_of::<DeferPage>(),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                file.as_fd(),
                0,
            )?
        };
        // SAFETY: zeroes are a page; it is all atomics, which others may change;
        // nothing unmaps it.
        let page = unsafe { &*at.cast::<DeferPage>() };
        page.longest.store(nanoseconds(longest), SeqCst);
        page.state.store(REAL, SeqCst);
        for (place, device) in page.devices.iter().zip(devices) {
            place.store(*device, SeqCst);
        }
        page.device_count.store(u32::try_from(devices.len()).unwrap_or(0), SeqCst);
        page.number.store(crate::scratch_dir::random(), SeqCst);
        page.magic.store(MAGIC, SeqCst);
        Ok(Self { page, file })
    }

    /// Returns the path by which children of this user find the page, preceded by its number.
    pub(super) fn place(&self) -> OsString {
        let (number, file) = (self.number.load(SeqCst), self.file.as_raw_fd());
        format!("{number:0DIGITS$x}/proc/{}/fd/{file}", std::process::id()).into()
    }

    /// From now on calls are what `state` says, unless a flush has failed.
    pub(super) fn become_(&self, state: u32) {
        let _ = self.state.fetch_update(SeqCst, SeqCst, |now| (now != FAILED).then_some(state));
    }

    /// Wakes the thread that flushes.
    pub(super) fn wake(&self) {
        self.wake.fetch_add(1, SeqCst);
        // SAFETY: the futex lies in memory that stays mapped.
        unsafe { libc::syscall(libc::SYS_futex, self.wake.as_ptr(), libc::FUTEX_WAKE, 1) };
    }

    /// Waits until another thread or process has woken this one since `seen` was read,
    /// or for so long.
    pub(super) fn wait(&self, seen: u32, most: Duration) {
        let most = libc::timespec {
            tv_sec: i64::try_from(most.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(most.subsec_nanos()),
        };
        // SAFETY: as above; the time lives through the call.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.wake.as_ptr(),
                libc::FUTEX_WAIT,
                seen,
                &raw const most,
            );
        }
    }
}

pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The time that all processes share.
pub(super) fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
