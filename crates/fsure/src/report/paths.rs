//! Paths of one root as they can be typed where the command was called, and the
//! commands that a report advises: a finding is of use if it can be copied into
//! the next command line.

use std::path::{Path, PathBuf};

use fsure_core::{RelPath, escape, shell_quoted};
use fsure_integrity::catalog::RootLocation;
use fsure_integrity::model::Allowed;

/// The names that a report gives to files of one root.
#[derive(Clone, Debug)]
pub struct RootPaths {
    root: PathBuf,
    /// The part of the root that the command was called for.
    scope: RelPath,
    /// The catalog's file, if a command has to name it.
    catalog: Option<PathBuf>,
    /// The folder that the command was called in.
    working_folder: Option<PathBuf>,
    /// The option of a heal that names a list of paths.
    list: Option<String>,
}

/// A command with the options that let it go on in some states of the root.
pub(super) fn allowing(command: String, allowed: Allowed) -> String {
    allowed.options().fold(command, |command, option| format!("{command} {option}"))
}

/// A link that a command was called for.
#[derive(Clone, Debug)]
pub(super) struct RootLink {
    /// The link, safe on a terminal.
    pub(super) shown: String,
    pub(super) end: LinkEnd,
}

/// The end that a link leads to, safe on a terminal.
#[derive(Clone, Debug)]
pub(super) enum LinkEnd {
    /// The command that verifies a file or folder of the same root.
    Recorded(String),
    /// A path outside of the root.
    Elsewhere(String),
    /// A path of which there is no file.
    Nowhere(String),
}

impl RootPaths {
    /// Paths of a root for a command that was called in `working_folder`;
    /// without one they are all absolute.
    pub fn of(place: &RootLocation, working_folder: Option<&Path>) -> Self {
        let is_elsewhere = !place.is_inside() && !place.catalog.as_os_str().is_empty();
        Self {
            root: place.root.clone(),
            scope: place.scope.clone(),
            catalog: is_elsewhere.then(|| place.catalog.clone()),
            // A service runs in `/`, and its report is read elsewhere.
            working_folder: working_folder
                .filter(|folder| folder.parent().is_some())
                .map(Path::to_owned),
            list: None,
        }
    }

    /// Absolute paths of a root folder.
    pub fn at(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            scope: RelPath::root(),
            catalog: None,
            working_folder: None,
            list: None,
        }
    }

    /// Paths of a root folder that is the working folder.
    #[cfg(test)]
    pub(super) fn in_root() -> Self {
        Self { working_folder: Some(PathBuf::from("/r")), ..Self::at(Path::new("/r")) }
    }

    /// The same for a heal of a list of paths: another one is advised with the list.
    pub fn with_list(self, list: Option<String>) -> Self {
        Self { list, ..self }
    }

    /// The root folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A path in the root, safe on a terminal: relative to the working folder if
    /// it is below that, else absolute.
    pub fn shown(&self, path: &RelPath) -> String {
        escape(&fsure_os::path::bytes(&self.typed(path)))
    }

    /// The exact bytes of a path in the root, relative to the working folder if it is below
    /// that, else absolute.
    pub fn typed_bytes(&self, path: &RelPath) -> Vec<u8> {
        fsure_os::path::bytes(&self.typed(path)).into_owned()
    }

    /// The part of the root that the command was called for.
    pub fn shown_scope(&self) -> String {
        self.shown(&self.scope)
    }

    /// The absolute path of that part, and the root whose record it is judged by if that is
    /// another folder.
    pub fn heading(&self) -> String {
        let root = escape(&fsure_os::path::bytes(&self.root));
        if self.scope.is_root() {
            return root;
        }
        let part = self.root.join(fsure_os::path::from_bytes(self.scope.as_bytes()));
        format!("{}, in the record of {root}", escape(&fsure_os::path::bytes(&part)))
    }

    /// `fsure NAME` for what this command was called for.
    pub fn command(&self, name: &str) -> String {
        let command = self.command_on(name, &self.scope);
        match &self.list {
            Some(list) if name == "heal" => format!("{command} {list}"),
            _ => command,
        }
    }

    /// `fsure NAME` for a path in the root.
    pub fn command_on(&self, name: &str, path: &RelPath) -> String {
        // Beside a catalog kept elsewhere, PATH is the root.
        let path = if self.catalog.is_some() { &RelPath::root() } else { path };
        let catalog = self.catalog();
        let catalog = catalog.map_or(String::new(), |catalog| format!(" --catalog {catalog}"));
        format!("fsure {name} {}{catalog}", shell_quoted(&self.typed(path)))
    }

    /// `fsure NAME` with the options that let it go on in some states of the root.
    pub fn command_allowing(&self, name: &str, allowed: Allowed) -> String {
        allowing(self.command(name), allowed)
    }

    /// The command that records what is found at a path.
    pub fn accept(&self, path: &RelPath) -> String {
        format!("{} --accept {}", self.command("update"), shell_quoted(&self.typed(path)))
    }

    /// The link that the command was called for; `None` if it was called for anything else.
    pub(super) fn link(&self) -> Option<RootLink> {
        let link = self.root.join(fsure_os::path::from_bytes(self.scope.as_bytes()));
        if !fsure_os::path::is_link(&link) {
            return None;
        }
        let shown = |path: &Path| escape(&fsure_os::path::bytes(path));
        let end = match (fsure_os::path::dangling_link(&link), fsure_os::path::without_links(&link))
        {
            (None, Ok(end)) => match end.strip_prefix(&self.root) {
                Ok(below) => {
                    let below = RelPath::from_bytes(&*fsure_os::path::bytes(below));
                    LinkEnd::Recorded(self.command_on("verify", &below))
                }
                Err(_) => LinkEnd::Elsewhere(shown(&end)),
            },
            (target, _) => LinkEnd::Nowhere(shown(&target.unwrap_or(link))),
        };
        Some(RootLink { shown: self.shown(&self.scope), end })
    }

    /// The catalog's file as a word of a command line, if a command has to name it.
    pub(super) fn catalog(&self) -> Option<String> {
        let catalog = self.catalog.clone()?;
        Some(shell_quoted(&self.near_working_folder(catalog)))
    }

    fn typed(&self, path: &RelPath) -> PathBuf {
        let path = match path.is_root() {
            true => self.root.clone(),
            false => self.root.join(fsure_os::path::from_bytes(path.as_bytes())),
        };
        self.near_working_folder(path)
    }

    fn near_working_folder(&self, path: PathBuf) -> PathBuf {
        let folder = self.working_folder.as_deref();
        match folder.and_then(|folder| path.strip_prefix(folder).ok()) {
            None => path,
            Some(rest) if rest.as_os_str().is_empty() => PathBuf::from("."),
            // A command would take it for an option.
            Some(rest) if fsure_os::path::bytes(rest).starts_with(b"-") => {
                Path::new(".").join(rest)
            }
            Some(rest) => rest.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fsure_integrity::catalog::OWN_CATALOG;

    fn paths(scope: &str, catalog: &str, working_folder: &str) -> RootPaths {
        let root = Path::new("/srv/my photos");
        let catalog = if catalog.is_empty() { root.join(OWN_CATALOG) } else { catalog.into() };
        let scope = RelPath::from_bytes(scope.as_bytes());
        let place = RootLocation { root: root.to_owned(), catalog, scope, parts: None };
        RootPaths::of(&place, Some(Path::new(working_folder)))
    }

    #[test]
    fn a_path_works_from_where_the_command_was_called() {
        for (working_folder, path, shown) in [
            ("/srv", "a\n", "my photos/a\\n"),
            ("/srv/my photos", "a", "a"),
            ("/srv/my photos", "", "."),
            ("/srv/my photos", "-a", "./-a"),
            ("/srv/my photos/2026", "2026/a", "a"),
            ("/srv/my photos/2026", "b", "/srv/my photos/b"),
            ("/srv/my", "a", "/srv/my photos/a"),
            ("/", "a", "/srv/my photos/a"),
        ] {
            let path = RelPath::from_bytes(path.as_bytes());
            assert_eq!(paths("", "", working_folder).shown(&path), shown, "{working_folder}");
        }
    }

    #[test]
    fn a_command_is_whole() {
        let path = RelPath::from_bytes(*b"it's");
        assert_eq!(
            paths("2026", "", "/srv").accept(&path),
            r"fsure update 'my photos/2026' --accept 'my photos/it'\''s'"
        );
        assert_eq!(
            paths("", "/srv/c.db", "/srv").command("update"),
            "fsure update 'my photos' --catalog c.db"
        );
        assert_eq!(
            paths("", "", "/srv/my photos").command_on("verify", &path),
            r"fsure verify 'it'\''s'"
        );
    }
}
