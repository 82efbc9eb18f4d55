//! What the system says of one name, without following it.

use rustix::fs::{FileType, Statx, StatxFlags, StatxTimestamp};

/// What kind of thing a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Folder,
    /// A symbolic link.
    Link,
    /// A FIFO, socket, device or anything else; never to be opened.
    Special,
}

/// The answer of `statx(2)`, reduced to what fsure uses.
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
    /// Inode number.
    pub inode: u64,
    /// Device number of the file system, `major << 32 | minor`. Not stable
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
    /// What to ask `statx` for.
    pub(crate) const MASK: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME);

    pub(crate) fn from_statx(answer: &Statx) -> Self {
        let has_birth = answer.stx_mask & StatxFlags::BTIME.bits() != 0;
        Self {
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

fn nanoseconds(time: StatxTimestamp) -> i64 {
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec.into())
}
