//! The messages between the one thread that decides and the readers: a request to read a
//! file, and what came of it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use fsure_os::Stat;

use crate::catalog::UnfinishedBlocks;
use crate::model::ByteRange;
use fsure_core::block_hash::{BlockValue, block_count};
use fsure_core::{AlgorithmSet, Digests, RelPath};

/// Files from this size on keep the values of finished parts, so that a run
/// that is cut off goes on inside them. Below it, reading anew takes seconds.
pub(super) const KEEP_PARTS_MIN: u64 = 256 << 20;

/// A request to read a file, or some of its blocks.
#[derive(Clone, Debug)]
pub(super) struct ReadRequest {
    /// Number of the order, which comes back with the response.
    pub(super) id: u64,
    pub(super) path: RelPath,
    /// Stat of the file when it was ordered.
    pub(super) stat: Stat,
    pub(super) algorithms: AlgorithmSet,
    /// True if a file that is in memory as a whole may be read from there.
    pub(super) uses_cache: bool,
    /// Numbers of the blocks to read, to check them again; empty for the whole file.
    pub(super) blocks: Vec<u64>,
    /// Block values that an earlier run left behind.
    pub(super) kept: Vec<UnfinishedBlocks>,
    /// True if the values of parts that are done are wanted.
    pub(super) keeps_parts: bool,
    /// Not together with others: one of them may be the one that got stuck, or
    /// it changes all the time.
    pub(super) alone: bool,
    /// Blocks read so far, if the file is large enough for its own progress to be shown.
    pub(super) blocks_read: Option<Arc<AtomicU64>>,
}

impl ReadRequest {
    /// Returns the likely place on the disk: an address, or else the inode number.
    pub(super) fn place(&self) -> u64 {
        self.stat.place.unwrap_or(self.stat.inode)
    }
}

/// A content as it was read.
#[derive(Debug)]
pub(super) struct ReadContent {
    /// Empty if some of the file could not be read, or not all was requested.
    pub(super) digests: Digests,
    /// Numbers and values of the blocks that were read, in order; empty for
    /// files of one block and without BLAKE3.
    pub(super) blocks: Vec<(u64, Option<BlockValue>)>,
    pub(super) unreadable: Vec<ByteRange>,
    pub(super) error: Option<io::Error>,
    pub(super) needed_second_read: bool,
    /// The stat before and, unchanged, after reading.
    pub(super) stat: Stat,
    /// Time at which reading began, nanoseconds since 1970.
    pub(super) hashed_ns: i64,
}

impl ReadContent {
    /// The values of all blocks; empty where there are none or not all.
    pub(super) fn values(&self) -> Vec<BlockValue> {
        let is_whole = self.blocks.len() as u64 == block_count(self.stat.size);
        let values = self.blocks.iter().map(|(_, value)| *value).collect::<Option<Vec<_>>>();
        values.filter(|values| is_whole && values.len() > 1).unwrap_or_default()
    }
}

/// The response to an order.
#[derive(Debug)]
pub(super) enum ReadOutcome {
    Read(Box<ReadContent>),
    /// It changed, shrank or was replaced in the meantime.
    Changed,
    Gone,
    Denied(io::Error),
    /// It cannot even be opened.
    Unopened(io::Error),
    /// It could not be opened for a reason that is not its own.
    NoMeans(io::Error),
    /// The run came to its end before this was begun.
    Stopped,
    /// The same, after reading began, nanoseconds since 1970.
    CutOff(i64),
}
