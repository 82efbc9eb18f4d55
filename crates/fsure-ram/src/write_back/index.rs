//! Index of what the disk side holds, with the state of the RAM side when it was taken. A
//! scan is compared with it.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use fsure_os::tree_copy::{Attributes, CopyStat, NodeKind};

use super::content_digest::Digest;
use super::journal_step::Meta;
use fsure_core::RelPath;

/// Stands in the place of a digest: of what is not a file, and of a file that could not be
/// read, which is equal to nothing.
pub(super) const UNREAD: Digest = [0; 32];

/// One name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IndexEntry {
    /// Of the RAM side, when its content was taken.
    pub(super) facts: CopyStat,
    /// Of a file's content.
    pub(super) digest: Digest,
    /// Target of a symbolic link.
    pub(super) target: Vec<u8>,
    pub(super) attributes: Attributes,
}

impl IndexEntry {
    pub(super) fn meta(&self) -> Meta {
        Meta {
            ownership: self.facts.ownership,
            mtime_ns: self.facts.mtime_ns,
            attributes: self.attributes.clone(),
        }
    }

    pub(super) fn is_file(&self) -> bool {
        self.facts.kind == NodeKind::File
    }

    /// Tells whether it is a file that has several names.
    pub(super) fn has_links(&self) -> bool {
        self.is_file() && self.facts.links > 1
    }

    pub(super) fn is_folder(&self) -> bool {
        self.facts.kind == NodeKind::Folder
    }

    /// Returns true if both are the same to a reader of the disk side.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        self.is_same_thing_as(other) && self.meta() == other.meta()
    }

    /// Returns true if both are the same except for the metadata.
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
    entries: BTreeMap<RelPath, IndexEntry>,
    files: HashMap<u64, Vec<RelPath>>,
    /// Names of files, and the bytes in these: asked for many times a second.
    sums: (usize, u64),
    /// Names of files that have several.
    linked: usize,
}

impl Index {
    pub(super) fn get(&self, path: &RelPath) -> Option<&IndexEntry> {
        self.entries.get(path)
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (&RelPath, &IndexEntry)> {
        self.entries.iter()
    }

    /// Returns the number of names that are files.
    pub(super) fn files(&self) -> usize {
        self.sums.0
    }

    /// Bytes in all files.
    pub(super) fn bytes(&self) -> u64 {
        self.sums.1
    }

    /// Tells whether any file has several names.
    pub(super) fn has_links(&self) -> bool {
        self.linked > 0
    }

    /// Puts one in, or takes one out.
    pub(super) fn set(&mut self, path: RelPath, entry: Option<IndexEntry>) {
        let is_linked =
            |entry: Option<&IndexEntry>| usize::from(entry.is_some_and(IndexEntry::has_links));
        self.linked += is_linked(entry.as_ref());
        self.linked -= is_linked(self.entries.get(&path));
        let sums = |entry: Option<&IndexEntry>| {
            entry.filter(|entry| entry.is_file()).map_or((0, 0), |entry| (1, entry.facts.size))
        };
        let (old, new) = (sums(self.entries.get(&path)), sums(entry.as_ref()));
        // Holes can be more than can be counted, and go again.
        self.sums.0 = self.sums.0 + new.0 - old.0;
        self.sums.1 = self.sums.1.wrapping_add(new.1).wrapping_sub(old.1);
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
        let Some(old) = old.filter(IndexEntry::is_file) else { return };
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
    ) -> impl Iterator<Item = (&'a RelPath, &'a IndexEntry)> + use<'a> {
        self.entries.range::<RelPath, _>((Bound::Excluded(path), Bound::Unbounded))
    }

    /// Everything below a folder, not the folder itself.
    pub(super) fn below(
        &self,
        folder: &RelPath,
    ) -> impl DoubleEndedIterator<Item = (&RelPath, &IndexEntry)> + use<'_> {
        let (from, to) = folder.below();
        let from = Bound::Excluded(RelPath::from_bytes(from));
        let to = to.map_or(Bound::Unbounded, |to| Bound::Excluded(RelPath::from_bytes(to)));
        self.entries.range((from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fsure_os::file_attributes::Ownership;

    #[test]
    fn files_and_bytes_are_those_that_are_there() {
        let ownership = Ownership { mode: 0o600, user: 0, group: 0 };
        let of = |kind, size| {
            let (mtime_ns, ctime_ns, inode, device, links) = (0, 0, 1, 1, 1);
            let facts =
                CopyStat { kind, size, mtime_ns, ctime_ns, inode, device, links, ownership };
            IndexEntry { facts, digest: [1; 32], target: Vec::new(), attributes: Vec::new() }
        };
        let (file, folder) = (|size| Some(of(NodeKind::File, size)), Some(of(NodeKind::Folder, 9)));
        let mut index = Index::default();
        for (name, entry, sums) in [
            (b"a", file(3), (1, 3)),
            (b"b", file(4), (2, 7)),
            (b"a", file(5), (2, 9)),
            (b"c", folder.clone(), (2, 9)),
            (b"b", folder, (1, 5)),
            (b"c", None, (1, 5)),
            (b"c", None, (1, 5)),
            (b"a", None, (0, 0)),
        ] {
            index.set(RelPath::from_bytes(*name), entry);
            assert_eq!((index.files(), index.bytes()), sums);
        }
    }
}
