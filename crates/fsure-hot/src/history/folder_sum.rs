//! Sums of an interval: what was done in one folder, and what is not named.

use std::collections::BTreeSet;

use fsure_os::io_trace::IoCounts;

/// Programs that are named for one folder.
pub(super) const FOLDER_PROGRAMS_MAX: usize = 16;

/// The operations in a folder.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedFolder {
    /// Their counts.
    pub counts: IoCounts,
    /// Names of the programs, not all if there are many.
    pub programs: BTreeSet<String>,
    /// True if operations in folders below it are counted here: these folders are not named.
    pub has_below: bool,
}

/// The sum of what is not named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordedRest {
    /// Number of folders or programs. Of merged intervals it is the largest, as it cannot be known
    /// which of them are the same.
    pub count: u64,
    /// Counts of their operations.
    pub counts: IoCounts,
}

impl RecordedFolder {
    pub(super) fn add(&mut self, other: Self) {
        self.counts.add(&other.counts);
        self.has_below |= other.has_below;
        self.programs.extend(other.programs);
        while self.programs.len() > FOLDER_PROGRAMS_MAX {
            self.programs.pop_last();
        }
    }
}

impl RecordedRest {
    pub(super) fn merge(&mut self, other: &Self) {
        self.count = self.count.max(other.count);
        self.counts.add(&other.counts);
    }
}
