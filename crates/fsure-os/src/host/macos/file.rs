//! Reads files on macOS without filling the cache. `F_NOCACHE` leaves nothing behind but
//! takes what is already there, so it is [`ReadMode::DontCache`] and never direct. Only a mapping
//! could show what was there, and fsure never makes one. So nothing proves that a read came
//! from the medium, and every read is reported as cached.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicBool;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::filesystem_id::kind_of;
use super::root_dir::stat_descriptor;
use crate::Stat;
use crate::host::root_dir::Root;
use crate::host::unix::{self, if_stale};
use crate::host::{Handle, OpenedFile};
use crate::read_mode::ReadMode;

/// An open file.
pub struct File(OwnedFd);

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl File {
    /// `fcntl` with a number behind. The call must stay variadic: on arm64
    /// such arguments go another way than named ones.
    fn control(&self, command: libc::c_int, argument: libc::c_int) -> io::Result<()> {
        // SAFETY: the descriptor is open, and these commands take a number.
        let done = unsafe { libc::fcntl(self.0.as_raw_fd(), command, argument) };
        if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

impl Handle for File {
    const REPORTS_RESIDENCY: bool = false;

    fn stat(&self) -> io::Result<Stat> {
        stat_descriptor(self)
    }

    fn turn(&self, way: ReadMode, on: bool) -> io::Result<()> {
        match way {
            ReadMode::Direct if on => Err(io::ErrorKind::Unsupported.into()),
            ReadMode::DontCache => {
                self.control(libc::F_NOCACHE, on.into())?;
                // What is read ahead would be left in the cache.
                self.control(libc::F_RDAHEAD, (!on).into())
            }
            _ => Ok(()),
        }
    }

    fn read(&self, _: ReadMode, target: &mut [u8], position: u64) -> io::Result<usize> {
        Ok(rustix::io::pread(self, target, position)?)
    }

    fn refuses_way(error: &io::Error) -> bool {
        let errno = Errno::from_io_error(error);
        matches!(errno, Some(Errno::INVAL | Errno::NOTSUP | Errno::OPNOTSUPP))
    }

    fn has_medium(&self) -> bool {
        kind_of(self).is_none_or(|kind| kind != "tmpfs")
    }

    fn knows_dontcache(&self) -> bool {
        self.turn(ReadMode::DontCache, true).is_ok()
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
        unix::next_data(&self.0, offset, size)
    }
}

impl Root {
    /// Opens a file to read it. There are no direct reads to be wanted, and
    /// access times cannot be kept back.
    pub(crate) fn open_file(
        &self,
        path: &[u8],
        _wants_direct: bool,
        _keeps_access_times: &AtomicBool,
    ) -> io::Result<OpenedFile<File>> {
        let opened = self.open_at(path, OFlags::RDONLY | OFlags::NONBLOCK);
        let file = File(opened.map_err(if_stale)?);
        let stat = file.stat().map_err(if_stale)?;
        Ok(OpenedFile { file, stat, grain: None, is_vouched: true, is_direct: false })
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
