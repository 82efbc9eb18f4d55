//! The ages of verifications by folder, in bounded memory: of a tree with too many folders, those
//! further up stand for what is below them.

use std::collections::BTreeMap;

use super::age_histogram::{AgeBucket, FilesAndBytes};
use fsure_core::RelPath;

/// Depth to which folders have ages of their own.
const DEPTH_MAX: usize = 4;

/// Folders that are kept.
const FOLDERS_MAX: usize = 1_000;

/// Amounts by the age of the last verification.
pub type AmountsByAge = [FilesAndBytes; AgeBucket::ALL.len()];

/// The recorded files of each folder, by the age of their last verification. A file counts for
/// the deepest folder that has ages of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderAges {
    /// Depth to which folders have ages of their own, all levels above the requested path included.
    depth: usize,
    /// Depth of the requested path.
    depth_min: usize,
    folders: BTreeMap<RelPath, AmountsByAge>,
}

impl Default for FolderAges {
    fn default() -> Self {
        Self::below(&RelPath::root())
    }
}

impl FolderAges {
    /// Those below a path, none so far.
    pub(crate) fn below(scope: &RelPath) -> Self {
        let depth_min = std::iter::successors(scope.parent(), RelPath::parent).count();
        Self { depth: depth_min + DEPTH_MAX, depth_min, folders: BTreeMap::new() }
    }

    /// Counts a file.
    pub(crate) fn add(&mut self, path: &RelPath, when: AgeBucket, bytes: u64) {
        let folder = path.parent().unwrap_or_default();
        let amounts = self.folders.entry(cut(&folder, self.depth)).or_default();
        amounts[when as usize].add(FilesAndBytes { files: 1, bytes });
        while self.folders.len() > FOLDERS_MAX && self.depth > self.depth_min {
            self.depth -= 1;
            for (folder, amounts) in std::mem::take(&mut self.folders) {
                let sums = self.folders.entry(cut(&folder, self.depth)).or_default();
                sums.iter_mut().zip(amounts).for_each(|(sum, more)| sum.add(more));
            }
        }
    }

    /// The folders in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&RelPath, &AmountsByAge)> {
        self.folders.iter()
    }
}

/// Returns the first components of a folder, as many as `depth`.
fn cut(folder: &RelPath, depth: usize) -> RelPath {
    let bytes = folder.as_bytes();
    let mut ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    match depth.checked_sub(1).map(|last| ends.nth(last)) {
        None => RelPath::root(),
        Some(None) => folder.clone(),
        Some(Some((end, _))) => RelPath::from_bytes(&bytes[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(path: &str) -> RelPath {
        RelPath::from_bytes(path.as_bytes())
    }

    fn files(ages: &FolderAges) -> Vec<(&str, u64)> {
        let all = |amounts: &AmountsByAge| amounts.iter().map(|amount| amount.files).sum();
        ages.iter().map(|(folder, amounts)| (folder.as_text().unwrap(), all(amounts))).collect()
    }

    #[test]
    fn a_file_counts_for_its_folder_or_the_deepest_that_is_told_apart() {
        let mut ages = FolderAges::default();
        for name in ["top", "a/x", "a/y", "a/b/c/d/z", "a/b/c/d/e/f/z"] {
            ages.add(&path(name), AgeBucket::Today, 7);
        }
        ages.add(&path("a/old"), AgeBucket::Older, 5);
        assert_eq!(files(&ages), [("", 1), ("a", 3), ("a/b/c/d", 2)]);
        let a = ages.iter().nth(1).unwrap().1;
        assert_eq!(a[AgeBucket::Today as usize], FilesAndBytes { files: 2, bytes: 14 });
        assert_eq!(a[AgeBucket::Older as usize], FilesAndBytes { files: 1, bytes: 5 });
        let mut below = FolderAges::below(&path("a/b/c"));
        below.add(&path("a/b/c/d/e/f/g/h/z"), AgeBucket::Today, 1);
        assert_eq!(files(&below), [("a/b/c/d/e/f/g", 1)]);
    }

    #[test]
    fn too_many_folders_are_joined_in_those_above_them() {
        let mut ages = FolderAges::default();
        for number in 0..2 * FOLDERS_MAX {
            ages.add(&path(&format!("{}/{number}/x", number % 3)), AgeBucket::Never, 1);
        }
        let third = 2 * FOLDERS_MAX as u64 / 3;
        assert_eq!(files(&ages), [("0", third + 1), ("1", third + 1), ("2", third)]);
        // Those that cannot be joined in others are one.
        let mut flat = FolderAges::default();
        (0..=FOLDERS_MAX).for_each(|n| flat.add(&path(&format!("{n}/x")), AgeBucket::Never, 1));
        assert_eq!(files(&flat), [("", FOLDERS_MAX as u64 + 1)]);
    }
}
