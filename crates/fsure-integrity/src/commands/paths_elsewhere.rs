//! The absolute paths of a list that are not below the folder it is asked about: how many they
//! are, the first, and the folder that holds them.

use std::path::{Path, PathBuf};

use fsure_os::path as os_path;

use crate::manifest::{ManifestEntry, ManifestSource};
use fsure_core::{RelPath, count, shell_quoted};

/// The absolute paths of a list that are not below the folder it is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathsElsewhere {
    number: u64,
    /// Line and path of the first.
    first: (u64, RelPath),
    /// The folder that holds all of them, relative to `/`.
    folder: RelPath,
}

impl PathsElsewhere {
    /// With one path more.
    pub(super) fn with(before: Option<Self>, entry: &ManifestEntry) -> Self {
        let parent = entry.path.parent().unwrap_or_default();
        match before {
            None => Self { number: 1, first: (entry.line, entry.path.clone()), folder: parent },
            Some(mut all) => {
                all.number += 1;
                all.folder = common(all.folder, &parent);
                all
            }
        }
    }

    /// The same; their folder is one that holds the given one, too, if there is one beside `/`.
    pub(super) fn and_those_in(self, folder: &Path) -> Self {
        let bytes = os_path::bytes(folder);
        let folder = RelPath::from_bytes(bytes.strip_prefix(b"/").unwrap_or_default());
        let both = common(self.folder.clone(), &folder);
        Self { folder: if both.is_root() { self.folder } else { both }, ..self }
    }

    /// Returns a warning that names the first of them; `command` makes the command for a list and
    /// the folder that its files are in.
    pub(super) fn warning(
        &self,
        source: &ManifestSource,
        command: &dyn Fn(&str, &str) -> String,
    ) -> String {
        let (line, path) = &self.first;
        let (paths, they) = match self.number {
            1 => ("path is", "It is"),
            _ => ("paths are", "They are"),
        };
        let (list, here) = (source.label().display(), source.files_in().display());
        let folder = absolute(&self.folder);
        let advice = match os_path::is_folder(&folder) {
            _ if self.folder.is_root() => "Make a list for each folder".to_owned(),
            true => {
                let command = command(&source.argument(), &shell_quoted(&folder));
                format!("{they} below {}: '{command}'", folder.display())
            }
            false => format!(
                "{they} below {}, which is not there. If {here} has these files now, remove \
                 '{}/' from the lines of the list, so that its names are relative",
                folder.display(),
                folder.display()
            ),
        };
        format!(
            "{list}:{line}: /{} is not below {here}; {} absolute {paths} not used. {advice}",
            path.display(),
            count(self.number)
        )
    }
}

/// Returns the nearest folder that holds both.
fn common(mut folder: RelPath, other: &RelPath) -> RelPath {
    while !other.is_within(&folder) {
        folder = folder.parent().unwrap_or_default();
    }
    folder
}

fn absolute(path: &RelPath) -> PathBuf {
    Path::new("/").join(os_path::from_bytes(path.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str) -> ManifestEntry {
        let path = RelPath::from_bytes(path.as_bytes());
        ManifestEntry { path, is_absolute: true, ..ManifestEntry::default() }
    }

    #[test]
    fn the_folder_of_all_paths_is_found() {
        for (paths, folder) in [
            (&["a/b/c", "a/b/d"][..], "a/b"),
            (&["a/b/c", "a/bc/d"], "a"),
            (&["a/b/c", "d/e"], ""),
            (&["a"], ""),
        ] {
            let add = |all, path: &&str| Some(PathsElsewhere::with(all, &entry(path)));
            let all = paths.iter().fold(None, add).unwrap();
            assert_eq!(all.folder.as_text(), Some(folder), "{paths:?}");
            assert_eq!((all.number, all.first.1), (paths.len() as u64, entry(paths[0]).path));
        }
    }
}
