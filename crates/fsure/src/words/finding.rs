//! One path with its verdict and the evidence for it.

use super::{Entry, EntryKind, KnownDamage, MetaChange, RelPath, Spelling, Verdict};

/// A half-open range of bytes of a file.
pub type ByteRange = std::ops::Range<u64>;

/// Adds a range to ranges in order, as one with the last if they touch.
pub fn push_range(ranges: &mut Vec<ByteRange>, range: ByteRange) {
    match ranges.last_mut() {
        Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
        _ => ranges.push(range),
    }
}

/// Ranges in order, with those that touch or overlap made one.
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
    /// The content, which was read in this run, or asked for.
    Content,
    /// Name, size and dates.
    Stat,
    /// What an earlier run found, and nothing settled since.
    KnownDamage,
}

/// What we say of one path, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The path below the root.
    pub path: RelPath,
    /// What is there now, or was recorded where nothing is there.
    pub kind: EntryKind,
    /// The verdict.
    pub verdict: Verdict,
    /// The path under which it is recorded, where that is another one.
    pub moved_from: Option<RelPath>,
    /// How it is spelled otherwise than it is recorded, or could be.
    pub norm: Option<Spelling>,
    /// How its metadata differs from the record.
    pub meta: Vec<MetaChange>,
    /// The recorded entry.
    pub recorded: Option<Entry>,
    /// The entry found.
    pub found: Option<Entry>,
    /// Ranges whose content differs from the record: whole blocks, the last
    /// one cut at the end of the file. Empty where the record has no block
    /// values to tell.
    pub damaged: Vec<ByteRange>,
    /// Ranges that could not be read.
    pub unreadable: Vec<ByteRange>,
    /// What the operating system or the check said, for a person.
    pub reason: Option<String>,
    /// Whether the catalog now holds what was found.
    pub recorded_now: bool,
    /// The evidence for the verdict.
    pub basis: Basis,
    /// Damage of the file that an earlier run found and that is not settled.
    pub known_damage: Option<KnownDamage>,
}

impl Finding {
    /// A verdict on a path of which neither the entry nor the record is told.
    pub fn bare(path: RelPath, kind: EntryKind, verdict: Verdict, reason: Option<String>) -> Self {
        Self {
            path,
            kind,
            verdict,
            moved_from: None,
            norm: None,
            meta: Vec::new(),
            recorded: None,
            found: None,
            damaged: Vec::new(),
            unreadable: Vec::new(),
            reason,
            recorded_now: false,
            basis: Basis::Stat,
            known_damage: None,
        }
    }

    /// Whether there is something to tell beside the verdict.
    pub fn is_flagged(&self) -> bool {
        self.norm.is_some() || !self.meta.is_empty()
    }

    /// Whether it is the recorded name in another spelling.
    pub fn is_respelled(&self) -> bool {
        matches!(self.norm, Some(Spelling::Nfc | Spelling::Case))
    }

    /// The size now, or as recorded where nothing is there. Bytes.
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
