//! The end of a path: through links, to a descriptor of this process, a FIFO or a
//! device.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::output::{Destination, refused};
use crate::path::{FileKind, kind};

/// The most links in a row that Linux follows.
const LINKS_MAX: usize = 40;

/// See [`Destination::of`].
pub(crate) fn destination(path: &Path) -> io::Result<Destination> {
    // The system's own answer first: it refuses loops, and links that other users have
    // planted in a folder that is everybody's. Reading links by hand would follow those.
    let there = match std::fs::metadata(path) {
        Ok(there) => Some((there.dev(), there.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(refused(FileKind::Folder));
    }
    let mut path = path.to_owned();
    for _ in 0..=LINKS_MAX {
        let Some(name) = path.file_name() else { return Err(refused(FileKind::Folder)) };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = std::fs::canonicalize(folder.unwrap_or(Path::new(".")))?;
        if let Some(number) = descriptor(&folder, name.as_encoded_bytes()) {
            return Ok(Destination::Descriptor(number));
        }
        let entry = folder.join(name);
        match kind(&entry)? {
            None if there.is_none() => return Ok(Destination::File(entry)),
            Some(FileKind::File) if is(&entry, there) => return Ok(Destination::File(entry)),
            // What a descriptor of another process seems to link to.
            None | Some(FileKind::File) => {
                let why = "what it leads to has another name by now, or none";
                return Err(io::Error::new(io::ErrorKind::NotFound, why));
            }
            Some(FileKind::Fifo) => return Ok(Destination::Fifo(entry)),
            Some(FileKind::CharacterDevice) => return Ok(Destination::Device(entry)),
            Some(FileKind::Link) => path = folder.join(std::fs::read_link(&entry)?),
            Some(kind) => return Err(refused(kind)),
        }
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "too many links in a row"))
}

/// Returns whether an entry is the file of that device and inode.
fn is(entry: &Path, there: Option<(u64, u64)>) -> bool {
    let entry = std::fs::symlink_metadata(entry).ok();
    entry.map(|entry| (entry.dev(), entry.ino())) == there
}

/// The number of the descriptor that a name in a folder stands for: these names are no
/// files, and what they seem to link to may have no name any more.
fn descriptor(folder: &Path, name: &[u8]) -> Option<i32> {
    let process = PathBuf::from(format!("/proc/{}", std::process::id()));
    let is_of_thread = || {
        let threads = folder.strip_prefix(process.join("task")).ok();
        threads.is_some_and(|rest| rest.components().count() == 2 && rest.ends_with("fd"))
    };
    let is_of_process = folder == Path::new("/dev/fd") || folder == process.join("fd");
    if !is_of_process && !is_of_thread() {
        return None;
    }
    str::from_utf8(name).ok()?.parse().ok().filter(|number| *number >= 0)
}

/// A second descriptor of what one of this process's own is open on.
pub(crate) fn duplicate(number: i32) -> io::Result<File> {
    // SAFETY: a call by number, which fails if nothing is open under it.
    let second = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 0) };
    if second < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was made a moment ago, and belongs to nothing else.
    Ok(unsafe { OwnedFd::from_raw_fd(second) }.into())
}

/// Opens a FIFO or a device to write to it. A FIFO without a reader is not waited for.
pub(crate) fn open_stream(path: &Path, wanted: FileKind) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = options.write(true).custom_flags(flags).open(path)?;
    if FileKind::of(file.metadata()?.file_type()) != wanted {
        return Err(io::Error::other("it was replaced meanwhile"));
    }
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Returns whether a FIFO could not be opened because no program reads it.
pub(crate) fn has_no_reader(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENXIO)
}
