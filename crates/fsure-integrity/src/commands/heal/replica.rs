//! Replicas to heal from: folders or files that correspond to the path that is to be
//! healed. Nothing in them is believed without the record.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fsure_os::opener::Opener;
use fsure_os::path as os_path;
use fsure_os::read::ReadMode;
use fsure_os::root_dir::Root;
use fsure_os::{Kind, Stat};

use crate::model::HealSource;
use fsure_core::{Error, IoContext as _, RelPath, Result};

/// One replica.
pub(super) struct Replica {
    pub(super) origin: HealSource,
    opener: Opener,
    /// The path in the tree that the replica corresponds to: the one that is to be
    /// healed.
    scope: RelPath,
    /// Name of its only file; `None` if the replica is a folder.
    file: Option<Vec<u8>>,
}

impl Replica {
    /// Opens a replica of `scope`, which is the tree itself, a folder or a file
    /// below it.
    pub(super) fn open(
        path: &Path,
        tree: &Root,
        scope: &RelPath,
        scope_is_file: bool,
    ) -> Result<Self> {
        let origin = HealSource::Replica(os_path::bytes(path).into());
        let mut resolved = os_path::resolve(path).context("find", path)?;
        if os_path::dangling_link(&resolved).is_some() {
            return Err(Error::not_there(path.to_owned()));
        }
        if scope_is_file && os_path::is_folder(&resolved) {
            let none = || usage(path, &format!("has no file {}", scope.display()));
            resolved = file_in(&resolved, scope).ok_or_else(none)?;
        }
        let is_file = os_path::exists(&resolved) && !os_path::is_folder(&resolved);
        if is_file != scope_is_file {
            let (this, that) =
                if is_file { ("a file", "a folder") } else { ("a folder", "a file") };
            return Err(usage(path, &format!("is {this}, and what is to be healed is {that}")));
        }
        let folder: PathBuf = match is_file {
            true => resolved.parent().unwrap_or(&resolved).to_owned(),
            false => resolved.clone(),
        };
        let root = Root::open(&folder).context("open", path)?;
        let file = is_file.then(|| {
            let name = resolved.file_name().map(Path::new).unwrap_or(Path::new(""));
            os_path::bytes(name).into_owned()
        });
        let there = root.stat(file.as_deref().unwrap_or_default()).context("access", path)?;
        if tree.stat(scope.as_bytes()).is_ok_and(|here| is_same(&here, &there)) {
            return Err(usage(path, "is PATH itself, and not a copy of it"));
        }
        let opener = Opener::new(Arc::new(root), ReadMode::Direct);
        Ok(Self { origin, opener, scope: scope.clone(), file })
    }

    /// Its root folder.
    pub(super) fn root(&self) -> &Arc<Root> {
        self.opener.root()
    }

    pub(super) fn opener(&self) -> &Opener {
        &self.opener
    }

    /// Returns the path in the replica that corresponds to a path of the tree; `None`
    /// if it lies outside.
    pub(super) fn path_of(&self, path: &RelPath) -> Option<Vec<u8>> {
        if let Some(file) = &self.file {
            return (*path == self.scope).then(|| file.clone());
        }
        let within = Some(path).filter(|path| path.is_within(&self.scope))?;
        let rest = within.as_bytes().strip_prefix(self.scope.as_bytes())?;
        Some(rest.strip_prefix(b"/").unwrap_or(rest).to_owned())
    }
}

/// Returns the copy of a file in the folder of a copy: at the same path below it or, if it is a
/// copy of the folder that the file is in, under its name.
fn file_in(folder: &Path, file: &RelPath) -> Option<PathBuf> {
    let path = os_path::from_bytes(file.as_bytes());
    let name = PathBuf::from(path.file_name()?).into();
    let is_file = |path: &PathBuf| os_path::exists(path) && !os_path::is_folder(path);
    [path, name].into_iter().map(|path| folder.join(path)).find(is_file)
}

/// Returns true if two names stand for one file or folder, links and mounts aside.
pub(super) fn is_same(one: &Stat, other: &Stat) -> bool {
    one.device == other.device && one.inode == other.inode && one.kind != Kind::Special
}

fn usage(path: &Path, what: &str) -> Error {
    Error::Usage {
        message: format!("the replica {} {what}", path.display()),
        hint: Some(
            "'--from' takes a copy of the folder, with the same names below it, or of the file"
                .to_owned(),
        ),
    }
}
