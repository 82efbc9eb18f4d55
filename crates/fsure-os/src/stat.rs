//! What the system says of one name, without following it.

/// What kind of thing a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Folder,
    /// A symbolic link; on Windows anything that stands for another name.
    Link,
    /// A FIFO, socket, device or anything else; never to be opened.
    Special,
}

/// What fsure uses of a stat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// What it is.
    pub kind: Kind,
    /// Length in bytes.
    pub size: u64,
    /// Modification time, nanoseconds since 1970; saturated at the ends of `i64`.
    pub mtime_ns: i64,
    /// Change time, likewise.
    pub ctime_ns: i64,
    /// Birth time, likewise, where the file system keeps one.
    pub birth_ns: Option<i64>,
    /// Inode number, or what the system has for one.
    pub inode: u64,
    /// Number of the file system; on Linux `major << 32 | minor`. Not stable
    /// between mounts.
    pub device: u64,
    /// Number of hard links.
    pub links: u32,
    /// Bytes allocated for it; less than its size where it has holes.
    pub allocated: u64,
    /// About where it begins on the disk, in bytes, where that was asked for
    /// and could be told. Good for an order of reading and nothing else.
    pub place: Option<u64>,
}

impl Stat {
    /// Whether size, dates and identity are all equal: nothing was written
    /// in between, as far as the system can tell.
    pub fn is_unchanged_from(&self, earlier: &Self) -> bool {
        self.kind == earlier.kind
            && self.size == earlier.size
            && self.mtime_ns == earlier.mtime_ns
            && self.ctime_ns == earlier.ctime_ns
            && self.inode == earlier.inode
            && self.device == earlier.device
    }
}
