//! The items of a list: a file with its digests, or a problem with a line.

use fsure_core::{Digests, RelPath, Result};

/// A file as a list has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManifestEntry {
    /// Its path, relative to the root of the list.
    pub path: RelPath,
    /// True if the list has an absolute path: `path` is then relative to `/`.
    pub is_absolute: bool,
    /// Other paths that the name may stand for, in the order in which they are to be
    /// tried if there is no such file: programs disagree on how a BagIt manifest spells a
    /// percent sign.
    pub others: Vec<RelPath>,
    /// Its digests; empty if all of them are of kinds that fsure cannot compute.
    pub digests: Digests,
    /// Its length in bytes, where the list has it.
    pub size: Option<u64>,
    /// Its modification time, where the list has it.
    pub modified: Option<ListedMtime>,
    /// Number of its line in the list, from 1.
    pub line: u64,
}

/// A modification time as exact as the list has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedMtime {
    /// Nanoseconds since 1970.
    pub time_ns: i64,
    /// The unit in which the list counts, nanoseconds.
    pub unit_ns: i64,
}

/// A problem with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Number of the line in the list, from 1.
    pub line: u64,
    /// Description of the problem for the user.
    pub reason: String,
    /// Severity of the problem.
    pub trouble: ProblemKind,
}

/// Severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// The line makes no sense, or names what no list may name: the list
    /// cannot be trusted as a whole.
    Malformed,
    /// The line makes sense and cannot be used: of the file nothing is known.
    Unsupported,
    /// Worth knowing; no file goes unjudged for it.
    Note,
}

/// An item that a reader passes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManifestItem {
    /// A file.
    Listed(ManifestEntry),
    /// A problem.
    Problem(Problem),
}

impl ManifestItem {
    pub(super) fn malformed(line: u64, reason: impl Into<String>) -> Self {
        Self::Problem(Problem { line, reason: reason.into(), trouble: ProblemKind::Malformed })
    }

    pub(super) fn unsupported(line: u64, reason: impl Into<String>) -> Self {
        Self::Problem(Problem { line, reason: reason.into(), trouble: ProblemKind::Unsupported })
    }

    pub(super) fn note(line: u64, reason: impl Into<String>) -> Self {
        Self::Problem(Problem { line, reason: reason.into(), trouble: ProblemKind::Note })
    }
}

/// Receives the items that a reader passes on. An error ends the reading.
pub type EntrySink<'a> = dyn FnMut(ManifestItem) -> Result<()> + 'a;
