//! Absolute paths in a list, as `sha256sum /data/photos/*` writes them: those below the folder
//! that the list is asked about are names in it.

use std::path::Path;

use fsure_os::path as os_path;

use super::entry::{ManifestEntry, ManifestItem};
use fsure_core::RelPath;

/// Makes names of the absolute paths below a folder.
pub(super) struct AbsolutePaths<'a> {
    folder: &'a Path,
    /// The folder as paths of the list begin with it, relative to `/`: the way to it may have
    /// links in it.
    spellings: Vec<RelPath>,
    /// The parent of the last path that is not below the folder.
    last_elsewhere: Option<RelPath>,
}

impl<'a> AbsolutePaths<'a> {
    /// For a folder, without links in its path.
    pub(super) fn below(folder: &'a Path) -> Self {
        let bytes = os_path::bytes(folder);
        let spellings = match bytes.strip_prefix(b"/") {
            Some(below) => vec![RelPath::from_bytes(below)],
            None => Vec::new(),
        };
        Self { folder, spellings, last_elsewhere: None }
    }

    /// Returns an item with its path relative to the folder; one that is not below it stays
    /// absolute.
    pub(super) fn relative(&mut self, item: ManifestItem) -> ManifestItem {
        match item {
            ManifestItem::Listed(entry) if entry.is_absolute => {
                ManifestItem::Listed(match self.name(&entry.path) {
                    Some(path) => ManifestEntry { path, is_absolute: false, ..entry },
                    None => entry,
                })
            }
            other => other,
        }
    }

    fn name(&mut self, path: &RelPath) -> Option<RelPath> {
        let known = self.spellings.iter().find_map(|folder| below(path, folder));
        if known.is_some() || path.parent() == self.last_elsewhere {
            return known;
        }
        let Some(folder) = self.spelling(path) else {
            self.last_elsewhere = path.parent();
            return None;
        };
        let name = below(path, &folder);
        self.spellings.push(folder);
        name
    }

    /// Returns the beginning of a path that leads to the folder by way of links.
    fn spelling(&self, path: &RelPath) -> Option<RelPath> {
        let bytes = path.as_bytes();
        let ends = (0..bytes.len()).filter(|end| bytes[*end] == b'/');
        let mut folders = ends.map(|end| RelPath::from_bytes(&bytes[..end]));
        folders.find(|folder| {
            let folder = Path::new("/").join(os_path::from_bytes(folder.as_bytes()));
            os_path::resolve(&folder).is_ok_and(|found| found == self.folder)
        })
    }
}

/// Returns the path relative to a folder that it is strictly below.
fn below(path: &RelPath, folder: &RelPath) -> Option<RelPath> {
    let rest = path.as_bytes().get(folder.below().0.len()..)?;
    (path.is_within(folder) && !rest.is_empty()).then(|| RelPath::from_bytes(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str) -> ManifestEntry {
        let path = RelPath::from_bytes(path.as_bytes());
        ManifestEntry { path, is_absolute: true, ..ManifestEntry::default() }
    }

    #[test]
    fn only_what_is_below_the_folder_is_a_name_in_it() {
        let mut paths = AbsolutePaths::below(Path::new("/data/photos"));
        for (path, name) in [
            ("data/photos/a", Some("a")),
            ("data/photos/b/c", Some("b/c")),
            ("data/photos", None),
            ("data/photos2/a", None),
            ("etc/passwd", None),
        ] {
            let ManifestItem::Listed(found) = paths.relative(ManifestItem::Listed(entry(path)))
            else {
                panic!("{path}")
            };
            assert_eq!(!found.is_absolute, name.is_some(), "{path}");
            assert_eq!(found.path.as_text(), Some(name.unwrap_or(path)), "{path}");
        }
        let mut of_all = AbsolutePaths::below(Path::new("/"));
        assert_eq!(of_all.name(&entry("etc/passwd").path), Some(entry("etc/passwd").path));
    }
}
