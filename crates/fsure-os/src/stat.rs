//! Metadata that the system reports of one name, without following it.

/// The type of the inode that a name stands for.
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

/// The fields of a stat that fsure uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Type of the inode.
    pub kind: Kind,
    /// Length in bytes.
    pub size: u64,
    /// Modification time, nanoseconds since 1970, or the nearer of ±[`DATE_NS_MAX`].
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
    /// and is known. Good for an order of reading and nothing else.
    pub place: Option<u64>,
}

/// The farthest date from 1970 that nanoseconds in an `i64` hold (in 1677 and in
/// 2262), and the same for all dates beyond: file systems keep such dates, some
/// by mistake. `i64::MIN` is never the date of a file.
pub const DATE_NS_MAX: i64 = i64::MAX;

/// Nanoseconds since 1970 of a date that may be out of their range.
pub(crate) fn date_ns(seconds: i64, nanoseconds: i64) -> i64 {
    let date = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
    let nearest = date.clamp(-i128::from(DATE_NS_MAX), i128::from(DATE_NS_MAX));
    i64::try_from(nearest).expect("it is between two of them")
}

impl Stat {
    /// Returns true if type, size, dates and identity are all equal: nothing was
    /// written in between, as far as the system can tell.
    pub fn is_unchanged_from(&self, earlier: &Self) -> bool {
        self.kind == earlier.kind
            && self.size == earlier.size
            && self.mtime_ns == earlier.mtime_ns
            && self.ctime_ns == earlier.ctime_ns
            && self.inode == earlier.inode
            && self.device == earlier.device
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_beyond_the_range_is_the_nearest_in_it() {
        for (seconds, nanoseconds, date) in [
            (0, 7, 7),
            (-1, 999_999_999, -1),
            (9_223_372_036, 854_775_807, DATE_NS_MAX),
            (9_223_372_037, 0, DATE_NS_MAX),
            (i64::MAX, 999_999_999, DATE_NS_MAX),
            (-9_223_372_037, 145_224_192, -DATE_NS_MAX),
            (-9_223_372_037, 145_224_194, -DATE_NS_MAX + 1),
            (-11_644_473_600, 5, -DATE_NS_MAX),
            (i64::MIN, 0, -DATE_NS_MAX),
        ] {
            assert_eq!(date_ns(seconds, nanoseconds), date, "{seconds} s, {nanoseconds} ns");
        }
    }
}
