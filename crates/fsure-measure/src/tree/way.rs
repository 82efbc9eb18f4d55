//! The ways of reading a tree that are held against each other.

use fsure_os::read::ReadMode;

/// A way of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Past the page cache: what the device can give.
    Past,
    /// Through the page cache, in which nothing of the files is.
    Through,
    /// Out of the page cache, in which all of the files are.
    From,
    /// Through the page cache while it is emptied again and again.
    Purged,
}

impl Way {
    /// The name in a result.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Past => "past the cache",
            Self::Through => "through the cache",
            Self::From => "from the cache",
            Self::Purged => "through a purged cache",
        }
    }

    /// The way of reading that the readers are told to try first.
    pub(super) fn first_way(self) -> ReadMode {
        if self == Self::Past { ReadMode::Direct } else { ReadMode::Cached }
    }
}
