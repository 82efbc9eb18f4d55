//! Durable writes on Linux.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use io_uring::{IoUring, opcode, squeue, types};
use rustix::io::{Errno, ReadWriteFlags, retry_on_intr};

use crate::durable_write::Method;
pub(crate) use crate::host::unix::durable_write::{Names, rename};

pub(crate) const METHODS: &[Method] = &[
    Method::WriteOnly,
    Method::SyncFileRange,
    Method::Direct,
    Method::Fsync,
    Method::Fdatasync,
    Method::Dsync,
    Method::Sync,
    Method::RwfDsync,
    Method::DirectDsync,
    Method::DirectFdatasync,
    Method::Syncfs,
    Method::Ring,
];
pub(crate) const STRONGEST: Method = Method::Fdatasync;
pub(crate) const THOROUGH: Method = Method::Fsync;
pub(crate) const WEAKER: Option<Method> = None;
pub(crate) const PAST_CACHE: Option<Method> = Some(Method::DirectFdatasync);

/// A file and how it is written.
pub(crate) struct Writer {
    file: File,
    method: Method,
    ring: Option<Mutex<IoUring>>,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("file", &self.file).field("method", &self.method).finish()
    }
}

impl Writer {
    pub(crate) fn create(path: &Path, method: Method) -> io::Result<Self> {
        let flags = match method {
            Method::Dsync => libc::O_DSYNC,
            Method::Sync => libc::O_SYNC,
            Method::Direct | Method::DirectFdatasync => libc::O_DIRECT,
            Method::DirectDsync => libc::O_DIRECT | libc::O_DSYNC,
            method if METHODS.contains(&method) => 0,
            _ => return Err(io::ErrorKind::Unsupported.into()),
        };
        let ring = match method {
            Method::Ring => Some(Mutex::new(IoUring::new(2).map_err(no_ring)?)),
            _ => None,
        };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).custom_flags(flags);
        Ok(Self { file: options.open(path)?, method, ring })
    }

    pub(crate) fn write(&self, data: &[u8], at: u64) -> io::Result<()> {
        if self.method != Method::RwfDsync {
            return self.file.write_all_at(data, at);
        }
        let mut done = 0;
        while done < data.len() {
            let (rest, at) = ([IoSlice::new(&data[done..])], at + done as u64);
            let write = || rustix::io::pwritev2(&self.file, &rest, at, ReadWriteFlags::DSYNC);
            match retry_on_intr(write)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                bytes => done += bytes,
            }
        }
        Ok(())
    }

    /// By the C library's calls: what was preloaded before it to do nothing
    /// (eatmydata) does nothing here, too, as for every other program, and shows.
    pub(crate) fn flush(&self) -> io::Result<()> {
        match self.method {
            Method::Fsync => self.call(libc::fsync),
            Method::Fdatasync | Method::DirectFdatasync | Method::Ring => {
                self.call(libc::fdatasync)
            }
            Method::Syncfs => self.call(libc::syncfs),
            Method::SyncFileRange => self.sync_file_range(),
            _ => Ok(()),
        }
    }

    fn call(&self, flush: unsafe extern "C" fn(libc::c_int) -> libc::c_int) -> io::Result<()> {
        loop {
            // SAFETY: it is one of the calls above, with an open descriptor.
            if unsafe { flush(self.file.as_raw_fd()) } == 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    pub(crate) fn commit(&self, data: &[u8], at: u64) -> io::Result<()> {
        if let Some(ring) = &self.ring {
            let ring = &mut *ring.lock().unwrap_or_else(PoisonError::into_inner);
            return write_linked(ring, &self.file, data, at);
        }
        self.write(data, at)?;
        self.flush()
    }

    /// By the system call itself, past whatever was preloaded: what is left
    /// behind here would be counted for the next method.
    pub(crate) fn flush_to_medium(&self) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::fdatasync(&self.file))?)
    }

    /// Of the whole file: to its end, as no length says.
    fn sync_file_range(&self) -> io::Result<()> {
        let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
            | libc::SYNC_FILE_RANGE_WRITE
            | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        // SAFETY: an open descriptor and numbers.
        match unsafe { libc::sync_file_range(self.file.as_raw_fd(), 0, 0, flags) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Containers forbid it, and `kernel.io_uring_disabled` does.
fn no_ring(error: io::Error) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("io_uring is not available: {error}"))
}

/// A write and an `fdatasync` behind it, both handed over at once. Where the
/// write fails or comes short, the kernel cancels the other.
fn write_linked(ring: &mut IoUring, file: &File, data: &[u8], at: u64) -> io::Result<()> {
    const WRITE: u64 = 0;
    const FLUSH: u64 = 1;
    let length = u32::try_from(data.len()).map_err(|_| Errno::INVAL)?;
    let file = types::Fd(file.as_raw_fd());
    let write = opcode::Write::new(file, data.as_ptr(), length).offset(at).build();
    let flush = opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build();
    let entries = [write.flags(squeue::Flags::IO_LINK).user_data(WRITE), flush.user_data(FLUSH)];
    // SAFETY: the data are borrowed and the file is open until this returns,
    // which it does only after both completions.
    unsafe { ring.submission().push_multiple(&entries) }.expect("the queue is empty and has two");
    let mut answers = [0; 2];
    let mut left = answers.len();
    while left > 0 {
        // Interrupted: what is in flight goes on.
        let _ = ring.submit_and_wait(left);
        for completion in ring.completion() {
            answers[completion.user_data() as usize] = completion.result();
            left -= 1;
        }
    }
    match answers {
        [bytes, 0] if bytes.cast_unsigned() == length => Ok(()),
        [error, _] | [_, error] if error < 0 => Err(Errno::from_raw_os_error(-error).into()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}
