//! Outcomes as text for a person and as JSON for a program. Both are
//! pure functions of the model and return strings: who prints them, and where, is
//! decided one floor up. What both faces say alike is in this file.

pub mod age;
mod byte_ranges;
pub mod compare;
mod conclusion;
pub mod dupes;
pub mod fold;
pub mod heal;
pub mod import_export;
pub mod json;
pub mod last_word;
pub mod log;
mod metadata_line;
pub mod metrics;
mod paths;
pub mod protect;
pub mod recover;
mod scrub;
mod signed_line;
#[cfg(feature = "storage")]
pub mod storage;
mod summary_totals;
pub mod text;
pub mod version;

pub use paths::RootPaths;

use jiff::Timestamp;
use jiff::tz::TimeZone;

pub use fsure_core::{count, safe};

/// A date of an entry. Nanoseconds in an `i64` reach from 1677 to 2262.
fn timestamp(time_ns: i64) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(time_ns)).expect("jiff knows the years -9999 to 9999")
}

/// `2026-11-20 12:00:00` of seconds since 1970.
fn date_and_time(time_s: i64, zone: &TimeZone) -> String {
    let time = timestamp(time_s.saturating_mul(1_000_000_000));
    time.to_zoned(zone.clone()).strftime("%F %T").to_string()
}

/// `1 file`, `1,234 files`.
fn number(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// Returns a sentence with a command behind it, on a line of its own: it can be copied whole,
/// whatever the width of the terminal.
fn with_command(sentence: &str, command: &str) -> String {
    format!("{sentence}:\n    {command}")
}

/// Three digits where there are fewer than that before the point.
fn figure(value: f64) -> String {
    match value {
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        value => count(value.round() as u64),
    }
}

#[cfg(test)]
mod samples {
    //! Findings and entries for the tests of this floor.

    use fsure_core::RelPath;
    use fsure_integrity::model::{Basis, Entry, EntryKind, FileSystemId, Finding, Verdict};

    /// 2024-05-01 12:00:00.123456789 UTC.
    pub(super) const NOON_NS: i64 = 1_714_564_800_123_456_789;

    /// A file of 24 MiB, last modified at [`NOON_NS`].
    pub(super) fn entry() -> Entry {
        Entry {
            kind: EntryKind::File,
            size: 24 << 20,
            mtime_ns: NOON_NS,
            ctime_ns: Some(NOON_NS),
            birth_ns: None,
            inode: Some(12),
            file_system: FileSystemId(1),
            target: None,
        }
    }

    /// A file that is recorded and found with the same stat.
    pub(super) fn finding(path: &[u8], verdict: Verdict) -> Finding {
        Finding {
            path: RelPath::from_bytes(path),
            kind: EntryKind::File,
            verdict,
            moved_from: None,
            name_mismatch: None,
            meta: Vec::new(),
            recorded: Some(entry()),
            found: Some(entry()),
            damaged: Vec::new(),
            unreadable: Vec::new(),
            reason: None,
            recorded_now: false,
            is_dry_run: false,
            basis: Basis::Content,
            known_damage: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stored_date_can_be_shown() {
        for time_ns in [i64::MIN, -1, 0, samples::NOON_NS, i64::MAX] {
            assert_eq!(timestamp(time_ns).as_nanosecond(), i128::from(time_ns));
        }
    }
}
