//! The borders of a walk, and the reasons why something is left out of it.

use std::io;

use fsure_os::physical_order::LocateFiles;
use fsure_os::root_dir::Root;
use fsure_os::{Kind, Stat};

use crate::model::is_carrier;
use fsure_core::RelPath;

/// Reason why something is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExcludeReason {
    /// `--exclude` says so.
    CommandLine,
    /// A pattern in a file says so.
    Pattern,
    /// It is on another file system.
    OtherFileSystem,
    /// Another folder of the same file system is mounted over the recorded one.
    OtherMount,
    /// It is a root with a catalog of its own.
    NestedRoot,
}

/// The borders of the tree.
#[derive(Clone, Debug, Default)]
pub struct WalkBounds {
    /// True if other file systems are part of the tree.
    pub cross_file_systems: bool,
    /// Recorded folders over which another one is mounted.
    pub mounted_over: Vec<RelPath>,
    /// Paths that belong to fsure itself and are never reported, besides carriers.
    pub own: Vec<RelPath>,
    /// Selects whether to find out where the files lie on the disk.
    pub places: LocateFiles,
    /// The catalog's place in a root: a folder that has one is a root itself.
    pub catalog_in_root: &'static str,
}

impl WalkBounds {
    /// Returns true if a name belongs to fsure itself. Only a file can be a carrier:
    /// anything else of such a name belongs to the user, and a whole folder might be
    /// hidden by it.
    pub(super) fn is_own(&self, folder: &RelPath, name: &[u8], stat: &io::Result<Stat>) -> bool {
        let may_be_carrier = || stat.as_ref().is_ok_and(|stat| stat.kind == Kind::File);
        is_carrier(name) && may_be_carrier() || self.own.iter().any(|own| own.equals(folder, name))
    }

    /// Returns true if a path that a walk is to begin at belongs to fsure itself.
    pub(super) fn is_own_scope(&self, scope: &RelPath, stat: &Stat) -> bool {
        is_carrier(scope.name()) && stat.kind == Kind::File
            || self.own.iter().any(|own| scope.is_within(own))
    }

    /// Says why the tree ends at a name in a folder on `device`, if it does.
    pub(super) fn stops_at(
        &self,
        stat: &Stat,
        device: u64,
        path: &dyn Fn() -> RelPath,
    ) -> Option<ExcludeReason> {
        if stat.kind != Kind::Folder {
            return None;
        }
        if !self.cross_file_systems && stat.device != device {
            return Some(ExcludeReason::OtherFileSystem);
        }
        let is_over = !self.mounted_over.is_empty() && self.mounted_over.contains(&path());
        is_over.then_some(ExcludeReason::OtherMount)
    }

    pub(super) fn is_nested_root(
        &self,
        root: &Root,
        folder: &RelPath,
        has_name: &dyn Fn(&[u8]) -> bool,
    ) -> bool {
        let first = self.catalog_in_root.split('/').next().unwrap_or_default();
        // A catalog that is gone while its backup is there is a damaged one.
        let has = |end: &str| {
            let name = [self.catalog_in_root, end].concat();
            root.stat(folder.join(name.as_bytes()).as_bytes()).is_ok()
        };
        has_name(first.as_bytes()) && (has("") || has(".backup"))
    }
}
