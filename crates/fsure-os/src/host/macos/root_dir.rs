//! Names on macOS: `O_NOFOLLOW_ANY` goes down a path without following a link.
//! Before macOS 11 the flag is not known, and links above a file would be
//! followed; so that is the oldest system fsure is for.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::host::root_dir::c_string;
use crate::stat::date_ns;
use crate::{Kind, Stat};

/// Fails with `ELOOP` where any component of the path is a link.
const NOFOLLOW_ANY: OFlags = OFlags::from_bits_retain(libc::O_NOFOLLOW_ANY as u32);

/// Open flags for a folder in which names are looked up. There is no `O_PATH`, so the
/// folder must be readable.
pub(crate) const PARENT: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// Error for an attribute that a file does not have.
pub(crate) const NO_ATTRIBUTE: Errno = Errno::NOATTR;

/// Errors of a medium that cannot be read, or of a file system on it that cannot.
pub(crate) const DAMAGED: &[Errno] = &[Errno::IO, Errno::BADMSG];

/// Opens a path without following any link in it; the empty one is the folder
/// itself.
pub(crate) fn open_in_one_piece(
    at: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
) -> io::Result<OwnedFd> {
    // No flag keeps a path below its folder.
    if path.starts_with(b"/") || path.split(|byte| *byte == b'/').any(|name| name == b"..") {
        return Err(Errno::XDEV.into());
    }
    let path = c_string(if path.is_empty() { b"." } else { path })?;
    let flags = (flags - OFlags::NOFOLLOW) | NOFOLLOW_ANY | OFlags::CLOEXEC;
    loop {
        match rustix::fs::openat(at, &*path, flags, Mode::empty()) {
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// Opens a folder in an open one, unless something is mounted there: what is
/// mounted is always another device here.
pub(crate) fn open_same_mount(at: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(at, name, flags, Mode::empty())?;
    if rustix::fs::fstat(&folder)?.st_dev != rustix::fs::fstat(at)?.st_dev {
        return Err(Errno::XDEV.into());
    }
    Ok(folder)
}

/// Gives `take` the inode number and name of everything in a folder, until it
/// returns false.
pub(crate) fn each_name(
    folder: &OwnedFd,
    take: &mut dyn FnMut(u64, &CStr) -> bool,
) -> io::Result<()> {
    for name in Dir::read_from(folder)? {
        let name = name?;
        let is_itself = matches!(name.file_name().to_bytes(), b"." | b"..");
        if !is_itself && !take(name.ino(), name.file_name()) {
            break;
        }
    }
    Ok(())
}

/// The stat of a name in an open folder.
pub(crate) fn stat_at(folder: BorrowedFd<'_>, name: &CStr) -> io::Result<Stat> {
    Ok(stat_from(&rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?))
}

/// The stat of an open file.
pub(crate) fn stat_descriptor(descriptor: impl AsFd) -> io::Result<Stat> {
    Ok(stat_from(&rustix::fs::fstat(descriptor)?))
}

/// The answer of `stat(2)`, reduced to what fsure uses.
fn stat_from(answer: &rustix::fs::Stat) -> Stat {
    Stat {
        kind: match FileType::from_raw_mode(answer.st_mode) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Folder,
            FileType::Symlink => Kind::Link,
            _ => Kind::Special,
        },
        size: u64::try_from(answer.st_size).unwrap_or(0),
        mtime_ns: date_ns(answer.st_mtime, answer.st_mtime_nsec),
        ctime_ns: date_ns(answer.st_ctime, answer.st_ctime_nsec),
        // File systems that keep none say 0 or -1.
        birth_ns: (answer.st_birthtime > 0)
            .then(|| date_ns(answer.st_birthtime, answer.st_birthtime_nsec)),
        inode: answer.st_ino,
        device: u64::from(answer.st_dev.cast_unsigned()),
        links: answer.st_nlink.into(),
        allocated: u64::try_from(answer.st_blocks).unwrap_or(0).saturating_mul(512),
        place: None,
    }
}
