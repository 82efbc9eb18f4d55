//! A file system made of a program, file by file: what programs do in a folder
//! goes to a [`VirtualFs`] of the caller through FUSE.
//!
//! It needs no root: if this process cannot mount, a child of it enters a
//! user name space with a mount name space, mounts there, and hands both over;
//! the namespaces live as long as their descriptors here, or a process in them.
//! If that is refused, too, `fusermount3` is asked, and all see the folder.
//!
//! The process that serves never looks at the folder itself, not even at a path
//! through it: killed while it waits for its own answer, it would not end. Only
//! children do.
//!
//! `syncfs` and `sync` are not passed on by the kernel to such a file system:
//! they return, and nothing was asked of it. Linux only; elsewhere
//! [`ServedFs::private`] and [`ServedFs::public`] fail with `Unsupported`.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::host;
use crate::process_tree::{Lines, ProcessTree, Task};

/// The number of the top folder.
pub const ROOT: u64 = 1;

/// The type of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A pipe with a name; the kernel does the rest.
    Fifo,
    /// A socket; the kernel does the rest.
    Socket,
}

/// The attributes of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Its number.
    pub inode: u64,
    /// Its type.
    pub sort: Sort,
    /// Its length in bytes.
    pub size: u64,
    /// Its permissions.
    pub mode: u32,
    /// The names that it has.
    pub links: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Access time, as far as a program has set it.
    pub accessed: SystemTime,
    /// Time of the last change of its content.
    pub modified: SystemTime,
    /// Change time: the last change of anything about it.
    pub changed: SystemTime,
}

/// An inode to be made.
#[derive(Clone, Debug)]
pub struct New<'a> {
    /// Its type.
    pub sort: Sort,
    /// Its permissions.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Target of a symbolic link.
    pub target: &'a OsStr,
}

/// A time to be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The present one.
    Now,
    /// This one.
    At(SystemTime),
}

/// Attributes of an inode to be changed; `None` leaves one as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// Its permissions.
    pub mode: Option<u32>,
    /// Its owner.
    pub uid: Option<u32>,
    /// Its group.
    pub gid: Option<u32>,
    /// Its length.
    pub size: Option<u64>,
    /// Access time.
    pub accessed: Option<When>,
    /// Time of the last change of its content.
    pub modified: Option<When>,
}

/// Treatment of an inode that has the new name already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renaming {
    /// It loses that name.
    Replace,
    /// It keeps it, and the renaming is refused.
    Refuse,
    /// It gets the old name.
    Exchange,
}

/// An operation on a range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranging {
    /// It belongs to the file, which grows where it ends before.
    Reserve,
    /// It reads as zero; the file keeps its length.
    Zero,
}

/// One name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FuseDirEntry {
    /// Number of the inode that it stands for.
    pub inode: u64,
    /// Type of that inode.
    pub sort: Sort,
    /// The name.
    pub name: OsString,
}

/// The size of a file system, and its free space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeSpace {
    /// Bytes in all.
    pub bytes: u64,
    /// Bytes that are left.
    pub free: u64,
    /// Inodes that there are.
    pub inodes: u64,
}

/// The reason for which a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FuseError {
    /// There is no such thing.
    NotFound,
    /// There is one already.
    Exists,
    /// The folder holds something.
    NotEmpty,
    /// It is not a folder.
    NotAFolder,
    /// It is a folder.
    IsAFolder,
    /// There is no space left.
    NoRoom,
    /// A file cannot be as large.
    TooLarge,
    /// The name is too long.
    NameTooLong,
    /// It cannot be done with such a thing.
    Invalid,
    /// It was told to fail.
    Failed,
}

/// The result of a request.
pub type FsResult<T> = Result<T, FuseError>;

/// A file system, by numbers of inodes; [`ROOT`] is there from the beginning.
/// `now` is the time since it was mounted first, and never goes back.
pub trait VirtualFs: Send + 'static {
    /// Returns the attributes of the inode that has a name in a folder.
    fn look_up(&self, folder: u64, name: &OsStr) -> FsResult<Attributes>;

    /// Returns the attributes of an inode.
    fn attributes(&self, inode: u64) -> FsResult<Attributes>;

    /// Changes attributes of an inode.
    fn set(&mut self, now: Duration, inode: u64, setting: &Setting) -> FsResult<Attributes>;

    /// Makes something.
    fn make(&mut self, now: Duration, place: (u64, &OsStr), new: &New<'_>) -> FsResult<Attributes>;

    /// Gives an inode one more name.
    fn link(&mut self, now: Duration, inode: u64, place: (u64, &OsStr)) -> FsResult<Attributes>;

    /// Takes a name away, of a folder or of something else.
    fn remove(&mut self, now: Duration, place: (u64, &OsStr), is_folder: bool) -> FsResult<()>;

    /// Gives something another name.
    fn rename(
        &mut self,
        now: Duration,
        from: (u64, &OsStr),
        to: (u64, &OsStr),
        renaming: Renaming,
    ) -> FsResult<()>;

    /// Returns the target of a symbolic link.
    fn target(&self, inode: u64) -> FsResult<OsString>;

    /// Reads, and less where the file ends.
    fn read(&self, inode: u64, offset: u64, length: usize) -> FsResult<Vec<u8>>;

    /// Writes.
    fn write(&mut self, now: Duration, inode: u64, offset: u64, data: &[u8]) -> FsResult<()>;

    /// Does something with a range of a file: an offset and a length.
    fn range(
        &mut self,
        now: Duration,
        inode: u64,
        range: (u64, u64),
        ranging: Ranging,
    ) -> FsResult<()>;

    /// The names in a folder.
    fn list(&self, folder: u64) -> FsResult<Vec<FuseDirEntry>>;

    /// `fsync` of a file or of a folder; the answer is how long it takes.
    fn sync(&mut self, now: Duration, inode: u64) -> FsResult<Duration>;

    /// Takes note that no program has an inode open any more, and the kernel has
    /// forgotten it.
    fn forget(&mut self, inode: u64);

    /// Returns the size of the file system, and its free space.
    fn free_space(&self) -> FreeSpace;
}

/// A file system and its time, for the one who serves it and the one who cuts.
#[derive(Debug)]
pub struct Clocked<F> {
    files: Mutex<F>,
    begun: Instant,
}

impl<F> Clocked<F> {
    /// Its time begins now.
    pub fn new(files: F) -> Arc<Self> {
        Arc::new(Self { files: Mutex::new(files), begun: Instant::now() })
    }

    /// Runs `work` with exclusive access to the file system, and the time of it.
    pub fn with<T>(&self, work: impl FnOnce(&mut F, Duration) -> T) -> T {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut files, self.begun.elapsed())
    }
}

/// A file system that is being served in a folder, until this is dropped: then
/// no process sees it any more. A process that has something of it open gets errors; if
/// all processes have seen the file system, when this process ends at the latest.
#[derive(Debug)]
pub struct ServedFs(host::fuse_files::ServedFs);

impl ServedFs {
    /// Serves one over a folder so that only the processes see it that
    /// [`ServedFs::spawn`] starts; all do where only `fusermount3` is allowed
    /// to mount.
    pub fn private(files: Arc<Clocked<impl VirtualFs>>, at: &Path) -> io::Result<Self> {
        Ok(Self(host::fuse_files::ServedFs::private(files, at)?))
    }

    /// Serves one over a folder so that all processes see it. `source` is its name in the mount
    /// table, without spaces and commas. Needs root or `fusermount3`. Fails with
    /// `ResourceBusy` where something is mounted there, and with `DirectoryNotEmpty`.
    pub fn public(
        files: Arc<Clocked<impl VirtualFs>>,
        source: &str,
        at: &Path,
    ) -> io::Result<Self> {
        Ok(Self(host::fuse_files::ServedFs::public(files, source, at)?))
    }

    /// The folder in which it is served, for the processes that see it.
    pub fn place(&self) -> &Path {
        self.0.place()
    }

    /// Starts a program that sees it, which ends with the calling thread at the
    /// latest. `program` is as for [`ProcessTree::spawn`].
    pub fn spawn(
        &self,
        program: &Path,
        task: &Task,
        output: Lines,
        error: Lines,
    ) -> io::Result<ProcessTree> {
        ProcessTree::spawn(|command| self.0.start(command), program, task, output, error)
    }
}

/// Makes a folder, which must not be there yet, that holds what a file system
/// does: content, permissions, links and times of change; not the owners, and so not
/// the bits of a mode by which a file is run in its owner's or its group's name.
pub fn copy_out(files: &impl VirtualFs, to: &Path) -> io::Result<()> {
    host::fuse_files::copy_out(files, to)
}
