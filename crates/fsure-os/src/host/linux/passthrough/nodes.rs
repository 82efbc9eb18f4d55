//! The part of the file system that the kernel knows: a descriptor for each inode that it
//! holds, so that a rename changes nothing, and one for each open file.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{BackingId, Errno, FileAttr, FileHandle, FileType, INodeNo};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};

/// An inode that the kernel holds.
pub(super) struct InodeEntry {
    /// Opened as a path: good to ask, and to open.
    pub(super) at: OwnedFd,
    /// The backing id that the kernel was given; an inode must have only one.
    pub(super) backing: Mutex<Weak<BackingId>>,
}

/// An open file.
pub(super) struct Open {
    pub(super) file: File,
    /// Kept for as long as the file is open.
    pub(super) _backing: Option<Arc<BackingId>>,
}

/// A name in a listing.
pub(super) type NameEntry = (INodeNo, FileType, std::ffi::OsString);

#[derive(Default)]
struct KnownNode {
    nodes: HashMap<u64, (Arc<InodeEntry>, u64)>,
    files: HashMap<u64, Arc<Open>>,
    folders: HashMap<u64, Arc<Vec<NameEntry>>>,
    last: u64,
}

/// All that is known.
pub(super) struct Nodes {
    root: Arc<InodeEntry>,
    device: u64,
    known: Mutex<KnownNode>,
}

impl InodeEntry {
    fn new(at: OwnedFd) -> Arc<Self> {
        Arc::new(Self { at, backing: Mutex::default() })
    }

    /// A path to it that no rename changes.
    pub(super) fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.at.as_raw_fd())
    }

    /// Opens what it is; how it was made is over.
    pub(super) fn open(&self, flags: i32) -> io::Result<File> {
        let flags = OFlags::from_bits_retain(flags.cast_unsigned());
        // The kernel knows where the end is, and what is aligned for it is not
        // for this process.
        let no = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::APPEND | OFlags::DIRECT;
        let flags = flags.difference(no) | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(CWD, self.path(), flags, Mode::empty())?.into())
    }
}

impl Nodes {
    pub(super) fn new(source: &std::path::Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(CWD, source, flags, Mode::empty())?;
        let device = rustix::fs::fstat(&root)?.st_dev;
        Ok(Self { root: InodeEntry::new(root), device, known: Mutex::default() })
    }

    fn known(&self) -> MutexGuard<'_, KnownNode> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, number: INodeNo) -> Result<Arc<InodeEntry>, Errno> {
        if number == INodeNo::ROOT {
            return Ok(Arc::clone(&self.root));
        }
        self.known().nodes.get(&number.0).map(|(node, _)| Arc::clone(node)).ok_or(Errno::ESTALE)
    }

    /// Looks a name up, which the kernel holds from now on.
    pub(super) fn look_up(&self, parent: &InodeEntry, name: &OsStr) -> Result<FileAttr, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let at = rustix::fs::openat(&parent.at, name, flags, Mode::empty()).map_err(no)?;
        let attributes = attributes(&at)?;
        if rustix::fs::fstat(&at).map_err(no)?.st_dev != self.device {
            // Its numbers could be those of other files.
            return Err(Errno::EXDEV);
        }
        let mut known = self.known();
        known.nodes.entry(attributes.ino.0).or_insert_with(|| (InodeEntry::new(at), 0)).1 += 1;
        Ok(attributes)
    }

    pub(super) fn forget(&self, number: INodeNo, times: u64) {
        let mut known = self.known();
        if let Some((_, held)) = known.nodes.get_mut(&number.0) {
            *held = held.saturating_sub(times);
            if *held == 0 {
                known.nodes.remove(&number.0);
            }
        }
    }

    pub(super) fn keep_file(&self, file: File, backing: Option<Arc<BackingId>>) -> FileHandle {
        let mut known = self.known();
        known.last += 1;
        let handle = known.last;
        known.files.insert(handle, Arc::new(Open { file, _backing: backing }));
        FileHandle(handle)
    }

    pub(super) fn keep_names(&self, names: Vec<NameEntry>) -> FileHandle {
        let mut known = self.known();
        known.last += 1;
        let handle = known.last;
        known.folders.insert(handle, Arc::new(names));
        FileHandle(handle)
    }

    pub(super) fn file(&self, handle: FileHandle) -> Result<Arc<Open>, Errno> {
        self.known().files.get(&handle.0).cloned().ok_or(Errno::EBADF)
    }

    pub(super) fn names(&self, handle: FileHandle) -> Result<Arc<Vec<NameEntry>>, Errno> {
        self.known().folders.get(&handle.0).cloned().ok_or(Errno::EBADF)
    }

    pub(super) fn close(&self, handle: FileHandle) {
        let mut known = self.known();
        let closed = (known.files.remove(&handle.0), known.folders.remove(&handle.0));
        drop(known);
        drop(closed);
    }
}

/// An error for the kernel.
pub(super) fn no(error: impl Into<io::Error>) -> Errno {
    Errno::from(error.into())
}

/// Returns the attributes of an inode that are reported to the kernel.
pub(super) fn attributes(of: impl AsFd) -> Result<FileAttr, Errno> {
    let stat = rustix::fs::statat(of, c"", AtFlags::EMPTY_PATH).map_err(no)?;
    use rustix::fs::FileType as Kind;
    let kind = match Kind::from_raw_mode(stat.st_mode) {
        Kind::RegularFile => FileType::RegularFile,
        Kind::Directory => FileType::Directory,
        Kind::Symlink => FileType::Symlink,
        Kind::Fifo => FileType::NamedPipe,
        Kind::Socket => FileType::Socket,
        Kind::CharacterDevice => FileType::CharDevice,
        _ => FileType::BlockDevice,
    };
    Ok(FileAttr {
        ino: INodeNo(stat.st_ino),
        size: stat.st_size.cast_unsigned(),
        blocks: stat.st_blocks.cast_unsigned(),
        atime: time(stat.st_atime, stat.st_atime_nsec),
        mtime: time(stat.st_mtime, stat.st_mtime_nsec),
        ctime: time(stat.st_ctime, stat.st_ctime_nsec),
        crtime: UNIX_EPOCH,
        kind,
        perm: (stat.st_mode & 0o7777) as u16,
        nlink: stat.st_nlink as u32,
        uid: stat.st_uid,
        gid: stat.st_gid,
        rdev: stat.st_rdev as u32,
        blksize: stat.st_blksize as u32,
        flags: 0,
    })
}

fn time(seconds: i64, nanoseconds: u64) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let whole = if seconds < 0 { UNIX_EPOCH - whole } else { UNIX_EPOCH + whole };
    whole + Duration::from_nanos(nanoseconds)
}
