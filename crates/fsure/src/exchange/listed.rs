//! What a list says: one file with its digests, or what is wrong with a line.

use crate::words::{Digests, RelPath, Result};

/// A file as a list has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Its path, relative to the root of the list.
    pub path: RelPath,
    /// What else the name may stand for, in the order in which it is to be
    /// tried where there is no such file: programs disagree on how a BagIt
    /// manifest spells a percent sign.
    pub others: Vec<RelPath>,
    /// Its digests; empty where all of them are of kinds we cannot compute.
    pub digests: Digests,
    /// Its length in bytes, where the list has it.
    pub size: Option<u64>,
    /// Its modification time, where the list has it.
    pub modified: Option<Modified>,
    /// Where in the list it is, from 1.
    pub line: u64,
}

/// A modification time as exact as the list has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modified {
    /// Nanoseconds since 1970.
    pub time_ns: i64,
    /// The unit in which the list counts, nanoseconds.
    pub unit_ns: i64,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where in the list it is, from 1.
    pub line: u64,
    /// What is wrong, for a person.
    pub reason: String,
    /// How bad that is.
    pub trouble: Trouble,
}

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The line makes no sense, or names what no list may name: the list
    /// cannot be trusted as a whole.
    Malformed,
    /// The line makes sense and cannot be used: of the file nothing is known.
    Unsupported,
    /// Worth knowing; no file goes unjudged for it.
    Note,
}

/// What a reader hands over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A file.
    Listed(Listed),
    /// A problem.
    Problem(Problem),
}

impl Item {
    pub(super) fn malformed(line: u64, reason: impl Into<String>) -> Self {
        Self::Problem(Problem { line, reason: reason.into(), trouble: Trouble::Malformed })
    }

    pub(super) fn unsupported(line: u64, reason: impl Into<String>) -> Self {
        Self::Problem(Problem { line, reason: reason.into(), trouble: Trouble::Unsupported })
    }

    pub(super) fn note(line: u64, reason: impl Into<String>) -> Self {
        Self::Problem(Problem { line, reason: reason.into(), trouble: Trouble::Note })
    }
}

/// Who takes what a reader hands over. An error ends the reading.
pub type Sink<'a> = dyn FnMut(Item) -> Result<()> + 'a;
