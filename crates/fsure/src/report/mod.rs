//! Floor 5: outcomes as text for a person and as JSON for a program. Both are
//! pure functions of words and return strings: who prints them, and where, is
//! decided one floor up. What both faces say alike is in this file.

mod closing;
pub mod json;
pub mod text;
mod totals;

use jiff::Timestamp;

use crate::words::{ByteRange, escape};

/// Ranges in order, with those that touch or overlap made one: a scan tells of
/// a damaged stretch block by block, a reader wants to see the stretch.
fn merge(ranges: &[ByteRange]) -> Vec<ByteRange> {
    let mut sorted: Vec<_> = ranges.iter().filter(|range| !range.is_empty()).cloned().collect();
    sorted.sort_by_key(|range| range.start);
    let mut merged: Vec<ByteRange> = Vec::new();
    for range in sorted {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// A date of an entry. Nanoseconds in an `i64` reach from 1677 to 2262.
fn timestamp(time_ns: i64) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(time_ns)).expect("jiff knows the years -9999 to 9999")
}

/// A message of ours with every control character escaped. Backslashes stay:
/// the names in it may be escaped already.
pub fn safe(message: &str) -> String {
    let parts: Vec<_> = message.split('\\').map(|part| escape(part.as_bytes())).collect();
    parts.join("\\")
}

/// A count with thousands separators: `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 file`, `1,234 files`.
fn number(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

#[cfg(test)]
mod samples {
    //! Findings and entries for the tests of this floor.

    use crate::words::{Entry, EntryKind, FileSystemId, Finding, RelPath, Verdict};

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
            recorded: Some(entry()),
            found: Some(entry()),
            damaged: Vec::new(),
            unreadable: Vec::new(),
            reason: None,
            recorded_now: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ranges_that_touch_become_one() {
        for (ranges, merged) in [
            (vec![], vec![]),
            (vec![0..1, 1..2, 3..4], vec![0..2, 3..4]),
            (vec![5..9, 0..2], vec![0..2, 5..9]),
            (vec![0..9, 2..4, 8..10, 11..12], vec![0..10, 11..12]),
            (vec![3..3, 7..8, 9..10], vec![7..8, 9..10]),
        ] {
            assert_eq!(merge(&ranges), merged, "{ranges:?}");
        }
    }

    #[test]
    fn counts_have_separators() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(number), text);
        }
    }

    #[test]
    fn every_stored_date_can_be_shown() {
        for time_ns in [i64::MIN, -1, 0, samples::NOON_NS, i64::MAX] {
            assert_eq!(timestamp(time_ns).as_nanosecond(), i128::from(time_ns));
        }
    }
}
