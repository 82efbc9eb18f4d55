//! Results of a comparison of two trees.

use super::{EntryKind, VerdictCounts};
use fsure_core::{ExitCode, RelPath};

/// The difference of one path between two trees, the first (here) and the second (there).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Other content, kind or link target.
    Different,
    /// Only here.
    OnlyHere,
    /// Only there.
    OnlyThere,
    /// The same content under another name there.
    Moved,
    /// It could not be read, or the records have no digest in common.
    Unknown,
}

impl Difference {
    /// The word used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Different => "different",
            Self::OnlyHere => "only-here",
            Self::OnlyThere => "only-there",
            Self::Moved => "moved",
            Self::Unknown => "unknown",
        }
    }
}

/// A path that is not the same in two trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedPath {
    /// Kind of the difference.
    pub difference: Difference,
    /// The path; the one in the first tree if the two differ.
    pub path: RelPath,
    /// The path in the second tree, if it is another one.
    pub there: Option<RelPath>,
    /// Type of the entry.
    pub kind: EntryKind,
}

/// The counts of a comparison of two trees: files, links and folders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// The same in both.
    pub same: u64,
    /// Other content, kind or target.
    pub different: u64,
    /// Only in the first.
    pub only_here: u64,
    /// Only in the second.
    pub only_there: u64,
    /// The same file under another name.
    pub moved: u64,
    /// Not compared: unread, or without a common digest.
    pub unknown: u64,
    /// Records that fail their seal, and are reported as unknown.
    pub bad_records: u64,
    /// Lines of a list that cannot be parsed.
    pub malformed: u64,
    /// Entries of a list that cannot be used.
    pub unusable: u64,
    /// Sides that are a list that names no file.
    pub empty_lists: u64,
    /// Files that are known to be damaged by the records of both, by the verdict of the
    /// run that last read them.
    pub known_damage: VerdictCounts,
    /// True for each side whose record knows of damage.
    pub is_known_damaged: [bool; 2],
    /// Compared files of the first tree that were not read: their records stand for them.
    pub recorded_here: u64,
    /// Compared files of the second tree that were not read.
    pub recorded_there: u64,
    /// Bytes of files that were read for the comparison.
    pub bytes_read: u64,
}

impl Comparison {
    /// The exit code this deserves.
    pub fn exit_code(&self) -> ExitCode {
        let Self { different, only_here, only_there, moved, .. } = *self;
        let own = if self.bad_records + self.malformed + self.empty_lists > 0 {
            ExitCode::RecordUntrusted
        } else if self.unknown > 0 {
            ExitCode::Unread
        } else if self.unusable > 0 {
            ExitCode::Incomplete
        } else if different + only_here + only_there + moved > 0 {
            ExitCode::Differences
        } else {
            ExitCode::Clean
        };
        own.worse(self.known_damage.known_damage_code())
    }

    /// Counts a path that is not the same.
    pub fn add(&mut self, difference: Difference) {
        *match difference {
            Difference::Different => &mut self.different,
            Difference::OnlyHere => &mut self.only_here,
            Difference::OnlyThere => &mut self.only_there,
            Difference::Moved => &mut self.moved,
            Difference::Unknown => &mut self.unknown,
        } += 1;
    }
}
