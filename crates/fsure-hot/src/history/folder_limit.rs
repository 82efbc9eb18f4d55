//! Bounds the folders of an interval. What is left out is counted in the folder around it: so
//! the sum over a folder and all below it is exact wherever the folder is named, and advice, which
//! rests on these sums, is as it would be with all folders, or is given one folder higher up.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::path::{Path, PathBuf};

use super::folder_sum::RecordedFolder;
use crate::folder_tree::{bytes, waited_ns};

/// Folders that an interval names.
pub(super) const FOLDERS_MAX: usize = 32;

/// Length of a path that is kept. What is done below a longer one is counted above it.
const PATH_BYTES_MAX: usize = 512;

/// Parts of the whole in which the weight of a folder is measured.
const WHOLE: u128 = 1_000_000_000;

/// Leaves the folders that programs wait for most, and those with most bytes.
pub(super) fn limit_folders(folders: &mut BTreeMap<PathBuf, RecordedFolder>) {
    let is_long = |path: &Path| path.as_os_str().len() > PATH_BYTES_MAX;
    if folders.len() <= FOLDERS_MAX && !folders.keys().any(|path| is_long(path)) {
        return;
    }
    let mut tree = Tree::of(std::mem::take(folders));
    tree.fold(FOLDERS_MAX);
    *folders = tree.into_folders();
}

/// Folders with all that lead to them.
#[derive(Default)]
struct Tree {
    nodes: BTreeMap<PathBuf, Node>,
    /// Number of nodes in which something was done.
    used: usize,
    waited: u64,
    bytes: u64,
}

#[derive(Default)]
struct Node {
    folder: Option<RecordedFolder>,
    children: usize,
}

impl Tree {
    fn of(folders: BTreeMap<PathBuf, RecordedFolder>) -> Self {
        let mut tree = Self::default();
        for (path, folder) in folders {
            tree.waited = tree.waited.saturating_add(waited_ns(&folder.counts));
            tree.bytes = tree.bytes.saturating_add(bytes(&folder.counts));
            let mut kept = path.as_path();
            while let (true, Some(above)) = (kept.as_os_str().len() > PATH_BYTES_MAX, kept.parent())
            {
                kept = above;
            }
            let is_cut = kept != path;
            tree.add(kept, RecordedFolder { has_below: folder.has_below || is_cut, ..folder });
        }
        tree
    }

    fn add(&mut self, path: &Path, folder: RecordedFolder) {
        self.lead_to(path);
        let Some(node) = self.nodes.get_mut(path) else { return };
        self.used += usize::from(node.folder.is_none());
        node.folder.get_or_insert_default().add(folder);
    }

    /// Makes a node and those above it. A path has at most `PATH_BYTES_MAX` of them.
    fn lead_to(&mut self, path: &Path) {
        if self.nodes.contains_key(path) {
            return;
        }
        self.nodes.insert(path.to_owned(), Node::default());
        let Some(above) = path.parent() else { return };
        self.lead_to(above);
        if let Some(node) = self.nodes.get_mut(above) {
            node.children += 1;
        }
    }

    /// Counts the lightest folders in those around them, until `most` are left.
    fn fold(&mut self, most: usize) {
        let leaves = self.nodes.iter().filter(|(_, node)| node.children == 0);
        let mut leaves: BinaryHeap<_> =
            leaves.map(|(path, node)| Reverse((self.weight(node), path.clone()))).collect();
        while self.used > most {
            let Some(Reverse((_, path))) = leaves.pop() else { return };
            let Some(above) = path.parent().map(Path::to_owned) else { continue };
            let folder = self.nodes.remove(&path).and_then(|node| node.folder);
            self.used -= usize::from(folder.is_some());
            let Some(node) = self.nodes.get_mut(&above) else { continue };
            node.children -= 1;
            if let Some(folder) = folder {
                self.used += usize::from(node.folder.is_none());
                let sum = node.folder.get_or_insert_default();
                sum.add(RecordedFolder { has_below: true, ..folder });
            }
            let node = &self.nodes[&above];
            if node.children == 0 {
                leaves.push(Reverse((self.weight(node), above)));
            }
        }
    }

    /// The share of the time, or of the bytes, whichever is larger.
    fn weight(&self, node: &Node) -> u64 {
        let Some(folder) = &node.folder else { return 0 };
        let share = |part: u64, all: u64| {
            let parts = u128::from(part) * WHOLE / u128::from(all.max(1));
            u64::try_from(parts).unwrap_or(u64::MAX)
        };
        let waited = share(waited_ns(&folder.counts), self.waited);
        waited.max(share(bytes(&folder.counts), self.bytes))
    }

    fn into_folders(self) -> BTreeMap<PathBuf, RecordedFolder> {
        let used = self.nodes.into_iter();
        used.filter_map(|(path, node)| Some((path, node.folder?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fsure_os::io_trace::IoCounts;

    fn folder(fsync_ns: u64, bytes_read: u64) -> RecordedFolder {
        let counts = IoCounts { fsync_ns, bytes_read, reads: 1, ..IoCounts::default() };
        RecordedFolder { counts, ..RecordedFolder::default() }
    }

    fn sum_below(folders: &BTreeMap<PathBuf, RecordedFolder>, top: &str) -> IoCounts {
        let mut sum = IoCounts::default();
        let below = folders.iter().filter(|(path, _)| path.starts_with(top));
        below.for_each(|(_, folder)| sum.add(&folder.counts));
        sum
    }

    #[test]
    fn the_heavy_stay_and_the_sums_above_are_exact() {
        let mut folders = BTreeMap::new();
        for n in 0..1000 {
            folders.insert(PathBuf::from(format!("/srv/many/{}/{n}", n % 7)), folder(10, 1));
        }
        folders.insert(PathBuf::from("/srv/db/wal"), folder(5_000, 0));
        folders.insert(PathBuf::from("/home/a/film"), folder(0, 100_000));
        folders.insert(PathBuf::from("/"), folder(1, 1));
        let before: Vec<_> = ["/", "/srv", "/srv/many"].map(|top| sum_below(&folders, top)).into();
        limit_folders(&mut folders);
        assert!(folders.len() <= FOLDERS_MAX, "{}", folders.len());
        assert!(!folders[Path::new("/srv/db/wal")].has_below);
        assert_eq!(folders[Path::new("/home/a/film")].counts.bytes_read, 100_000);
        for (top, before) in ["/", "/srv", "/srv/many"].iter().zip(before) {
            assert_eq!(sum_below(&folders, top), before, "{top}");
        }
        let folded: Vec<_> = folders.iter().filter(|(_, folder)| folder.has_below).collect();
        assert!(!folded.is_empty());
        assert!(folded.iter().all(|(path, _)| path.starts_with("/srv/many")), "{folded:?}");
    }

    #[test]
    fn few_folders_stay_as_they_are() {
        let mut folders: BTreeMap<_, _> =
            (0..FOLDERS_MAX).map(|n| (PathBuf::from(format!("/a/{n}")), folder(1, 1))).collect();
        let before = folders.clone();
        limit_folders(&mut folders);
        assert_eq!(folders, before);
    }

    #[test]
    fn a_path_that_is_too_long_is_counted_above() {
        let deep = format!("/a/{}", "x/".repeat(PATH_BYTES_MAX));
        let mut folders = BTreeMap::from([(PathBuf::from(deep), folder(7, 7))]);
        limit_folders(&mut folders);
        let (path, folder) = folders.first_key_value().unwrap();
        assert!(path.starts_with("/a/x") && path.as_os_str().len() <= PATH_BYTES_MAX);
        assert!(folder.has_below && folder.counts.fsync_ns == 7);
    }
}
