//! One path with its verdict and the evidence for it.

use super::{Entry, EntryKind, RelPath, Verdict};

/// A half-open range of bytes of a file.
pub type ByteRange = std::ops::Range<u64>;

/// What we say of one path, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The path below the root.
    pub path: RelPath,
    /// What is there now, or was recorded where nothing is there.
    pub kind: EntryKind,
    /// The verdict.
    pub verdict: Verdict,
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
}

impl Finding {
    /// The size now, or as recorded where nothing is there. Bytes.
    pub fn size(&self) -> u64 {
        self.found.as_ref().or(self.recorded.as_ref()).map_or(0, |entry| entry.size)
    }
}
