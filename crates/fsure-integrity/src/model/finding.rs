//! One path with its verdict and the evidence for it.

use super::{Entry, EntryKind, KnownDamage, MetadataChange, NameMismatch, Verdict};
use fsure_core::RelPath;

/// A half-open range of bytes of a file.
pub type ByteRange = std::ops::Range<u64>;

/// Adds a range to ranges in order, as one with the last if they touch.
pub fn push_range(ranges: &mut Vec<ByteRange>, range: ByteRange) {
    match ranges.last_mut() {
        Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
        _ => ranges.push(range),
    }
}

/// Returns the ranges in order, with those that touch or overlap merged.
pub fn merge_ranges(ranges: &[ByteRange]) -> Vec<ByteRange> {
    let mut sorted: Vec<_> = ranges.iter().filter(|range| !range.is_empty()).cloned().collect();
    sorted.sort_by_key(|range| range.start);
    let mut merged = Vec::new();
    for range in sorted {
        push_range(&mut merged, range);
    }
    merged
}

/// Evidence that a verdict rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The content, which was read in this run, or requested.
    Content,
    /// Name, size and dates.
    Stat,
    /// A finding of an earlier run that nothing has settled since.
    KnownDamage,
}

/// The verdict on one path, with its reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The path below the root.
    pub path: RelPath,
    /// Type of the entry that is there now; if nothing is there, of the recorded one.
    pub kind: EntryKind,
    /// The verdict.
    pub verdict: Verdict,
    /// The path under which it is recorded, if that is another one.
    pub moved_from: Option<RelPath>,
    /// Name mismatch, actual or possible, with the recorded path.
    pub name_mismatch: Option<NameMismatch>,
    /// Differences of its metadata from the record.
    pub meta: Vec<MetadataChange>,
    /// The recorded entry.
    pub recorded: Option<Entry>,
    /// The entry found.
    pub found: Option<Entry>,
    /// Ranges whose content differs from the record: whole blocks, the last
    /// one cut at the end of the file. Empty if the record has no block values.
    pub damaged: Vec<ByteRange>,
    /// Ranges that could not be read.
    pub unreadable: Vec<ByteRange>,
    /// Message of the operating system or of the check, for a person.
    pub reason: Option<String>,
    /// True if the catalog now holds what was found.
    pub recorded_now: bool,
    /// True if that catalog is the copy of a dry run, so that the record is as before.
    pub is_dry_run: bool,
    /// The evidence for the verdict.
    pub basis: Basis,
    /// Damage of the file that an earlier run found and that is not settled.
    pub known_damage: Option<KnownDamage>,
}

impl Finding {
    /// Creates a finding that has neither the entry nor the record of its path.
    pub fn bare(path: RelPath, kind: EntryKind, verdict: Verdict, reason: Option<String>) -> Self {
        Self {
            path,
            kind,
            verdict,
            moved_from: None,
            name_mismatch: None,
            meta: Vec::new(),
            recorded: None,
            found: None,
            damaged: Vec::new(),
            unreadable: Vec::new(),
            reason,
            recorded_now: false,
            is_dry_run: false,
            basis: Basis::Stat,
            known_damage: None,
        }
    }

    /// Returns true if there is something to report beside the verdict.
    pub fn is_flagged(&self) -> bool {
        self.name_mismatch.is_some() || !self.meta.is_empty()
    }

    /// Returns true if the recorded name differs from it by a name mismatch.
    pub fn has_name_mismatch(&self) -> bool {
        matches!(self.name_mismatch, Some(NameMismatch::Nfc | NameMismatch::Case))
    }

    /// Returns the size in bytes: the current one, or the recorded one if nothing is there.
    pub fn size(&self) -> u64 {
        self.found.as_ref().or(self.recorded.as_ref()).map_or(0, |entry| entry.size)
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
            assert_eq!(merge_ranges(&ranges), merged, "{ranges:?}");
        }
    }
}
