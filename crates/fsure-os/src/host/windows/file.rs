//! Reads files past the cache on Windows, by a handle opened without buffering. That is a
//! property of the handle, so that turning it off means opening the file anew. Handles are
//! opened for overlapped reading: on other handles the system serves one read at a time, and
//! large files are read by several threads.

use std::io;
use std::ops::Range;
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use windows_sys::Wdk::Storage::FileSystem::FILE_NO_INTERMEDIATE_BUFFERING;
use windows_sys::Win32::Foundation::{
    ERROR_CALL_NOT_IMPLEMENTED, ERROR_INVALID_FUNCTION, ERROR_INVALID_PARAMETER,
    ERROR_NOT_SUPPORTED, INVALID_HANDLE_VALUE,
};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_OPEN_REPARSE_POINT, FILE_FLAG_OVERLAPPED, FILE_READ_ATTRIBUTES, FILE_READ_DATA,
    ReOpenFile, SYNCHRONIZE,
};
use windows_sys::Win32::System::Ioctl::FSCTL_QUERY_ALLOCATED_RANGES;

use super::call::{self, SHARE_ALL, code, control, last_error, open_below};
use super::root_dir::system_path;
use super::stat;
use crate::Stat;
use crate::host::root_dir::Root;
use crate::host::{Handle, OpenedFile};
use crate::read_mode::ReadMode;

const READING: u32 = FILE_READ_DATA | FILE_READ_ATTRIBUTES | SYNCHRONIZE;

/// An open file.
pub struct File {
    opened: OwnedHandle,
    /// The same file with buffering, once reads without are turned off.
    buffered: OnceLock<OwnedHandle>,
}

impl AsHandle for File {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.buffered.get().unwrap_or(&self.opened).as_handle()
    }
}

impl Handle for File {
    const REPORTS_RESIDENCY: bool = false;

    fn stat(&self) -> io::Result<Stat> {
        Ok(stat::of(self.as_handle())?.stat)
    }

    fn turn(&self, way: ReadMode, on: bool) -> io::Result<()> {
        match (way, on) {
            (ReadMode::Direct, false) => {
                let flags = FILE_FLAG_OVERLAPPED | FILE_FLAG_OPEN_REPARSE_POINT;
                let opened = self.opened.as_raw_handle();
                // SAFETY: the handle is open; a new one comes back.
                let handle = unsafe { ReOpenFile(opened, READING, SHARE_ALL, flags) };
                if handle == INVALID_HANDLE_VALUE {
                    return Err(last_error());
                }
                // SAFETY: just opened, with no other owner.
                let handle = unsafe { OwnedHandle::from_raw_handle(handle) };
                // Already there: then it is as good as this one.
                let _ = self.buffered.set(handle);
                Ok(())
            }
            // It was refused when the file was opened.
            (ReadMode::Direct | ReadMode::DontCache, true) => {
                Err(io::ErrorKind::Unsupported.into())
            }
            _ => Ok(()),
        }
    }

    fn read(&self, _: ReadMode, target: &mut [u8], position: u64) -> io::Result<usize> {
        call::read(self.as_handle(), target, position)
    }

    fn refuses_way(error: &io::Error) -> bool {
        is_unknown(error)
    }

    fn has_medium(&self) -> bool {
        true
    }

    fn knows_dontcache(&self) -> bool {
        false
    }

    fn reports_residency(&self) -> bool {
        false
    }

    fn resident_bytes(&self, _: bool, _: Range<u64>) -> Option<u64> {
        None
    }

    fn drop_cached(&self, _: Range<u64>) {}

    fn is_plain(&self, _: Range<u64>) -> io::Result<bool> {
        Ok(true)
    }

    fn next_data(&self, offset: u64, size: u64) -> io::Result<Option<(u64, u64)>> {
        let mut range = [0; 2];
        let question = [offset, size - offset];
        match control(self.as_handle(), FSCTL_QUERY_ALLOCATED_RANGES, &question, &mut range) {
            Err(_) => Ok(Some((offset, size))),
            Ok((bytes, _)) if bytes < size_of_val(&range) => Ok(None),
            Ok(_) => {
                let [start, length] = range;
                let start = start.max(offset);
                Ok((start < size).then_some((start, start.saturating_add(length).min(size))))
            }
        }
    }
}

/// Returns true if the error means that the system, or Wine, does not know the request.
fn is_unknown(error: &io::Error) -> bool {
    matches!(
        code(error),
        Some(
            ERROR_INVALID_FUNCTION
                | ERROR_NOT_SUPPORTED
                | ERROR_INVALID_PARAMETER
                | ERROR_CALL_NOT_IMPLEMENTED
        )
    )
}

impl Root {
    /// Opens a file to read it, without buffering where that is wanted and
    /// taken. Access times are the system's affair.
    pub(crate) fn open_file(
        &self,
        path: &[u8],
        wants_direct: bool,
        _keeps_access_times: &AtomicBool,
    ) -> io::Result<OpenedFile<File>> {
        let path = system_path(path)?;
        let open = |is_direct| {
            let options = if is_direct { FILE_NO_INTERMEDIATE_BUFFERING } else { 0 };
            open_below(self.handle(), &path, READING, options)
        };
        let (opened, is_direct) = match open(wants_direct) {
            Err(error) if wants_direct && is_unknown(&error) => (open(false)?, false),
            other => (other?, wants_direct),
        };
        let answer = stat::of(opened.as_handle())?;
        if answer.is_stand_in {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "its content is kept by another program (a reparse point)",
            ));
        }
        let file = File { opened, buffered: OnceLock::new() };
        let grain = answer.is_plain.then(|| self.grain(file.as_handle()));
        // What the system would serve from memory has no grain.
        Ok(OpenedFile { file, stat: answer.stat, grain, is_vouched: true, is_direct })
    }

    /// Opens no file: this system does not report what is in its cache.
    pub(crate) fn open_if_resident(
        &self,
        _path: &[u8],
        _size: u64,
        _keeps_access_times: &AtomicBool,
    ) -> io::Result<Option<File>> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Buffer;
    use crate::opener::Opener;
    use std::sync::Arc;

    /// Reads stay correct when buffering is turned back on.
    #[test]
    fn a_file_is_opened_anew_to_be_read_with_buffering() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("f"), [7; 10_000]).unwrap();
        let root = Arc::new(Root::open(folder.path()).unwrap());
        let (source, stat) = Opener::new(root, ReadMode::Direct).open(b"f", true).unwrap();
        let mut buffer = Buffer::new(1 << 20).unwrap();
        assert_eq!(source.read_at(&mut buffer, 0, 10_000).unwrap().way, ReadMode::Direct);
        source.file.turn(ReadMode::Direct, false).unwrap();
        assert!(source.file.buffered.get().is_some());
        buffer.fill(0);
        assert_eq!(source.file.read(ReadMode::Cached, &mut buffer[..9], 9_995).unwrap(), 5);
        assert_eq!(buffer[..6], [7, 7, 7, 7, 7, 0]);
        assert_eq!(source.file.read(ReadMode::Cached, &mut buffer[..9], 10_000).unwrap(), 0);
        assert!(source.stat().unwrap().is_unchanged_from(&stat));
    }
}
