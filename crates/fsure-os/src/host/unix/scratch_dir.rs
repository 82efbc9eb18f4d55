//! Scratch folders on Unix: everything by descriptors, so that no link and no
//! mount leads out of one.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::root_dir::c_string;
use crate::Kind;
use crate::host::system::root_dir::{each_name, open_same_mount, stat_at, stat_descriptor};
pub(crate) use crate::host::system::scratch_dir::{boot, release};
use crate::root_dir::read_all;
use crate::scratch_registry::{LOCK, REGISTERED};

/// More than the lines of a run ever are.
const NOTES_MAX: usize = 1 << 20;

/// A scratch folder.
#[derive(Debug)]
pub(crate) struct Place {
    parent: OwnedFd,
    folder: OwnedFd,
    name: CString,
    /// Held by the process that the folder belongs to, until it removes it.
    lock: Mutex<Option<OwnedFd>>,
}

impl Place {
    /// Makes one and locks it; `None` where another process took it for a dead
    /// one's in between.
    pub(crate) fn make(parent: &Path, name: &str) -> io::Result<Option<Self>> {
        rustix::fs::mkdirat(CWD, parent.join(name), Mode::RWXU)?;
        Self::take(parent, name).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(None),
            _ => Err(error),
        })
    }

    /// Locks one; `None` where a living process has it, or it is another user's.
    pub(crate) fn take(parent: &Path, name: &str) -> io::Result<Option<Self>> {
        let place = Self::open(parent, name)?;
        if rustix::fs::fstat(&place.folder)?.st_uid != rustix::process::geteuid().as_raw() {
            return Ok(None);
        }
        let lock = place.open_own(LOCK, OFlags::RDWR)?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Ok(None),
            other => other?,
        }
        // A process that had the lock before may have removed it.
        let now = stat_at(place.folder.as_fd(), &c_string(LOCK.as_bytes())?)?;
        let is_it = now.inode == stat_descriptor(&lock)?.inode;
        Ok(is_it.then_some(Self { lock: Mutex::new(Some(lock)), ..place }))
    }

    /// One that another process holds.
    pub(crate) fn open(parent: &Path, name: &str) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = rustix::fs::openat(CWD, parent, flags, Mode::empty())?;
        let name = c_string(name.as_bytes())?;
        let folder = rustix::fs::openat(&parent, &*name, flags | OFlags::NOFOLLOW, Mode::empty())?;
        Ok(Self { parent, folder, name, lock: Mutex::default() })
    }

    /// Adds lines to what is registered.
    pub(crate) fn note(&self, lines: &str) -> io::Result<()> {
        let mut file = File::from(self.open_own(REGISTERED, OFlags::WRONLY | OFlags::APPEND)?);
        file.write_all(lines.as_bytes())
    }

    /// Returns the registered lines; empty if there are none.
    pub(crate) fn noted(&self) -> io::Result<String> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.folder, REGISTERED, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(String::new()),
            other => other?,
        };
        let read = |target: &mut [u8], at| Ok(rustix::io::pread(&file, target, at)?);
        Ok(String::from_utf8_lossy(&read_all(NOTES_MAX, read)?).into_owned())
    }

    /// Returns true if the folder still has its name.
    pub(crate) fn is_there(&self) -> bool {
        let named = stat_at(self.parent.as_fd(), &self.name);
        let folder = stat_descriptor(&self.folder);
        matches!((named, folder), (Ok(named), Ok(folder)) if named.inode == folder.inode)
    }

    /// Removes what is in it but what tells whose it is and what is registered.
    pub(crate) fn empty(&self) -> io::Result<()> {
        empty(self.folder.as_fd(), &[LOCK, REGISTERED])
    }

    /// Removes it with all that is in it.
    pub(crate) fn remove(&self) -> io::Result<()> {
        empty(self.folder.as_fd(), &[LOCK])?;
        // What is open when it is removed stays, on FUSE and NFS, under another
        // name until it is closed, and the folder with it.
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner).take());
        empty(self.folder.as_fd(), &[])?;
        unlink(self.parent.as_fd(), &self.name, AtFlags::REMOVEDIR)
    }

    fn open_own(&self, name: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.folder, name, flags, Mode::RUSR | Mode::WUSR)?)
    }
}

/// Removes what is in a folder, and never what is mounted in it.
fn empty(folder: BorrowedFd<'_>, kept: &[&str]) -> io::Result<()> {
    let mut names: Vec<CString> = Vec::new();
    let is_kept = |name: &CStr| kept.iter().any(|kept| kept.as_bytes() == name.to_bytes());
    // A listing needs a descriptor of its own: its place in the folder is kept
    // with it, and the folder may be listed again.
    let listed = rustix::fs::openat(
        folder,
        ".",
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    each_name(&listed, &mut |_, name| {
        if !is_kept(name) {
            names.push(name.to_owned());
        }
        true
    })?;
    for name in names {
        let is_folder = match stat_at(folder, &name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            stat => stat?.kind == Kind::Folder,
        };
        if is_folder {
            empty(open_same_mount(folder, &name)?.as_fd(), &[])?;
        }
        let flags = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        unlink(folder, &name, flags)?;
    }
    Ok(())
}

fn unlink(folder: BorrowedFd<'_>, name: &CStr, flags: AtFlags) -> io::Result<()> {
    match rustix::fs::unlinkat(folder, name, flags) {
        Err(Errno::NOENT) => Ok(()),
        other => Ok(other?),
    }
}

/// Leaves the session of the process that started this one, so that what ends
/// that session does not end this.
pub(crate) fn leave_session() -> io::Result<()> {
    rustix::process::setsid()?;
    // A folder that the user wants to unmount is not kept busy.
    std::env::set_current_dir("/")
}
