//! The folder that every name of a list begins with. If the root has no such folder, the list is
//! about the files of another one, most often of the folder above: its names were taken there.

use std::path::Path;

use fsure_os::path as os_path;

use super::open_root::OpenRoot;
use crate::catalog::RootLocation;
use crate::manifest::ManifestSource;
use fsure_core::{RelPath, shell_quoted};

/// The first folder in the names of a list.
#[derive(Default)]
pub(super) enum ListFolder {
    /// No name was seen.
    #[default]
    Unknown,
    /// All names are in this folder.
    All(Vec<u8>),
    /// Names are in several folders, or in none.
    Several,
}

impl ListFolder {
    /// Takes a name of the list into account.
    pub(super) fn add(&mut self, path: &RelPath) {
        let bytes = path.as_bytes();
        let first = bytes.iter().position(|byte| *byte == b'/').map(|end| &bytes[..end]);
        *self = match (&self, first) {
            (Self::Several, _) | (_, None) => Self::Several,
            (Self::Unknown, Some(first)) => Self::All(first.to_vec()),
            (Self::All(folder), Some(first)) if folder == first => return,
            (Self::All(_), Some(_)) => Self::Several,
        };
    }

    /// Returns a warning if all names begin with a folder that is not at `place`; `command` makes
    /// the command for the folder above.
    pub(super) fn warning(
        &self,
        place: &RootLocation,
        open: &OpenRoot,
        source: &ManifestSource,
        command: &dyn Fn(&str, &str) -> String,
    ) -> Option<String> {
        let Self::All(folder) = self else { return None };
        if open.root.stat(place.scope.join(folder).as_bytes()).is_ok() {
            return None;
        }
        let asked = place.asked();
        let shown = RelPath::from_bytes(&**folder).display().to_string();
        let begins = format!("every name of the list begins with {shown}/");
        let above = asked.parent().filter(|_| {
            asked.file_name().is_some_and(|name| *os_path::bytes(Path::new(name)) == **folder)
        });
        Some(match above {
            Some(above) => {
                let above = shell_quoted(above);
                let begins = format!(
                    "{begins}, the name of this folder itself; its names are relative to the folder \
                     above"
                );
                match source.argument().as_str() {
                    "-" => format!("{begins}, {above}: name that, and send the list again"),
                    list => format!("{begins}: '{}'", command(list, &above)),
                }
            }
            None => format!(
                "{begins}, and there is no such folder in {}: the list is about the files of \
                 another folder",
                asked.display()
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(names: &[&str]) -> Option<Vec<u8>> {
        let mut folder = ListFolder::default();
        for name in names {
            folder.add(&RelPath::from_bytes(name.as_bytes()));
        }
        match folder {
            ListFolder::All(folder) => Some(folder),
            _ => None,
        }
    }

    #[test]
    fn one_folder_that_all_names_are_in_is_found() {
        assert_eq!(folder(&["a/b", "a/c", "a/d/e"]), Some(b"a".to_vec()));
        assert_eq!(folder(&["a/b", "ab/c"]), None);
        assert_eq!(folder(&["a/b", "a"]), None);
        assert_eq!(folder(&["a", "a/b"]), None);
        assert_eq!(folder(&[]), None);
    }
}
