//! One side of a copy, on Linux. See [`crate::tree_copy`].

mod names;

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, SeekFrom, Statx, StatxFlags, Timespec, Timestamps,
    UTIME_OMIT, Uid,
};
use rustix::io::Errno;

use super::overmount::living;
use super::root_dir::{each_name, open_in_one_piece};
use crate::file_attributes::{Node, Ownership};
use crate::host::file_attributes::whole;
use crate::host::root_dir::c_string;
use crate::root_dir::Root;
use crate::tree_copy::{Attributes, CopyStat, NodeKind};

/// Given by the system to every file, by rules of its own.
const LABEL: &[u8] = b"security.selinux";

/// One side of a copy.
pub struct Side {
    root: Root,
    /// Its file system and its mount: what is in another does not belong to this side, and
    /// covers what does.
    device: u64,
    mount: Option<u64>,
}

impl Side {
    /// Opens a folder. `path` may lead through links; nothing below will.
    pub fn open(path: &Path) -> io::Result<Self> {
        let root = Root::open(path)?;
        let stat = rustix::fs::statx(root.descriptor(), c"", AtFlags::EMPTY_PATH, MASK)?;
        Ok(Self { device: facts(&stat).device, mount: mount_of(&stat), root })
    }

    /// Lists a folder by name, in the order of the names' bytes. A name that vanishes
    /// meanwhile is left out. Fails if something is mounted on a name: the mount would be
    /// taken for what it covers.
    pub fn list(&self, path: &[u8]) -> io::Result<Vec<(Vec<u8>, CopyStat)>> {
        let folder = self.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut names = Vec::new();
        each_name(&folder, &mut |_, name| {
            names.push(name.to_owned());
            true
        })?;
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            match stat_at(folder.as_fd(), &name) {
                Ok(stat) if self.has(&stat) => found.push((name.into_bytes(), facts(&stat))),
                Ok(_) => return Err(covered(&[path, name.to_bytes()])),
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        found.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(found)
    }

    /// Returns the metadata of a name; the empty path is the side itself. Fails if something
    /// is mounted on it.
    pub fn facts(&self, path: &[u8]) -> io::Result<CopyStat> {
        self.at(path, |folder, name| {
            let name = c_string(if name.is_empty() { b"." } else { name })?;
            let stat = stat_at(folder, &name)?;
            if self.has(&stat) { Ok(facts(&stat)) } else { Err(covered(&[path])) }
        })
    }

    /// Returns the target of a symbolic link, as raw bytes.
    pub fn target(&self, path: &[u8]) -> io::Result<Vec<u8>> {
        self.root.link_target(path)
    }

    /// The attributes of a name.
    pub fn attributes(&self, path: &[u8]) -> io::Result<Attributes> {
        let node = Node::at(&self.root, path)?;
        let mut names = node.attribute_names()?;
        names.retain(|name| name != LABEL);
        names.sort_unstable();
        let mut attributes = Vec::with_capacity(names.len());
        for name in names {
            if let Some(value) = node.attribute(&name)? {
                attributes.push((name, value));
            }
        }
        Ok(attributes)
    }

    /// The attributes of an open file.
    pub fn attributes_of(&self, file: &File) -> io::Result<Attributes> {
        let list = whole(|buffer| match buffer {
            [] => rustix::fs::flistxattr_query(file),
            _ => rustix::fs::flistxattr(file, buffer),
        })?;
        let list = list.unwrap_or_default();
        let mut names: Vec<_> = list.split(|byte| *byte == 0).collect();
        names.retain(|name| !name.is_empty() && *name != LABEL);
        names.sort_unstable();
        let mut attributes = Vec::with_capacity(names.len());
        for name in names {
            let key = c_string(name)?;
            let value = whole(|buffer| match buffer {
                [] => rustix::fs::fgetxattr_query(file, &*key),
                _ => rustix::fs::fgetxattr(file, &*key, buffer),
            })?;
            attributes.extend(value.map(|value| (name.to_vec(), value)));
        }
        Ok(attributes)
    }

    /// Opens a regular file to read it.
    pub fn read(&self, path: &[u8]) -> io::Result<File> {
        // A FIFO that took the name's place must not be waited for.
        let file = File::from(self.open_at(path, OFlags::RDONLY | OFlags::NONBLOCK)?);
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(Errno::NOENT.into()),
        }
    }

    /// Opens a regular file to write into it as it is.
    pub fn write(&self, path: &[u8]) -> io::Result<File> {
        let file = File::from(self.open_at(path, OFlags::WRONLY | OFlags::NONBLOCK)?);
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(Errno::NOENT.into()),
        }
    }

    /// Makes a new file, for its owner alone, to write it. Fails where there is
    /// anything of that name.
    pub fn create(&self, path: &[u8]) -> io::Result<File> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.at(path, |folder, name| {
            let mode = Mode::RUSR | Mode::WUSR;
            Ok(File::from(rustix::fs::openat(folder, &*c_string(name)?, flags, mode)?))
        })
    }

    /// Opens a file to read and write it; one of its owner alone is made where there is
    /// none.
    pub(crate) fn open_or_create(&self, path: &[u8]) -> io::Result<File> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        self.at(path, |folder, name| {
            let mode = Mode::RUSR | Mode::WUSR;
            Ok(File::from(rustix::fs::openat(folder, &*c_string(name)?, flags, mode)?))
        })
    }

    /// Lets a new file share the bytes of an old one, until either is written. False
    /// where the file system knows no such thing.
    pub fn share(&self, from: &File, to: &File) -> io::Result<bool> {
        match rustix::fs::ioctl_ficlone(to, from) {
            Ok(()) => Ok(true),
            Err(Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL | Errno::XDEV | Errno::NOSYS) => {
                Ok(false)
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// Makes anything but a regular file; `target` is a link's. A folder is its
    /// owner's alone at first.
    pub fn make(&self, path: &[u8], kind: NodeKind, target: &[u8]) -> io::Result<()> {
        let (private, none) = (Mode::RWXU, rustix::fs::Dev::default());
        self.at(path, |folder, name| {
            let name = c_string(name)?;
            let node = |kind, number| rustix::fs::mknodat(folder, &*name, kind, private, number);
            let made = match kind {
                NodeKind::File => return Err(io::ErrorKind::InvalidInput.into()),
                NodeKind::Folder => rustix::fs::mkdirat(folder, &*name, private),
                NodeKind::Link => rustix::fs::symlinkat(&*c_string(target)?, folder, &*name),
                NodeKind::Fifo => node(FileType::Fifo, none),
                NodeKind::Socket => node(FileType::Socket, none),
                NodeKind::Device { block: true, number } => node(FileType::BlockDevice, number),
                NodeKind::Device { block: false, number } => {
                    node(FileType::CharacterDevice, number)
                }
            };
            Ok(made?)
        })
    }

    /// Gives a file a second name.
    pub fn link(&self, path: &[u8], second: &[u8]) -> io::Result<()> {
        self.at(path, |old_folder, old| {
            self.at(second, |new_folder, new| {
                let (old, new) = (c_string(old)?, c_string(new)?);
                Ok(rustix::fs::linkat(old_folder, &*old, new_folder, &*new, AtFlags::empty())?)
            })
        })
    }

    /// Gives something another name, in the place of whatever has it.
    pub fn rename(&self, from: &[u8], to: &[u8]) -> io::Result<()> {
        self.at(from, |old_folder, old| {
            self.at(to, |new_folder, new| {
                let (old, new) = (c_string(old)?, c_string(new)?);
                Ok(rustix::fs::renameat(old_folder, &*old, new_folder, &*new)?)
            })
        })
    }

    /// Removes a name: an empty folder, or anything else.
    pub fn remove(&self, path: &[u8], is_folder: bool) -> io::Result<()> {
        let flags = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        self.at(path, |folder, name| Ok(rustix::fs::unlinkat(folder, &*c_string(name)?, flags)?))
    }

    /// Gives a name owner, mode, attributes (and no others) and, where one is given,
    /// its modification time in nanoseconds since 1970.
    pub fn set(
        &self,
        path: &[u8],
        kind: NodeKind,
        ownership: Ownership,
        mtime_ns: Option<i64>,
        attributes: &Attributes,
    ) -> io::Result<()> {
        let is_link = kind == NodeKind::Link;
        self.at(path, |folder, name| {
            let name = c_string(if name.is_empty() { b"." } else { name })?;
            let now = facts(&stat_at(folder, &name)?);
            if now.kind != kind {
                return Err(Errno::NOENT.into());
            }
            let (user, group) = (ownership.user, ownership.group);
            if (now.ownership.user, now.ownership.group) != (user, group) {
                let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
                let flags = AtFlags::SYMLINK_NOFOLLOW;
                rustix::fs::chownat(folder, &*name, Some(user), Some(group), flags)?;
            }
            if !is_link {
                set_mode(folder, &name, ownership.mode)?;
            }
            Ok(())
        })?;
        self.set_attributes(path, attributes)?;
        let Some(mtime_ns) = mtime_ns else { return Ok(()) };
        self.at(path, |folder, name| {
            let name = c_string(if name.is_empty() { b"." } else { name })?;
            let times = timestamps(mtime_ns);
            Ok(rustix::fs::utimensat(folder, &*name, &times, AtFlags::SYMLINK_NOFOLLOW)?)
        })
    }

    fn set_attributes(&self, path: &[u8], wanted: &Attributes) -> io::Result<()> {
        let now = self.attributes(path)?;
        if now == *wanted {
            return Ok(());
        }
        let node = Node::at(&self.root, path)?;
        for (name, _) in now.iter().filter(|(name, _)| !wanted.iter().any(|(one, _)| one == name)) {
            node.remove_attribute(name)?;
        }
        for (name, value) in wanted.iter().filter(|pair| !now.contains(pair)) {
            node.set_attribute(name, value)?;
        }
        Ok(())
    }

    /// The modification time that is kept here of this one: some file systems know whole
    /// seconds only, or none before or after some year.
    pub fn kept_date(&self, mtime_ns: i64) -> io::Result<i64> {
        let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = rustix::fs::openat(self.root.descriptor(), c".", flags, mode)?;
        rustix::fs::futimens(&file, &timestamps(mtime_ns))?;
        Ok(facts(&rustix::fs::statx(&file, c"", AtFlags::EMPTY_PATH, MASK)?).mtime_ns)
    }

    /// Waits until a file, or the names in a folder, are on the medium.
    pub fn flush(&self, path: &[u8]) -> io::Result<()> {
        Ok(rustix::fs::fsync(self.open_at(path, OFlags::RDONLY | OFlags::NONBLOCK)?)?)
    }

    /// Waits until all of the file system is written. An error of any file since the
    /// last call is an error of this call, too (`syncfs`, Linux 5.8).
    pub fn flush_all(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(self.root.descriptor())?)
    }

    /// The inodes of this file system that some process has mapped to write: what
    /// is stored there leaves no date. Only of processes that this process may look at.
    pub fn mapped(&self) -> io::Result<BTreeSet<u64>> {
        let number = (rustix::fs::major(self.device), rustix::fs::minor(self.device));
        let mut inodes = BTreeSet::new();
        for process in std::fs::read_dir("/proc")? {
            let process = process?;
            if !process.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit) {
                continue;
            }
            // A process that ended meanwhile, or that is another user's.
            let Ok(maps) = std::fs::read(living(process.path()).join("maps")) else { continue };
            let lines = maps.split(|byte| *byte == b'\n');
            inodes.extend(lines.filter_map(|line| mapped_for_writing(line, number)));
        }
        Ok(inodes)
    }

    fn at<T>(
        &self,
        path: &[u8],
        act: impl FnOnce(BorrowedFd<'_>, &[u8]) -> io::Result<T>,
    ) -> io::Result<T> {
        let (parent, name): (Option<OwnedFd>, &[u8]) = match path {
            [] => (None, path),
            _ => self.root.parent(path)?,
        };
        let Some(parent) = parent else { return act(self.root.descriptor(), name) };
        act(self.checked(parent, path)?.as_fd(), name)
    }

    fn open_at(&self, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        self.checked(self.root.open_at(path, flags)?, path)
    }

    /// Returns what was opened on the way to a path. Fails if it is in another mount.
    fn checked(&self, opened: OwnedFd, path: &[u8]) -> io::Result<OwnedFd> {
        let stat = rustix::fs::statx(&opened, c"", AtFlags::EMPTY_PATH, MASK)?;
        if self.has(&stat) { Ok(opened) } else { Err(covered(&[path])) }
    }

    /// Returns true if a stat is of something in this mount. Before Linux 5.8 the kernel
    /// reports only the file system.
    fn has(&self, stat: &Statx) -> bool {
        let is_mount = self.mount.zip(mount_of(stat)).is_none_or(|(own, its)| own == its);
        is_mount && facts(stat).device == self.device
    }
}

/// Fields requested from `statx` for a name.
const MASK: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::MNT_ID);

fn mount_of(stat: &Statx) -> Option<u64> {
    (stat.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(stat.stx_mnt_id)
}

fn covered(path: &[&[u8]]) -> io::Error {
    let path = path.join(&b'/');
    let path = String::from_utf8_lossy(path.strip_prefix(b"/").unwrap_or(&path));
    io::Error::other(format!("something is mounted on {path}, or above that: unmount it"))
}

/// Sets the mode of a name that is not a link. Not by `fchmodat`, which follows a link
/// that took the name's place.
fn set_mode(folder: BorrowedFd<'_>, name: &std::ffi::CStr, mode: u32) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;
    let there = open_in_one_piece(folder, name.to_bytes(), OFlags::PATH | OFlags::NOFOLLOW)?;
    let way = format!("/proc/self/fd/{}", there.as_raw_fd());
    Ok(rustix::fs::chmod(&*way, Mode::from_raw_mode(mode))?)
}

fn timestamps(mtime_ns: i64) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec {
            tv_sec: mtime_ns.div_euclid(1_000_000_000),
            tv_nsec: mtime_ns.rem_euclid(1_000_000_000),
        },
    }
}

fn stat_at(folder: BorrowedFd<'_>, name: &std::ffi::CStr) -> rustix::io::Result<Statx> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    rustix::fs::statx(folder, name, flags, MASK)
}

fn time(at: rustix::fs::StatxTimestamp) -> i64 {
    at.tv_sec.saturating_mul(1_000_000_000).saturating_add(at.tv_nsec.into())
}

fn facts(stat: &Statx) -> CopyStat {
    let number = rustix::fs::makedev(stat.stx_rdev_major, stat.stx_rdev_minor);
    CopyStat {
        kind: match FileType::from_raw_mode(stat.stx_mode.into()) {
            FileType::RegularFile => NodeKind::File,
            FileType::Directory => NodeKind::Folder,
            FileType::Symlink => NodeKind::Link,
            FileType::Fifo => NodeKind::Fifo,
            FileType::BlockDevice => NodeKind::Device { block: true, number },
            FileType::CharacterDevice => NodeKind::Device { block: false, number },
            _ => NodeKind::Socket,
        },
        size: stat.stx_size,
        mtime_ns: time(stat.stx_mtime),
        ctime_ns: time(stat.stx_ctime),
        inode: stat.stx_ino,
        device: rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor),
        links: stat.stx_nlink.into(),
        ownership: Ownership {
            mode: u32::from(stat.stx_mode) & 0o7777,
            user: stat.stx_uid,
            group: stat.stx_gid,
        },
    }
}

/// The inode of a line of `/proc/PID/maps` that is shared, writable and of this
/// file system: `address perms offset major:minor inode path` (proc_pid_maps(5)).
fn mapped_for_writing(line: &[u8], device: (u32, u32)) -> Option<u64> {
    let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let permissions = words.nth(1)?;
    let (major, minor) = std::str::from_utf8(words.nth(1)?).ok()?.split_once(':')?;
    let number = |text| u32::from_str_radix(text, 16).ok();
    let is_here = (number(major)?, number(minor)?) == device;
    let is_written = permissions.get(1) == Some(&b'w') && permissions.get(3) == Some(&b's');
    let inode = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
    (is_here && is_written).then_some(inode)
}

pub(crate) fn changed_ns(file: &File) -> io::Result<i64> {
    Ok(time(rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::CTIME)?.stx_ctime))
}

pub(crate) fn drop_cached(file: &File) -> io::Result<()> {
    Ok(rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed)?)
}

pub(crate) fn read_once(file: &File, target: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, target, at)
}

pub(crate) fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

pub(crate) fn data_from(file: &File, at: u64) -> io::Result<Option<Range<u64>>> {
    let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Err(Errno::NXIO) => return Ok(None),
        other => other?,
    };
    let end = match rustix::fs::seek(file, SeekFrom::Hole(start)) {
        // Cut meanwhile: nothing is left there.
        Err(Errno::NXIO) => return Ok(None),
        other => other?,
    };
    Ok(Some(start..end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_shared_and_writable_and_here_is_mapped() {
        let line = |perms: &str| {
            format!("7f0000000000-7f0000001000 {perms} 00000000 00:2a 1234      /a b/c")
        };
        let of = |text: String, device| mapped_for_writing(text.as_bytes(), device);
        assert_eq!(of(line("rw-s"), (0, 0x2a)), Some(1234));
        assert_eq!(of(line("rw-p"), (0, 0x2a)), None, "private");
        assert_eq!(of(line("r--s"), (0, 0x2a)), None, "only read");
        assert_eq!(of(line("rw-s"), (0, 0x2b)), None, "elsewhere");
        assert_eq!(of(String::new(), (0, 0x2a)), None);
        let odd = [line("rw-s").as_bytes(), b"\xff".repeat(9).as_slice()].concat();
        assert_eq!(mapped_for_writing(&odd, (0, 0x2a)), Some(1234), "not text");
        let long = line("rw-s") + &"ü".repeat(300);
        assert_eq!(of(long, (0, 0x2a)), Some(1234));
    }
}
