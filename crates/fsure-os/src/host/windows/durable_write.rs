//! Durable writes on Windows.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::{FileExt as _, OpenOptionsExt as _};
use std::os::windows::io::AsRawHandle as _;
use std::path::Path;

use windows_sys::Wdk::Storage::FileSystem::NtFlushBuffersFileEx;
use windows_sys::Win32::Foundation::RtlNtStatusToDosError;
use windows_sys::Win32::Storage::FileSystem::{FILE_FLAG_NO_BUFFERING, FILE_FLAG_WRITE_THROUGH};
use windows_sys::Win32::System::IO::IO_STATUS_BLOCK;

use super::call::error_of;
use crate::durable_write::Method;

pub(crate) const METHODS: &[Method] = &[
    Method::WriteOnly,
    Method::FlushNoSync,
    Method::FlushFileBuffers,
    Method::WriteThrough,
    Method::WriteThroughUnbuffered,
];
pub(crate) const STRONGEST: Method = Method::FlushFileBuffers;
pub(crate) const THOROUGH: Method = Method::FlushFileBuffers;
pub(crate) const WEAKER: Option<Method> = Some(Method::FlushNoSync);
pub(crate) const PAST_CACHE: Option<Method> = None;

/// A file and how it is written.
#[derive(Debug)]
pub(crate) struct Writer {
    file: File,
    method: Method,
}

impl Writer {
    pub(crate) fn create(path: &Path, method: Method) -> io::Result<Self> {
        let flags = match method {
            Method::WriteThrough => FILE_FLAG_WRITE_THROUGH,
            Method::WriteThroughUnbuffered => FILE_FLAG_WRITE_THROUGH | FILE_FLAG_NO_BUFFERING,
            method if METHODS.contains(&method) => 0,
            _ => return Err(io::ErrorKind::Unsupported.into()),
        };
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).custom_flags(flags).open(path)?;
        Ok(Self { file, method })
    }

    pub(crate) fn write(&self, data: &[u8], at: u64) -> io::Result<()> {
        let mut done = 0;
        while done < data.len() {
            match self.file.seek_write(&data[done..], at + done as u64)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                bytes => done += bytes,
            }
        }
        Ok(())
    }

    pub(crate) fn flush(&self) -> io::Result<()> {
        match self.method {
            Method::FlushFileBuffers => self.flush_to_medium(),
            Method::FlushNoSync => self.flush_no_sync(),
            _ => Ok(()),
        }
    }

    pub(crate) fn commit(&self, data: &[u8], at: u64) -> io::Result<()> {
        self.write(data, at)?;
        self.flush()
    }

    /// `FlushFileBuffers`, which is what the standard library calls here.
    pub(crate) fn flush_to_medium(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    fn flush_no_sync(&self) -> io::Result<()> {
        /// `ntifs.h`.
        const FLUSH_FLAGS_NO_SYNC: u32 = 2;
        let mut answer = IO_STATUS_BLOCK::default();
        let (file, none) = (self.file.as_raw_handle(), std::ptr::null());
        // SAFETY: an open handle, no parameters, and a block that lives.
        let status =
            unsafe { NtFlushBuffersFileEx(file, FLUSH_FLAGS_NO_SYNC, none, 0, &raw mut answer) };
        if status < 0 {
            // SAFETY: a function from numbers to numbers.
            return Err(error_of(unsafe { RtlNtStatusToDosError(status) }));
        }
        Ok(())
    }
}

/// An open folder; it cannot be flushed.
#[derive(Debug)]
pub(crate) struct Names;

impl Names {
    pub(crate) fn open(_: &Path) -> io::Result<Self> {
        Ok(Self)
    }

    pub(crate) fn flush(&self) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "Windows cannot flush a folder"))
    }
}

/// See [`crate::durable_write::rename`]. Waits: there is no other option that
/// would be durable later.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    super::path::rename(from, to)
}
