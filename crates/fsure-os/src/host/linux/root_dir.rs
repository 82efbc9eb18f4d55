//! Names on Linux: `openat2` goes down a path without following a link, and
//! `statx` says what a name is.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, Statx, StatxFlags, StatxTimestamp,
};
use rustix::io::Errno;

use crate::host::root_dir::c_string;
use crate::{Kind, Stat};

/// Maximum number of retries of an open that the kernel wants repeated: 55 ms in all.
const OPEN_ATTEMPTS_MAX: u64 = 10;

/// Open flags for a folder in which names are looked up; they also open one that cannot be
/// listed.
pub(crate) const PARENT: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);

/// Fields requested from `statx`.
pub(crate) const MASK: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME);

/// Error for an attribute that a file does not have.
pub(crate) const NO_ATTRIBUTE: Errno = Errno::NODATA;

/// Errors of a medium that cannot be read, or of a file system on it that cannot.
pub(crate) const DAMAGED: &[Errno] = &[Errno::IO, Errno::BADMSG, Errno::UCLEAN, Errno::NODATA];

/// Opens a path without following any link in it; the empty one is the folder
/// itself.
pub(crate) fn open_in_one_piece(
    at: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
) -> io::Result<OwnedFd> {
    let path = if path.is_empty() { b"." } else { path };
    let flags = flags | OFlags::CLOEXEC;
    let path = c_string(path)?;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let mut attempts = 0;
    loop {
        match rustix::fs::openat2(at, &*path, flags, Mode::empty(), resolve) {
            Err(Errno::INTR) => {}
            // The tree was renamed while the kernel walked it, and its advice
            // is to ask again (openat2(2)); or another process holds a lease on
            // the file, and is being asked to give it up.
            Err(Errno::AGAIN) if attempts < OPEN_ATTEMPTS_MAX => {
                attempts += 1;
                std::thread::sleep(std::time::Duration::from_millis(attempts));
            }
            // Before Linux 5.6, and in containers whose filter does not know the call. If the
            // kernel itself does not permit it, it says so again.
            Err(Errno::NOSYS | Errno::PERM) => {
                return open_name_by_name(at, path.to_bytes(), flags);
            }
            other => return Ok(other?),
        }
    }
}

/// The same where the kernel follows links on the way or does not follow them, and cannot
/// know which: one folder after another.
fn open_name_by_name(at: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    let mut folder: Option<OwnedFd> = None;
    let mut names = path.split(|byte| *byte == b'/').peekable();
    while let Some(name) = names.next() {
        // An absolute path begins with none.
        if matches!(name, b"" | b"..") {
            return Err(Errno::XDEV.into());
        }
        let flags = if names.peek().is_some() { PARENT | OFlags::CLOEXEC } else { flags };
        let at = folder.as_ref().map_or(at, AsFd::as_fd);
        let flags = flags | OFlags::NOFOLLOW;
        folder = Some(rustix::fs::openat(at, &*c_string(name)?, flags, Mode::empty())?);
    }
    folder.ok_or_else(|| Errno::NOENT.into())
}

/// Opens a folder in an open one, unless something is mounted there.
pub(crate) fn open_same_mount(at: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    Ok(rustix::fs::openat2(at, name, flags, Mode::empty(), resolve)?)
}

/// Gives `take` the inode number and name of everything in a folder, until it
/// returns false.
pub(crate) fn each_name(
    folder: &OwnedFd,
    take: &mut dyn FnMut(u64, &CStr) -> bool,
) -> io::Result<()> {
    let mut buffer = [MaybeUninit::uninit(); 32 << 10];
    let mut names = RawDir::new(folder, &mut buffer);
    while let Some(name) = names.next() {
        let name = match name {
            Err(Errno::INTR) => continue,
            // The folder itself was removed: no names are left in it.
            Err(Errno::NOENT) => break,
            name => name?,
        };
        let is_itself = matches!(name.file_name().to_bytes(), b"." | b"..");
        if !is_itself && !take(name.ino(), name.file_name()) {
            break;
        }
    }
    Ok(())
}

/// The stat of a name in an open folder.
pub(crate) fn stat_at(folder: BorrowedFd<'_>, name: &CStr) -> io::Result<Stat> {
    let answer =
        rustix::fs::statx(folder, name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT, MASK)?;
    Ok(stat_from(&answer))
}

/// The stat of an open file.
pub(crate) fn stat_descriptor(descriptor: impl AsFd) -> io::Result<Stat> {
    let answer = rustix::fs::statx(descriptor, c"", AtFlags::EMPTY_PATH, MASK)?;
    Ok(stat_from(&answer))
}

/// The answer of `statx(2)`, reduced to what fsure uses.
pub(crate) fn stat_from(answer: &Statx) -> Stat {
    let has_birth = answer.stx_mask & StatxFlags::BTIME.bits() != 0;
    Stat {
        kind: match FileType::from_raw_mode(answer.stx_mode.into()) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Folder,
            FileType::Symlink => Kind::Link,
            _ => Kind::Special,
        },
        size: answer.stx_size,
        mtime_ns: nanoseconds(answer.stx_mtime),
        ctime_ns: nanoseconds(answer.stx_ctime),
        birth_ns: has_birth.then(|| nanoseconds(answer.stx_btime)),
        inode: answer.stx_ino,
        device: u64::from(answer.stx_dev_major) << 32 | u64::from(answer.stx_dev_minor),
        links: answer.stx_nlink,
        // In units of 512 bytes on every file system (statx(2)).
        allocated: answer.stx_blocks.saturating_mul(512),
        place: None,
    }
}

fn nanoseconds(time: StatxTimestamp) -> i64 {
    crate::stat::date_ns(time.tv_sec, time.tv_nsec.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, symlink};

    use super::*;

    #[test]
    fn no_link_is_followed_name_by_name_either() {
        let tree = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        for folder in [outside.path().join("a"), tree.path().join("real/a")] {
            std::fs::create_dir_all(folder).unwrap();
        }
        symlink(outside.path(), tree.path().join("link")).unwrap();
        symlink("real", tree.path().join("near")).unwrap();
        let root = std::fs::File::open(tree.path()).unwrap();
        for open in [open_in_one_piece, open_name_by_name] {
            let open = |path: &[u8]| open(root.as_fd(), path, OFlags::RDONLY);
            for path in ["real/a", "real", "."] {
                let opened = std::fs::File::from(open(path.as_bytes()).unwrap());
                let there = std::fs::metadata(tree.path().join(path)).unwrap();
                assert_eq!(opened.metadata().unwrap().ino(), there.ino(), "{path}");
            }
            for path in ["link/a", "near/a", "link", "../x", "/etc", "none"] {
                assert!(open(path.as_bytes()).is_err(), "{path}");
            }
        }
    }
}
