//! What the RAM side has now: all of it, or the folders in which something changed.

use std::collections::{BTreeMap, BTreeSet};

use fsure_os::folder::{is_denied, is_gone};
use fsure_os::mirror::{Facts, Kind, Side};

use super::journal::path_of;
use super::own::is_own;
use crate::words::{IoContext as _, RelPath, Result};

/// What may have changed since it was last asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Changes {
    /// Anything.
    #[default]
    Unknown,
    /// Names in these folders, and what the names stand for. What is below one that
    /// is not new is only looked at where it is here itself.
    Folders(BTreeSet<RelPath>),
}

/// Names, and the folders that were listed to find them.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) folders: BTreeSet<RelPath>,
    pub(super) names: BTreeMap<RelPath, Facts>,
    /// Folders that we may not list: what is in them is as it was.
    pub(super) denied: BTreeSet<RelPath>,
    /// Whether there is something by our own name.
    pub(super) has_own: bool,
}

/// Everything on a side, without what is ours.
pub(super) fn everything(side: &Side) -> Result<Seen> {
    let mut seen = Seen::default();
    let root = RelPath::root();
    let facts = side.facts(b"").doing("look at", path_of(&root).as_ref())?;
    seen.names.insert(root.clone(), facts);
    seen.list(side, root, &|_, _| true)?;
    Ok(seen)
}

/// What has changed. `inode_of` knows the folders of the last time.
pub(super) fn look(
    side: &Side,
    changes: &Changes,
    inode_of: &dyn Fn(&RelPath) -> Option<u64>,
) -> Result<Seen> {
    let Changes::Folders(folders) = changes else { return everything(side) };
    let mut seen = Seen::default();
    let is_new = |path: &RelPath, facts: &Facts| inode_of(path) != Some(facts.inode);
    for folder in folders {
        // What is by our own name is none of it, and the top folder has that name or not.
        let mut folder = if is_own(folder) { RelPath::root() } else { folder.clone() };
        // One that is gone is a change of the folder it was in.
        let facts = loop {
            match side.facts(folder.as_bytes()) {
                Err(error) if is_gone(&error) && !folder.is_root() => {
                    folder = folder.parent().unwrap_or_default();
                }
                other => break other.doing("look at", path_of(&folder).as_ref())?,
            }
        };
        if facts.kind == Kind::Folder {
            seen.names.insert(folder.clone(), facts);
            seen.list(side, folder, &is_new)?;
        }
    }
    Ok(seen)
}

impl Seen {
    /// Lists a folder, and those in it that `enters` is true of.
    fn list(
        &mut self,
        side: &Side,
        folder: RelPath,
        enters: &dyn Fn(&RelPath, &Facts) -> bool,
    ) -> Result<()> {
        let mut waiting = vec![folder];
        while let Some(folder) = waiting.pop() {
            if self.folders.contains(&folder) {
                continue;
            }
            let names = match side.list(folder.as_bytes()) {
                // Its own folder is looked at again: it changed.
                Err(error) if is_gone(&error) && !folder.is_root() => continue,
                Err(error) if is_denied(&error) && !folder.is_root() => {
                    self.denied.insert(folder);
                    continue;
                }
                other => other.doing("list", path_of(&folder).as_ref())?,
            };
            for (name, facts) in names {
                let path = folder.join(&name);
                if is_own(&path) {
                    self.has_own = true;
                    continue;
                }
                if facts.kind == Kind::Folder && enters(&path, &facts) {
                    waiting.push(path.clone());
                }
                self.names.insert(path, facts);
            }
            self.folders.insert(folder);
        }
        Ok(())
    }
}
