//! The parts of a root that a run is for.

use std::collections::HashSet;
use std::sync::Arc;

use fsure_core::RelPath;

/// Paths in a root, none of them within another, in the order of their bytes. There is one at
/// least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scopes(Arc<[RelPath]>);

impl Scopes {
    /// One path: the root itself, or a folder or file below it.
    pub fn one(path: RelPath) -> Self {
        Self(Arc::new([path]))
    }

    /// Several paths, without those that others include; the whole root if there are none.
    pub fn of(paths: impl IntoIterator<Item = RelPath>) -> Self {
        let all: HashSet<RelPath> = paths.into_iter().collect();
        let is_included = |path: &RelPath| above(path).any(|folder| all.contains(&folder));
        let mut paths: Vec<_> = all.iter().filter(|path| !is_included(path)).cloned().collect();
        paths.sort_unstable();
        if paths.is_empty() {
            paths.push(RelPath::root());
        }
        Self(paths.into())
    }

    /// The paths.
    pub fn iter(&self) -> impl Iterator<Item = &RelPath> {
        self.0.iter()
    }

    /// Returns true if it is one path, and not a selection of several.
    pub fn is_one(&self) -> bool {
        self.0.len() == 1
    }

    /// Returns true if it is the whole root.
    pub fn is_root(&self) -> bool {
        self.0[0].is_root()
    }

    /// Returns true if a path is one of them or lies below one.
    pub fn contains(&self, path: &RelPath) -> bool {
        self.is_root() || self.0.binary_search(path).is_ok() || {
            above(path).any(|folder| self.0.binary_search(&folder).is_ok())
        }
    }

    /// The smallest folder that holds all of them; the path itself if there is one.
    pub fn around(&self) -> RelPath {
        let (first, last) = (&self.0[0], &self.0[self.0.len() - 1]);
        // What the first and the last have in common, all in between have.
        let mut folder = Some(first.clone());
        while let Some(candidate) = folder.take_if(|folder| !last.is_within(folder)) {
            folder = candidate.parent();
        }
        folder.unwrap_or_default()
    }
}

/// The folders that a path is in, the root included.
fn above(path: &RelPath) -> impl Iterator<Item = RelPath> {
    std::iter::successors(path.parent(), RelPath::parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes(paths: &[&str]) -> Scopes {
        Scopes::of(paths.iter().map(|path| RelPath::from_bytes(path.as_bytes())))
    }

    fn paths(scopes: &Scopes) -> Vec<&str> {
        scopes.iter().map(|path| path.as_text().unwrap()).collect()
    }

    #[test]
    fn none_is_within_another() {
        for (given, kept) in [
            (&["b", "a", "b"][..], &["a", "b"][..]),
            (&["a", "a-b", "a/c"], &["a", "a-b"]),
            (&["a/b/c", "a/b"], &["a/b"]),
            (&["a", ""], &[""]),
            (&[], &[""]),
        ] {
            assert_eq!(paths(&scopes(given)), kept, "{given:?}");
        }
    }

    #[test]
    fn what_is_below_one_is_in_them_and_nothing_beside() {
        let some = scopes(&["a", "a-b", "c/d"]);
        for (path, is_in) in [
            ("a", true),
            ("a/x/y", true),
            ("a-b", true),
            ("a-c", false),
            ("ab", false),
            ("c", false),
            ("c/d", true),
            ("c/e", false),
            ("", false),
        ] {
            assert_eq!(some.contains(&RelPath::from_bytes(path.as_bytes())), is_in, "{path}");
        }
        assert!(scopes(&[""]).contains(&RelPath::from_bytes(*b"anything")));
    }

    #[test]
    fn the_smallest_folder_around() {
        for (given, around) in [
            (&["a/b/c"][..], "a/b/c"),
            (&["a/b/c", "a/b/d"], "a/b"),
            (&["a/b", "a/bc"], "a"),
            (&["a", "b"], ""),
            (&[""], ""),
        ] {
            assert_eq!(scopes(given).around().as_text(), Some(around), "{given:?}");
        }
    }
}
