//! Scratch folders on Windows, by their paths: nothing but the folder is known here
//! to be kept beyond the process that made it.

use std::fs::{DirEntry, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::windows::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use windows_sys::Wdk::System::SystemInformation::{
    NtQuerySystemInformation, SystemTimeOfDayInformation,
};
use windows_sys::Win32::System::WindowsProgramming::SYSTEM_TIMEOFDAY_INFORMATION;

use crate::scratch_registry::{LOCK, REGISTERED, Resource};

/// A scratch folder.
#[derive(Debug)]
pub(crate) struct Place {
    folder: PathBuf,
    /// Held by the process that the folder belongs to; a file that is open
    /// cannot be removed, so that it is let go of first.
    lock: Mutex<Option<File>>,
}

impl Place {
    /// Makes one and locks it; `None` where another process took it for a dead
    /// one's in between.
    pub(crate) fn make(parent: &Path, name: &str) -> io::Result<Option<Self>> {
        std::fs::create_dir(parent.join(name))?;
        Self::take(parent, name).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(None),
            _ => Err(error),
        })
    }

    /// Locks one; `None` where a living process has it.
    pub(crate) fn take(parent: &Path, name: &str) -> io::Result<Option<Self>> {
        let place = Self::open(parent, name)?;
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(place.folder.join(LOCK))?;
        if lock.try_lock().is_err() {
            return Ok(None);
        }
        Ok(Some(Self { lock: Mutex::new(Some(lock)), ..place }))
    }

    /// One that another process holds.
    pub(crate) fn open(parent: &Path, name: &str) -> io::Result<Self> {
        let folder = parent.join(name);
        if !std::fs::symlink_metadata(&folder)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { folder, lock: Mutex::new(None) })
    }

    /// Adds lines to what is registered.
    pub(crate) fn note(&self, lines: &str) -> io::Result<()> {
        let file = OpenOptions::new().append(true).create(true).open(self.folder.join(REGISTERED));
        file?.write_all(lines.as_bytes())
    }

    /// Returns the registered lines; empty if there are none.
    pub(crate) fn noted(&self) -> io::Result<String> {
        match std::fs::read_to_string(self.folder.join(REGISTERED)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            other => other,
        }
    }

    /// Returns true if the folder still has its name.
    pub(crate) fn is_there(&self) -> bool {
        std::fs::symlink_metadata(&self.folder).is_ok_and(|meta| meta.is_dir())
    }

    /// Removes what is in it but what tells whose it is and what is registered.
    pub(crate) fn empty(&self) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == LOCK || name == REGISTERED {
                continue;
            }
            remove_entry(&entry)?;
        }
        Ok(())
    }

    /// Removes it with all that is in it.
    pub(crate) fn remove(&self) -> io::Result<()> {
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner).take());
        remove_folder(&self.folder)
    }
}

/// Removes a folder with all that is in it, and follows no link. That of the standard library
/// lists a folder until it is gone, without end where an open folder stays listed (Wine).
fn remove_folder(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        remove_entry(&entry?)?;
    }
    std::fs::remove_dir(folder)
}

fn remove_entry(entry: &DirEntry) -> io::Result<()> {
    let kind = entry.file_type()?;
    if kind.is_dir() {
        remove_folder(&entry.path())
    } else if kind.is_symlink_dir() {
        std::fs::remove_dir(entry.path())
    } else {
        std::fs::remove_file(entry.path())
    }
}

/// A console's end would end this process, too; nothing of the standard library
/// keeps it from that.
pub(crate) fn leave_session() -> io::Result<()> {
    Ok(())
}

/// Returns the id of this boot, which differs from that of every other boot: its start
/// time, by the clock as it was then. When the clock is set, the system sets that time
/// anew, and reports by how much.
pub(crate) fn boot() -> io::Result<String> {
    let mut time = SYSTEM_TIMEOFDAY_INFORMATION::default();
    let length = size_of_val(&time) as u32;
    // SAFETY: space of the length given.
    let status = unsafe {
        NtQuerySystemInformation(
            SystemTimeOfDayInformation,
            (&raw mut time).cast(),
            length,
            std::ptr::null_mut(),
        )
    };
    if status != 0 {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let number = |at: usize| i64::from_le_bytes(time.Reserved1[at..at + 8].try_into().expect("8"));
    let (started, moved) = (number(0), number(32));
    Ok(started.wrapping_sub(moved).to_string())
}

/// Nothing of the kind exists here.
pub(crate) fn release(_: &Resource) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
