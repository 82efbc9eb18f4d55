//! Finds the catalog of a path: that of the nearest root above it, as git does.

use std::io;
use std::path::{Path, PathBuf};

use fsure_os::path as os_path;

use super::own_names::{OWN_CATALOG, OWN_FOLDER, RECOVERED};
use super::reject_special_files::refuse_irregular;
use crate::model::Scopes;
use fsure_core::{Error, IoContext as _, RelPath, Result, shell_quoted};

/// A root, its catalog, and the part of it that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootLocation {
    /// The root folder, absolute.
    pub root: PathBuf,
    /// The catalog's file; it might not exist yet.
    pub catalog: PathBuf,
    /// The requested part: the root itself, or a folder or file below it.
    pub scope: RelPath,
    /// The requested parts of that, if they are a selection; `None` for all of it.
    pub parts: Option<Scopes>,
}

impl RootLocation {
    /// The parts of the root that a run over it is for.
    pub fn scopes(&self) -> Scopes {
        self.parts.clone().unwrap_or_else(|| Scopes::one(self.scope.clone()))
    }

    /// True if there is a catalog, or what is left of one.
    pub fn is_recorded(&self) -> bool {
        is_recorded(&self.catalog)
    }

    /// Returns true if the catalog lies in the root and so travels with its copies.
    pub fn is_inside(&self) -> bool {
        self.catalog == self.root.join(OWN_CATALOG)
    }

    /// `fsure NAME` for what was asked for, as it works in any folder.
    pub fn command(&self, name: &str) -> String {
        // A folder that is held against a list has no catalog.
        if !self.is_inside() && !self.catalog.as_os_str().is_empty() {
            let (root, catalog) = (shell_quoted(&self.root), shell_quoted(&self.catalog));
            return format!("fsure {name} {root} --catalog {catalog}");
        }
        format!("fsure {name} {}", shell_quoted(&self.asked()))
    }

    /// The path that was asked for: the root, or what `scope` names in it.
    pub fn asked(&self) -> PathBuf {
        match self.scope.is_root() {
            true => self.root.clone(),
            false => self.root.join(os_path::from_bytes(self.scope.as_bytes())),
        }
    }
}

/// Name endings of the files that remain of a catalog that is gone: its backup, and the
/// file that an interrupted `recover` has put together.
const LEFT: [&str; 2] = [".backup", RECOVERED];

/// Returns true if a catalog is gone of which something is left. It is a damaged record, and
/// not a folder that was never recorded.
pub(super) fn is_lost(catalog: &Path) -> bool {
    !catalog.as_os_str().is_empty()
        && !os_path::exists(catalog)
        && LEFT.iter().any(|end| os_path::exists(&os_path::with_suffix(catalog, end)))
}

/// Returns true if there is a catalog, or what is left of one.
pub fn is_recorded(catalog: &Path) -> bool {
    os_path::exists(catalog) || is_lost(catalog)
}

/// Finds the root of a path. With `catalog`, a file kept elsewhere, the path
/// itself is the root.
///
/// If there is no catalog, a folder is taken as a root to be; anything else
/// is [`Error::NoRecord`] or, if it does not exist, [`Error::NotThere`].
pub fn locate(path: &Path, catalog: Option<&Path>) -> Result<RootLocation> {
    let asked = os_path::resolve(path).context("find", path)?;
    if let Some(catalog) = catalog {
        let catalog = os_path::without_links(catalog).context("find", catalog)?;
        if !os_path::exists(&asked) && is_recorded(&catalog) {
            return Err(Error::root_not_there(path.to_owned()));
        }
        return folder_at(
            path,
            asked,
            catalog,
            "with '--catalog FILE', PATH must be the root folder",
        );
    }
    for root in asked.ancestors() {
        let catalog = root.join(OWN_CATALOG);
        require_searchable(&catalog)?;
        if is_recorded(&catalog) {
            refuse_irregular(&catalog)?;
            let scope = below(root, &asked);
            if scope.is_within(&RelPath::from_bytes(OWN_FOLDER.as_bytes())) {
                return Err(Error::Usage {
                    message: format!("{} belongs to fsure itself", asked.display()),
                    hint: None,
                });
            }
            return Ok(RootLocation { root: root.to_owned(), catalog, scope, parts: None });
        }
    }
    if !os_path::exists(&asked) {
        return Err(Error::not_there(path.to_owned()));
    }
    if os_path::is_link(&asked) && !os_path::is_folder(&asked) {
        let target = os_path::dangling_link(&asked);
        let target = target.map_or_else(|| os_path::without_links(&asked), Ok);
        let target = target.context("find", &asked)?;
        return Err(Error::LinkNotRecorded { path: asked, target });
    }
    if !os_path::is_folder(&asked) {
        let folder = asked.parent().unwrap_or(&asked).to_owned();
        return Err(Error::NoRecord { path: asked, folder });
    }
    let catalog = asked.join(OWN_CATALOG);
    refuse_irregular(&catalog)?;
    Ok(RootLocation { root: asked, catalog, scope: RelPath::root(), parts: None })
}

/// Refuses a folder that the user may not look into: if there is a record cannot be known.
fn require_searchable(catalog: &Path) -> Result<()> {
    match os_path::kind(catalog) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let own_folder = catalog.parent().unwrap_or(catalog);
            // The root itself is closed if even its folder of fsure cannot be looked at.
            let closed = match os_path::kind(own_folder) {
                Ok(_) => own_folder,
                Err(_) => own_folder.parent().unwrap_or(own_folder),
            };
            Err(error).context("open", closed)
        }
        _ => Ok(()),
    }
}

/// Finds the record of a root as [`locate`] does, for a run that reads no file: with a catalog
/// that is kept elsewhere, the root may be on a disk that is not mounted.
pub fn locate_record(path: &Path, catalog: Option<&Path>) -> Result<RootLocation> {
    let Some(catalog) = catalog else { return locate(path, None) };
    let root = os_path::resolve(path).context("find", path)?;
    let file = os_path::without_links(catalog).context("find", catalog)?;
    match os_path::kind(&root) {
        Ok(None) if is_recorded(&file) => {
            Ok(RootLocation { root, catalog: file, scope: RelPath::root(), parts: None })
        }
        _ => locate(path, Some(catalog)),
    }
}

/// A folder whose own record, if it has one, plays no part: what it is held against is a
/// list, and its place has no catalog.
pub fn locate_folder(path: &Path) -> Result<RootLocation> {
    let asked = os_path::resolve(path).context("find", path)?;
    let hint = "a list names the files below a folder: give that folder as PATH";
    folder_at(path, asked, PathBuf::new(), hint)
}

fn folder_at(given: &Path, asked: PathBuf, catalog: PathBuf, hint: &str) -> Result<RootLocation> {
    if !os_path::exists(&asked) {
        return Err(Error::not_there(given.to_owned()));
    }
    if !os_path::is_folder(&asked) {
        return Err(Error::not_a_folder(given, hint));
    }
    Ok(RootLocation { root: asked, catalog, scope: RelPath::root(), parts: None })
}

fn below(root: &Path, asked: &Path) -> RelPath {
    let rest = asked.strip_prefix(root).expect("an ancestor is a prefix");
    RelPath::from_bytes(os_path::bytes(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_root_above_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let base = os_path::resolve(folder.path()).unwrap();
        for path in ["outer/.fsure", "outer/a/inner/.fsure", "outer/a/inner/deep"] {
            std::fs::create_dir_all(base.join(path)).unwrap();
        }
        for root in ["outer", "outer/a/inner"] {
            std::fs::write(base.join(root).join(OWN_CATALOG), "x").unwrap();
        }
        for (asked, root, scope) in [
            ("outer", "outer", ""),
            ("outer/a", "outer", "a"),
            ("outer/a/gone", "outer", "a/gone"),
            ("outer/a/inner", "outer/a/inner", ""),
            ("outer/a/inner/deep", "outer/a/inner", "deep"),
        ] {
            let place = locate(&base.join(asked), None).unwrap();
            assert_eq!(place.root, base.join(root), "{asked}");
            assert_eq!(place.scope.as_text(), Some(scope), "{asked}");
            assert!(place.is_inside());
        }
        assert!(matches!(locate(&base.join("none"), None), Err(Error::NotThere { .. })));
        assert!(!locate(&base, None).unwrap().is_recorded());
    }
}
