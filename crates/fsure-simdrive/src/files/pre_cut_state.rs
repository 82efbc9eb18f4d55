//! The circumstances of a cut, kept to find out afterwards which sync was missing:
//! the same cut with one more file or folder synced before it leaves another state, and
//! where that is whole, the sync is what the program has left out.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use fsure_os::fuse_files::ROOT;

use super::pending_changes::{FileChange, PendingChange};
use super::{CutVariant, FileDrive};
use fsure_core::Random;

/// A drive as it was when it was cut, and how it was.
#[derive(Clone, Debug)]
pub struct PreCutState {
    pub(super) drive: FileDrive,
    pub(super) now: Duration,
    pub(super) cut: CutVariant,
    pub(super) random: Random,
}

/// A file or a folder of which a cut has taken something that no sync had covered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsynced {
    /// Its number.
    pub inode: u64,
    /// Its path from the top, which is empty.
    pub path: PathBuf,
    /// True for a folder.
    pub is_folder: bool,
    /// Names in it that were given, changed or removed.
    pub names: BTreeSet<OsString>,
}

impl PreCutState {
    /// Returns what the same cut leaves, had these been synced just before it.
    pub fn with_syncs(&self, synced: &BTreeSet<u64>) -> FileDrive {
        self.drive.left(self.now, self.cut, &mut self.random.clone(), synced)
    }

    /// Lists all that has a path and of which the cut has taken something, in the order in which
    /// that was done. With all of them synced, everything is there.
    pub fn unsynced(&self) -> Vec<Unsynced> {
        let waiting = self.drive.pending.in_order();
        let survives = self.drive.survivors(&waiting, self.cut, &mut self.random.clone());
        let is_whole =
            |waiting: &PendingChange| self.drive.torn_sector_bytes(waiting, self.cut).is_none();
        let lost = waiting.iter().zip(survives);
        let lost = lost.filter(|(waiting, survives)| !survives || !is_whole(waiting));
        let mut found: Vec<Unsynced> = Vec::new();
        let paths = self.paths();
        let mut add = |inode: u64, name: Option<&OsString>| {
            // No check misses what was removed meanwhile.
            let Some(path) = paths.get(&inode) else { return };
            let place = found.iter().position(|one| one.inode == inode).unwrap_or_else(|| {
                let is_folder = self.drive.is_folder(inode);
                let (path, names) = (path.clone(), BTreeSet::new());
                found.push(Unsynced { inode, path, is_folder, names });
                found.len() - 1
            });
            found[place].names.extend(name.cloned());
        };
        for (waiting, _) in lost {
            match &waiting.change {
                FileChange::Names(names) => {
                    // A sync of either folder makes a rename durable: of that to which it
                    // leads, unless it was removed since.
                    let there = || names.iter().filter(|((at, _), _)| paths.contains_key(at));
                    let given = there().find(|(_, to)| to.is_some());
                    if let Some(((folder, name), _)) = given.or(there().next()) {
                        add(*folder, Some(name));
                    }
                }
                FileChange::Write { inode, .. }
                | FileChange::Zero { inode, .. }
                | FileChange::Size { inode, .. }
                | FileChange::Set { inode, .. } => add(*inode, None),
            }
        }
        for one in &mut found {
            self.leave_out_passing_names(one);
        }
        found
    }

    /// Leaves out names that are not there any more, such as those of drafts, where there
    /// are others.
    fn leave_out_passing_names(&self, one: &mut Unsynced) {
        let Some(folder) = self.drive.seen.get(one.inode) else { return };
        if one.names.iter().any(|name| folder.names.contains_key(name)) {
            one.names.retain(|name| folder.names.contains_key(name));
        }
    }

    /// The path of each inode that has one.
    fn paths(&self) -> BTreeMap<u64, PathBuf> {
        let mut paths = BTreeMap::from([(ROOT, PathBuf::new())]);
        let mut folders = vec![(ROOT, PathBuf::new())];
        while let Some((folder, path)) = folders.pop() {
            let Some(inode) = self.drive.seen.get(folder) else { continue };
            for (name, inode) in &inode.names {
                paths.insert(*inode, path.join(name));
                folders.push((*inode, path.join(name)));
            }
        }
        paths
    }
}
