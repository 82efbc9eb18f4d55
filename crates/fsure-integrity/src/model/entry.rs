//! The stat of a name, reduced to what a verdict needs. A value that the file
//! system does not provide is `None`, never an invented one.

use fsure_os::DATE_NS_MAX;

/// The type of the entry that a name refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    /// A regular file: the only kind that is read.
    File,
    /// A folder (directory).
    Folder,
    /// A symbolic link; its content is its target.
    Link,
    /// A FIFO, socket or device: counted, never opened, never recorded.
    Special,
}

impl EntryKind {
    /// The word used in reports and in the catalog.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Folder => "folder",
            Self::Link => "link",
            Self::Special => "special",
        }
    }
}

/// The catalog's number for one file system, see `docs/catalog.md`.
///
/// Equal numbers mean: known to be the same file system, so that inode numbers
/// and change times can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileSystemId(pub u32);

/// The modification time of a record that came from a list without dates. Its
/// size is that of the list; if the list has none either, the size of the file
/// that was there when the list was read, and 0 if there was none.
pub const UNDATED: i64 = i64::MIN;

/// The result of `lstat` on a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Type of the entry.
    pub kind: EntryKind,
    /// Length in bytes; 0 for folders.
    pub size: u64,
    /// Modification time, nanoseconds since 1970, or the nearer of
    /// ±[`DATE_NS_MAX`], or [`UNDATED`].
    pub mtime_ns: i64,
    /// Change time, nanoseconds since 1970; `None` if the system keeps none.
    pub ctime_ns: Option<i64>,
    /// Birth time, nanoseconds since 1970; `None` if the file system keeps none.
    pub birth_ns: Option<i64>,
    /// Inode number; `None` if it does not stay the same between mounts.
    pub inode: Option<u64>,
    /// The file system it is on.
    pub file_system: FileSystemId,
    /// Target of a symbolic link, as raw bytes.
    pub target: Option<Box<[u8]>>,
}

impl Entry {
    /// Returns true if the modification time is not known: then only the content
    /// can be compared.
    pub fn is_undated(&self) -> bool {
        self.mtime_ns == UNDATED
    }

    /// The modification time, if it is known and in the range of nanoseconds.
    pub fn exact_mtime_ns(&self) -> Option<i64> {
        let is_exact = !self.is_undated() && self.mtime_ns.abs() != DATE_NS_MAX;
        is_exact.then_some(self.mtime_ns)
    }

    /// Returns true if both are provably the same inode, so that their change
    /// times can be compared.
    pub fn same_identity(&self, other: &Self) -> bool {
        let same_birth = match (self.birth_ns, other.birth_ns) {
            (Some(mine), Some(theirs)) => mine == theirs,
            _ => true,
        };
        self.file_system == other.file_system
            && self.inode.is_some()
            && self.inode == other.inode
            && self.ctime_ns.is_some()
            && other.ctime_ns.is_some()
            && same_birth
    }

    /// Returns true if both are provably the same inode, and no system call has
    /// written to it in between.
    pub fn same_change(&self, other: &Self) -> bool {
        self.same_identity(other) && self.ctime_ns == other.ctime_ns
    }

    /// Returns true if size, dates and inode are all as before: nothing was
    /// written through the file system, as far as the file system shows.
    pub fn same_stat(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.size == other.size
            && self.mtime_ns == other.mtime_ns
            && self.ctime_ns == other.ctime_ns
            && self.inode == other.inode
            && self.file_system == other.file_system
            && self.target == other.target
    }
}
