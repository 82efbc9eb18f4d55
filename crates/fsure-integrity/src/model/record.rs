//! The record of one path in the catalog.

use fsure_os::filesystem_id::date_unit_ns;

use super::Entry;
use fsure_core::{Digests, RelPath};

/// An entry, its digests, and the dates at which they were taken and verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The path below its root.
    pub path: RelPath,
    /// The stat at the time of hashing.
    pub entry: Entry,
    /// The digests; empty for folders and links.
    pub digests: Digests,
    /// Date at which reading for these digests began, nanoseconds since 1970.
    pub hashed_ns: i64,
    /// Date at which the content was last verified as recorded, seconds since 1970.
    pub verified_s: i64,
    /// Date at which an update found the path gone, seconds since 1970. The
    /// record is then a tombstone, kept so that a file that comes back can be judged.
    pub gone_s: Option<i64>,
}

/// Shortest step of a coarse kernel clock, nanoseconds (`CONFIG_HZ=100`).
const KERNEL_TICK_NS: i64 = 10_000_000;
/// The most that a clock is set back while files are written, nanoseconds. A
/// change time that lies further ahead comes from a clock that was wrong then,
/// and a write by the clock of today does not repeat it.
const CLOCK_STEP_MAX_NS: i64 = 3_600_000_000_000;

impl Record {
    /// Returns the date of the last change of the file: the change time if there is
    /// one, because it is never set by hand, so that a photograph dated in the future is not
    /// racy until then.
    fn last_change_ns(&self) -> i64 {
        self.entry.ctime_ns.unwrap_or(self.entry.mtime_ns)
    }

    /// Returns true if an equal stat proves nothing, because the file was
    /// recorded within two ticks of its own clock: a write in the same tick would
    /// not have moved its dates.
    ///
    /// A tick is the granularity of the file system, or the unit that the date
    /// itself shows, at least that of the kernel's clock.
    pub fn is_racy(&self, granularity_ns: i64) -> bool {
        let last_change_ns = self.last_change_ns();
        let tick_ns = granularity_ns.max(date_unit_ns(last_change_ns)).max(KERNEL_TICK_NS);
        let age_ns = self.hashed_ns.saturating_sub(last_change_ns);
        (-CLOCK_STEP_MAX_NS..2 * tick_ns).contains(&age_ns)
    }

    /// Returns true if a store through a memory map, which can occur up to
    /// `unseen_write_max_ns` nanoseconds after the last change, could have changed the
    /// content since it was last verified as recorded.
    pub fn may_hide_mapped_write(&self, unseen_write_max_ns: i64) -> bool {
        let seen_ns = self.hashed_ns.max(self.verified_s.saturating_mul(1_000_000_000));
        seen_ns.saturating_sub(self.last_change_ns()) < unseen_write_max_ns
    }
}

/// Returns true if a change time lies further ahead than a correction sets a clock back
/// at most; both are in nanoseconds since 1970.
pub fn is_in_the_future(change_ns: i64, now_ns: i64) -> bool {
    change_ns.saturating_sub(now_ns) > CLOCK_STEP_MAX_NS
}
