//! The ways to read a file past its copy in the page cache, and the alignment that the
//! direct one needs. [`crate::read`] goes down them.

/// A way to read, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReadMode {
    /// Past the page cache: `O_DIRECT` on Linux, `FILE_FLAG_NO_BUFFERING` on
    /// Windows. macOS has nothing that reads past what is already there.
    Direct,
    /// From the page cache what is there, the rest without leaving it there:
    /// `RWF_DONTCACHE` on Linux (6.14), `F_NOCACHE` on macOS.
    DontCache,
    /// Through the page cache, and dropped from it when the file is closed.
    /// Only for files of which nothing was cached before: dropping is by
    /// file, and would take other people's pages too.
    Dropped,
    /// Through the page cache. What is already there is not read from the
    /// medium.
    Cached,
}

/// All ways, best first.
pub const WAYS: [ReadMode; 4] =
    [ReadMode::Direct, ReadMode::DontCache, ReadMode::Dropped, ReadMode::Cached];

/// Direct reads start and end at multiples of this. The largest logical block
/// of a common device; a file system that wants more says so in `statx`.
pub(crate) const GRAIN_MIN: u64 = 4096;

/// A file that needs a larger grain than this is not read directly: no reads
/// begin at such multiples.
pub(crate) const GRAIN_MAX: u64 = 1 << 20;
