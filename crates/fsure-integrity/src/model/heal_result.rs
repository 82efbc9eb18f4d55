//! The remedy for one finding: what was done, what a dry run would do, and what could
//! not be done.

use super::{ByteRange, CountsByKind, EntryKind, Verdict};
use fsure_core::RelPath;

/// The source of bytes that the record proves to be right.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HealSource {
    /// The damaged file itself.
    Itself,
    /// A replica, by the path given for it, as raw bytes.
    Replica(Box<[u8]>),
    /// Recovery data, from which bytes of the file were rebuilt.
    Parity,
    /// The record itself, which suffices for an empty file, a link or a folder.
    Record,
}

/// The result of a remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealStatus {
    /// It is as recorded again.
    Healed,
    /// It can be healed; this is a dry run.
    Healable,
    /// It was left as it was.
    Unhealed,
}

impl HealStatus {
    /// The word used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Healed => "healed",
            Self::Healable => "healable",
            Self::Unhealed => "unhealed",
        }
    }
}

/// The remedy for one finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealResult {
    /// The path below the root.
    pub path: RelPath,
    /// Type of the entry, as recorded.
    pub kind: EntryKind,
    /// Its size as recorded, in bytes.
    pub size: u64,
    /// The verdict that was found.
    pub verdict: Verdict,
    /// The result.
    pub cure: HealStatus,
    /// Ranges that were bad, by the source of their new bytes.
    pub taken: Vec<(HealSource, Vec<ByteRange>)>,
    /// Ranges that no source has.
    pub lacking: Vec<ByteRange>,
    /// Path below the root at which the previous content is kept.
    pub kept: Option<RelPath>,
    /// The reason why it is unhealed, or other information for the user.
    pub reason: Option<String>,
}

impl HealResult {
    /// Returns the number of bytes that came from another source than the file itself.
    pub fn bytes(&self) -> u64 {
        let foreign = self.taken.iter().filter(|(origin, _)| *origin != HealSource::Itself);
        foreign.flat_map(|(_, ranges)| ranges).map(|range| range.end - range.start).sum()
    }
}

/// The result of a heal as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HealSummary {
    /// True if it was a dry run, which only reports what it would do.
    pub is_dry_run: bool,
    /// Counts of what was healed, by the verdict that was found.
    pub healed: CountsByKind,
    /// Counts of what a run that is not dry would heal.
    pub healable: CountsByKind,
    /// Counts of what was checked and could not be healed.
    pub unhealed: CountsByKind,
    /// Files whose previous content is kept.
    pub kept: u64,
    /// Files that are possibly edits, left alone because their content was not to be kept.
    pub unkept: u64,
    /// True if it was to write into the damaged files.
    pub is_in_place: bool,
    /// True if the healing of a file in place has begun and is not finished.
    pub is_unfinished: bool,
    /// Bytes put back; in a dry run, bytes that would be put back.
    pub bytes: u64,
}

impl HealSummary {
    /// Counts what was done about a finding.
    pub fn add(&mut self, remedy: &HealResult) {
        let tallies = match remedy.cure {
            HealStatus::Healed => &mut self.healed,
            HealStatus::Healable => &mut self.healable,
            HealStatus::Unhealed => &mut self.unhealed,
        };
        tallies.add(remedy.kind, remedy.verdict);
        self.kept += u64::from(remedy.kept.is_some());
        if remedy.cure != HealStatus::Unhealed {
            self.bytes += remedy.bytes();
        }
    }
}
