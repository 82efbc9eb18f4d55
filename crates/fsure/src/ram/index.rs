//! What the disk side holds, as the RAM side was when it was taken: what a scan is
//! compared with.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use fsure_os::mirror::{Attributes, Facts, Kind};

use super::content::Digest;
use super::step::Meta;
use crate::words::RelPath;

/// In the place of a digest: of what is no file, and of a file that could not be read,
/// which is equal to nothing.
pub(super) const UNREAD: Digest = [0; 32];

/// One name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Of the RAM side, when its content was taken.
    pub(super) facts: Facts,
    /// Of a file's content.
    pub(super) digest: Digest,
    /// Where a link points.
    pub(super) target: Vec<u8>,
    pub(super) attributes: Attributes,
}

impl Entry {
    pub(super) fn meta(&self) -> Meta {
        Meta {
            ownership: self.facts.ownership,
            mtime_ns: self.facts.mtime_ns,
            attributes: self.attributes.clone(),
        }
    }

    pub(super) fn is_file(&self) -> bool {
        self.facts.kind == Kind::File
    }

    pub(super) fn is_folder(&self) -> bool {
        self.facts.kind == Kind::Folder
    }

    /// Whether it is the same to whoever looks at the disk side.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        self.is_same_thing_as(other) && self.meta() == other.meta()
    }

    /// Whether it is the same but for what it has besides its content.
    pub(super) fn is_same_thing_as(&self, other: &Self) -> bool {
        self.facts.kind == other.facts.kind
            && self.digest == other.digest
            && self.target == other.target
            && (!self.is_file() || self.digest != UNREAD && self.facts.size == other.facts.size)
    }
}

/// All names of a side, by path, and files by inode.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    entries: BTreeMap<RelPath, Entry>,
    files: HashMap<u64, Vec<RelPath>>,
}

impl Index {
    pub(super) fn get(&self, path: &RelPath) -> Option<&Entry> {
        self.entries.get(path)
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (&RelPath, &Entry)> {
        self.entries.iter()
    }

    /// How many are files.
    pub(super) fn files(&self) -> usize {
        self.entries.values().filter(|entry| entry.is_file()).count()
    }

    /// Bytes in all files.
    pub(super) fn bytes(&self) -> u64 {
        self.entries.values().filter(|entry| entry.is_file()).map(|entry| entry.facts.size).sum()
    }

    /// Puts one in, or takes one out.
    pub(super) fn set(&mut self, path: RelPath, entry: Option<Entry>) {
        let old = match entry {
            Some(entry) => {
                if entry.is_file() {
                    let names = self.files.entry(entry.facts.inode).or_default();
                    if !names.contains(&path) {
                        names.push(path.clone());
                    }
                }
                let inode = entry.is_file().then_some(entry.facts.inode);
                let old = self.entries.insert(path.clone(), entry);
                old.filter(|old| Some(old.facts.inode) != inode)
            }
            None => self.entries.remove(&path),
        };
        let Some(old) = old.filter(Entry::is_file) else { return };
        if let Some(names) = self.files.get_mut(&old.facts.inode) {
            names.retain(|name| *name != path);
            if names.is_empty() {
                self.files.remove(&old.facts.inode);
            }
        }
    }

    /// The names of a file, by its inode on the RAM side.
    pub(super) fn names(&self, inode: u64) -> &[RelPath] {
        self.files.get(&inode).map_or(&[], Vec::as_slice)
    }

    /// Everything behind a path, in order.
    pub(super) fn behind<'a>(
        &'a self,
        path: &RelPath,
    ) -> impl Iterator<Item = (&'a RelPath, &'a Entry)> + use<'a> {
        self.entries.range::<RelPath, _>((Bound::Excluded(path), Bound::Unbounded))
    }

    /// Everything below a folder, not the folder itself.
    pub(super) fn below(
        &self,
        folder: &RelPath,
    ) -> impl DoubleEndedIterator<Item = (&RelPath, &Entry)> + use<'_> {
        let (from, to) = folder.below();
        let from = Bound::Excluded(RelPath::from_bytes(from));
        let to = to.map_or(Bound::Unbounded, |to| Bound::Excluded(RelPath::from_bytes(to)));
        self.entries.range((from, to))
    }
}
