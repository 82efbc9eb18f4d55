//! The steps of a walk.

use std::io;

use fsure_os::{Kind, Stat};

use super::walk_bounds::ExcludeReason;
use fsure_core::RelPath;

/// One step of the walk, in the order of paths.
#[derive(Debug)]
pub enum WalkEvent {
    /// A name, its stat, and the device of the folder it is in (of itself, if
    /// it is a folder).
    Entry(RelPath, Stat, u64),
    /// A name that is left out, with everything below it. A nested root is
    /// reported after its own entry.
    LeftOut(RelPath, Kind, ExcludeReason),
    /// A name of which nothing more is known.
    Unseen(RelPath, io::Error),
    /// A folder of which all names are known. Reported some time after the folder's
    /// own entry and before what is in it.
    Listed(RelPath),
    /// The same of a folder of which not all names are known.
    Unlisted(RelPath, io::Error),
    /// A pattern file with its text, which is kept to. Reported before its entry.
    PatternsRead(RelPath, Vec<u8>),
    /// A pattern file that cannot be read; nothing is left out for it.
    PatternsUnread(RelPath, io::Error),
}

impl WalkEvent {
    /// The path it is about.
    pub fn path(&self) -> &RelPath {
        match self {
            Self::Entry(path, ..)
            | Self::LeftOut(path, ..)
            | Self::Unseen(path, _)
            | Self::Listed(path)
            | Self::Unlisted(path, _)
            | Self::PatternsRead(path, _)
            | Self::PatternsUnread(path, _) => path,
        }
    }
}
