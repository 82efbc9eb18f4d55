//! What the catalog knows of one path.

use super::{Digests, Entry, RelPath};

/// An entry, its digests, and when they were taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The path below its root.
    pub path: RelPath,
    /// The stat at the time of hashing.
    pub entry: Entry,
    /// The digests; empty for folders and links.
    pub digests: Digests,
    /// When reading for these digests began, nanoseconds since 1970.
    pub hashed_ns: i64,
    /// When the content was last seen to be as recorded, seconds since 1970.
    pub verified_s: i64,
    /// When an update found the path gone, seconds since 1970: the record is
    /// then a tombstone, kept so that a file that comes back can be judged.
    pub gone_s: Option<i64>,
}

impl Record {
    /// Whether an equal stat proves nothing, because the file was recorded
    /// within two ticks of its own clock: a write in the same tick would not
    /// have moved its dates.
    ///
    /// A tick is the file system's granularity, at least the 10 ms between
    /// two updates of a coarse kernel clock (`CONFIG_HZ=100`). The change time
    /// decides where there is one: it is never set by hand, so a photograph
    /// dated in the future is not racy for ever.
    pub fn is_racy(&self, granularity_ns: i64) -> bool {
        const KERNEL_TICK_NS: i64 = 10_000_000;
        let last_change_ns = self.entry.ctime_ns.unwrap_or(self.entry.mtime_ns);
        self.hashed_ns.saturating_sub(last_change_ns) < 2 * granularity_ns.max(KERNEL_TICK_NS)
    }
}
