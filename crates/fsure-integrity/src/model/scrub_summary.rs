//! The task of a scrub, and its progress.

use fsure_core::RelPath;

/// The results of a scrub beyond those of every run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubSummary {
    /// Recorded files that were due at its beginning.
    pub due_files: u64,
    /// Their bytes, as recorded.
    pub due_bytes: u64,
    /// Of these, files that were judged.
    pub done_files: u64,
    /// Their bytes, as recorded.
    pub done_bytes: u64,
    /// Files that came first because their last check found trouble.
    pub again_files: u64,
    /// Files that came because of their age.
    pub by_age_files: u64,
    /// Large files of which a part was verified, and not all yet.
    pub partly_files: u64,
    /// Bytes of these that are verified by now.
    pub partly_bytes: u64,
    /// Files that were left out because no budget of this size allows the least that has to be
    /// read of them.
    pub too_large_files: u64,
    /// The first of them that can only be read as a whole.
    pub too_large_first: Option<RelPath>,
    /// The least budget in bytes with which all such files would be read; 0 if the budget is a
    /// time.
    pub too_large_budget: u64,
    /// The others of them: they can be read in parts, and the budget does not allow one block.
    pub below_block_files: u64,
    /// The least budget in bytes that allows a block of each.
    pub below_block_budget: u64,
    /// Files that differed at the first reading, with no time left for a second.
    pub undecided_files: u64,
    /// True if the scrub must not leave any file that is due.
    pub must_be_complete: bool,
}

impl ScrubSummary {
    /// Counts a file that was judged, with its recorded size.
    pub(crate) fn note_done(&mut self, bytes: u64) {
        self.done_files += 1;
        self.done_bytes = self.done_bytes.saturating_add(bytes);
    }

    /// Counts files that can only be read as a whole and take too long.
    pub(crate) fn note_too_large<'a>(&mut self, paths: impl IntoIterator<Item = &'a RelPath>) {
        for path in paths {
            self.too_large_files += 1;
            self.too_large_first.get_or_insert_with(|| path.clone());
        }
    }

    /// Counts a file that is left out although it can be read in parts: one block of it takes a
    /// budget of so many bytes.
    pub(crate) fn note_below_block(&mut self, budget: u64) {
        self.too_large_files += 1;
        self.below_block_files += 1;
        self.below_block_budget = self.below_block_budget.max(budget);
    }

    /// Returns the number of files that were due and not finished.
    pub fn left_files(&self) -> u64 {
        self.due_files.saturating_sub(self.done_files)
    }

    /// Returns the bytes of these files that are not verified.
    pub fn left_bytes(&self) -> u64 {
        self.due_bytes.saturating_sub(self.done_bytes).saturating_sub(self.partly_bytes)
    }

    /// Returns true if files with trouble at their last check left no budget for the others.
    pub fn is_eaten_up(&self) -> bool {
        self.again_files > 0 && self.by_age_files == 0 && self.left_files() > 0
    }

    /// Returns true if it did not finish what it had to do. Files left for the next
    /// time by a budget do not count, since that is the purpose of a budget.
    pub fn is_incomplete(&self) -> bool {
        self.undecided_files > 0 || (self.must_be_complete && self.left_files() > 0)
    }
}
