//! A folder in memory that is put over a folder on a disk at one stroke, and
//! what has to be known of the machine before that and before it is taken away:
//! what is mounted, who holds it, who writes below it.
//!
//! Nothing here ever unmounts lazily: what a program writes into a mount that
//! has no name any more is lost without a word. And nothing is made read-only by
//! the mount alone: a container that has a copy of the mount would go on writing.
//! [`set_read_only`] speaks to the file system, which is the same in all of them,
//! and is refused as long as anything is open for writing anywhere.
//!
//! Linux only; elsewhere everything here fails with `Unsupported`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

pub use crate::host::overmount::{
    Detached, DetachedView, Top, block_devices_on, holders, holders_of_mounts, is_of_our_users,
    mount_at, mounted_elsewhere, mounts, set_read_only, space, survey, unmount, ways,
    writable_elsewhere,
};

/// A folder in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ram {
    /// Its source in the mount table: `fsure:ID`.
    pub source: String,
    /// Bytes that it takes at most.
    pub bytes: u64,
    /// Names that it takes at most.
    pub inodes: u64,
    /// In huge pages as far as a file fills them (`huge=within_size`): a large file is
    /// written six times as fast for it, and a small one takes no more.
    pub huge: bool,
}

/// A name takes a page at least, unless it is empty.
#[cfg(target_os = "linux")]
const PAGE: u64 = 4096;
#[cfg(target_os = "linux")]
const INODES_LEAST: u64 = 1 << 10;

#[cfg(target_os = "linux")]
impl Ram {
    /// A folder that any program fills, with as many names as it has pages.
    pub(crate) fn disk(source: String, bytes: u64, huge: bool) -> Self {
        Self { source, bytes, inodes: (bytes / PAGE).max(INODES_LEAST), huge }
    }
}

/// One line of the mount table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MountEntry {
    /// Its number, as long as it is mounted.
    pub id: u64,
    /// The mount that it is on.
    pub parent: u64,
    /// The file system, as `stat` numbers it.
    pub device: u64,
    /// The folder of the file system that is mounted.
    pub root: PathBuf,
    /// The mount point.
    pub point: PathBuf,
    /// The group of mounts of which each has what is mounted in any.
    pub shared: Option<u64>,
    /// The group of which it has what is mounted there, and not the other way round.
    pub master: Option<u64>,
    /// Options of this mount.
    pub options: Vec<String>,
    /// The file system's type.
    pub kind: String,
    /// The source of the mount.
    pub source: String,
    /// Options of the file system.
    pub own_options: Vec<String>,
}

/// The kind of use by which a process holds something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HoldKind {
    /// It is open for writing, or mapped from a file that is.
    Writes,
    /// A folder is open.
    Folder,
    /// It works in it.
    Works,
    /// It is its root.
    Root,
    /// It is open for reading, or mapped.
    Reads,
}

impl HoldKind {
    /// For a person, behind the process.
    pub fn words(self) -> &'static str {
        match self {
            Self::Writes => "writes to",
            Self::Folder => "has open the folder",
            Self::Works => "works in",
            Self::Root => "has as its root",
            Self::Reads => "reads",
        }
    }
}

/// A process that holds something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holder {
    /// The process.
    pub process: u32,
    /// Its command.
    pub command: String,
    /// The kind of use.
    pub how: HoldKind,
    /// The path that it holds, as that process sees it.
    pub path: PathBuf,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { process, command, how, path } = self;
        write!(to, "process {process} ({command}) {} {}", how.words(), path.display())
    }
}

/// A process in a mount namespace where a file system is still mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// One of the processes in there.
    pub process: u32,
    /// Its command.
    pub command: String,
    /// The mount point there.
    pub point: PathBuf,
}

/// Ways to a folder, or to what is in it, beside its own path: a process that writes by
/// these goes on writing to the disk when something is mounted over that path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlternatePaths {
    /// Among the mounts of this process.
    pub here: Vec<PathBuf>,
    /// Among those of other processes: the mount that leads there.
    pub elsewhere: Vec<Elsewhere>,
}

/// The state of one entry at the time of the scan. Only on a file system that
/// reports false values can an entry be written without a change of this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SurveyEntry {
    /// The inode.
    pub inode: u64,
    /// Bytes.
    pub size: u64,
    /// The last change of content or metadata, in nanoseconds since 1970.
    pub changed: i128,
}

/// The result of a scan of all that is below a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Its file system, as `stat` numbers it.
    pub device: u64,
    /// The folder's own inode.
    pub inode: u64,
    /// Inodes of any kind, itself included.
    pub inodes: BTreeSet<u64>,
    /// Bytes of memory that its content takes, in whole pages.
    pub bytes: u64,
    /// Names of regular files, and the bytes in these: of a file that has several names,
    /// once for each.
    pub content: (u64, u64),
    /// Files that have names elsewhere, too.
    pub linked_outside: Vec<PathBuf>,
    /// Entries that cannot be changed: immutable or append-only.
    pub frozen: Vec<PathBuf>,
    /// Device nodes.
    pub devices: Vec<PathBuf>,
    /// Sockets.
    pub sockets: Vec<PathBuf>,
    /// Programs that run as another user or group.
    pub setuid: Vec<PathBuf>,
    /// Folders on which something else is mounted.
    pub mounts: Vec<PathBuf>,
    /// Entries that could not be read, and the reasons.
    pub unread: Vec<String>,
    /// Every entry but the folder itself, by its path below it.
    pub looks: BTreeMap<PathBuf, SurveyEntry>,
}

impl Survey {
    /// Paths of what is not as it was at an earlier survey, what is new and gone
    /// included; at most `count`.
    pub fn differences(&self, before: &Self, count: usize) -> Vec<PathBuf> {
        let changed =
            self.looks.iter().filter(|(path, look)| before.looks.get(*path) != Some(look));
        let gone = before.looks.keys().filter(|path| !self.looks.contains_key(*path));
        changed.map(|(path, _)| path).chain(gone).take(count).cloned().collect()
    }
}

/// The size of a file system, and the part of it that is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FsSpace {
    /// All bytes.
    pub bytes: u64,
    /// Those taken.
    pub used: u64,
    /// All inodes.
    pub inodes: u64,
    /// Those taken.
    pub inodes_used: u64,
}

/// Returns true if the paths are equal, or one is above the other.
pub fn overlaps(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

#[cfg(all(test, target_os = "linux"))]
#[path = "overmount_tests.rs"]
mod tests;
