//! What a scrub was to do, and how far it came.

use super::RelPath;

/// What a scrub says beyond what every run says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scrubbed {
    /// Recorded files that were due at its beginning.
    pub due_files: u64,
    /// Their bytes, as recorded.
    pub due_bytes: u64,
    /// Of these, files that were judged.
    pub done_files: u64,
    /// Their bytes, as recorded.
    pub done_bytes: u64,
    /// Files that came first because they were not well when last looked at.
    pub again_files: u64,
    /// Files that came by their age.
    pub by_age_files: u64,
    /// Large files of which a part was verified, and not all yet.
    pub partly_files: u64,
    /// Bytes of these that are verified by now.
    pub partly_bytes: u64,
    /// Files that were left out because they can only be read as a whole and
    /// no budget of this size allows that.
    pub too_large_files: u64,
    /// The first of them.
    pub too_large_first: Option<RelPath>,
    /// Files that differed at a first look, and no time was left for a second.
    pub undecided_files: u64,
    /// Whether what is left may not be left.
    pub must_be_complete: bool,
}

impl Scrubbed {
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

    /// Files that it did not come to the end of.
    pub fn left_files(&self) -> u64 {
        self.due_files.saturating_sub(self.done_files)
    }

    /// What is left of their bytes.
    pub fn left_bytes(&self) -> u64 {
        self.due_bytes.saturating_sub(self.done_bytes).saturating_sub(self.partly_bytes)
    }

    /// Whether what was not well before left nothing for the others.
    pub fn is_eaten_up(&self) -> bool {
        self.again_files > 0 && self.by_age_files == 0 && self.left_files() > 0
    }

    /// Whether it ended short of what it had to do. To leave something for the
    /// next time is what a budget is for.
    pub fn is_incomplete(&self) -> bool {
        self.undecided_files > 0 || (self.must_be_complete && self.left_files() > 0)
    }
}
