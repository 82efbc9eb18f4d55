//! Durable writes on macOS, where `fsync` leaves the data in the drive's cache
//! and two more calls go further.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::io::retry_on_intr;

use crate::durable_write::Method;
pub(crate) use crate::host::unix::durable_write::{Names, rename};

pub(crate) const METHODS: &[Method] =
    &[Method::WriteOnly, Method::Fsync, Method::BarrierFsync, Method::FullFsync];
pub(crate) const STRONGEST: Method = Method::FullFsync;
pub(crate) const THOROUGH: Method = Method::FullFsync;
pub(crate) const WEAKER: Option<Method> = Some(Method::Fsync);
pub(crate) const PAST_CACHE: Option<Method> = None;

/// A file and how it is written.
#[derive(Debug)]
pub(crate) struct Writer {
    file: File,
    method: Method,
}

impl Writer {
    pub(crate) fn create(path: &Path, method: Method) -> io::Result<Self> {
        if !METHODS.contains(&method) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        Ok(Self { file, method })
    }

    pub(crate) fn write(&self, data: &[u8], at: u64) -> io::Result<()> {
        self.file.write_all_at(data, at)
    }

    pub(crate) fn flush(&self) -> io::Result<()> {
        match self.method {
            Method::Fsync => Ok(retry_on_intr(|| rustix::fs::fsync(&self.file))?),
            Method::BarrierFsync => {
                // SAFETY: an open descriptor; this command takes no argument.
                match unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_BARRIERFSYNC) } {
                    -1 => Err(io::Error::last_os_error()),
                    _ => Ok(()),
                }
            }
            Method::FullFsync => self.flush_to_medium(),
            _ => Ok(()),
        }
    }

    pub(crate) fn commit(&self, data: &[u8], at: u64) -> io::Result<()> {
        self.write(data, at)?;
        self.flush()
    }

    pub(crate) fn flush_to_medium(&self) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::fcntl_fullfsync(&self.file))?)
    }
}
