//! Files of equal content.

use super::RelPath;

/// One of several recorded files of equal content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// Number of its group, from 1.
    pub group: u64,
    /// Its path.
    pub path: RelPath,
    /// Its size in bytes.
    pub size: u64,
    /// The digest they have in common.
    pub digest: Box<[u8]>,
    /// Another name of the file told before it, and no copy.
    pub is_link: bool,
}

/// What a search for files of equal content found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Duplicates {
    /// Groups of equal files.
    pub groups: u64,
    /// Files in them, further names of one file not counted.
    pub files: u64,
    /// Further names.
    pub links: u64,
    /// Bytes of all copies but one of each group.
    pub bytes_saved: u64,
    /// Files left out because they are not as recorded any more, or may not be.
    pub stale: u64,
    /// Records that fail their seal.
    pub bad_records: u64,
    /// Whether the search was ended before its end.
    pub was_stopped: bool,
}
