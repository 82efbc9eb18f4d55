//! The files of a generation that are staged on the disk side or held in memory, and what
//! they cost.

use std::collections::{BTreeMap, HashMap};

use fsure_os::tree_copy::File;

use super::content_digest::Digest;
use super::index::IndexEntry;
use fsure_core::RelPath;

/// Readings of a file until two readings in a row are the same.
pub(super) const READINGS_MAX: u32 = 4;
/// From this size on the unchanged part of a file is shared with the old one, where
/// the file system can. A smaller one is kept in memory at first.
pub(super) const SHARED_FROM: u64 = 256 << 10;
/// No more than this is kept in memory in one generation.
const HELD_BYTES_MAX: u64 = 64 << 20;

/// A file that is staged under a name.
#[derive(Clone, Debug)]
pub(super) struct Staged {
    pub(super) name: String,
    pub(super) digest: Digest,
    pub(super) what: StagedKind,
}

/// The kinds of staged files.
#[derive(Clone, Copy, Debug)]
pub(super) enum StagedKind {
    /// The whole of a new one.
    Whole,
    /// A second name of what is on the disk side already: its owner and dates stay
    /// until the generation counts.
    Old,
    /// The bytes behind the first `from` of what is on the disk side, and its
    /// digest.
    Tail { from: u64, digest: Digest },
}

/// The content of a file of the RAM side.
pub(super) enum StagedSource {
    /// It is read again when it is staged.
    File(File),
    /// All of it.
    Held(Vec<u8>),
}

/// Files that are staged or held.
#[derive(Default)]
pub(super) struct Staging {
    generation: u64,
    staged: BTreeMap<RelPath, Staged>,
    by_inode: HashMap<u64, Staged>,
    held: BTreeMap<RelPath, (Digest, Vec<u8>)>,
    held_bytes: u64,
    count: u64,
    /// Bytes written so far, and those that are written once more when it counts.
    pub(super) written: u64,
    pub(super) again: u64,
}

impl Staging {
    pub(super) fn new(generation: u64) -> Self {
        Self { generation, ..Self::default() }
    }

    /// Finds the staged file of a name, if it is what the entry has.
    pub(super) fn of(&self, path: &RelPath, entry: &IndexEntry) -> Option<&Staged> {
        self.staged.get(path).filter(|staged| staged.digest == entry.digest)
    }

    /// Returns true if a file of this size is to be kept in memory.
    pub(super) fn can_hold(&self, size: u64) -> bool {
        size < SHARED_FROM && self.held_bytes + size <= HELD_BYTES_MAX
    }

    pub(super) fn hold(&mut self, path: &RelPath, digest: Digest, bytes: Vec<u8>) {
        self.held_bytes += bytes.len() as u64;
        if let Some((_, old)) = self.held.insert(path.clone(), (digest, bytes)) {
            self.held_bytes -= old.len() as u64;
        }
    }

    pub(super) fn next_name(&mut self) -> String {
        self.count += 1;
        format!("{}-{}", self.generation, self.count)
    }

    pub(super) fn put(&mut self, path: &RelPath, inode: u64, staged: Staged) {
        if let StagedKind::Whole = staged.what {
            self.by_inode.insert(inode, staged.clone());
        }
        self.staged.insert(path.clone(), staged);
    }

    /// Returns the staged file of an inode, if all of it is new.
    pub(super) fn of_inode(&self, inode: u64) -> Option<&Staged> {
        self.by_inode.get(&inode)
    }

    /// Takes the files that are held in memory out.
    pub(super) fn take_held(&mut self) -> BTreeMap<RelPath, (Digest, Vec<u8>)> {
        self.held_bytes = 0;
        std::mem::take(&mut self.held)
    }
}
