//! One view of a file system: what is in it, and nothing of what is to come.
//! There are two of them, what programs see and what a cut leaves; copies share
//! what they have in common.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::time::SystemTime;

use fsure_os::fuse_files::{Attributes, New, ROOT, Sort};

use super::super::Image;

/// An inode.
#[derive(Clone, Debug)]
pub(super) struct Inode {
    pub(super) sort: Sort,
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) accessed: SystemTime,
    pub(super) modified: SystemTime,
    pub(super) changed: SystemTime,
    /// The names that it has here.
    pub(super) links: u32,
    /// Of a file.
    pub(super) content: Image,
    /// Of a folder.
    pub(super) names: BTreeMap<OsString, u64>,
    /// The only name that a folder has.
    pub(super) parent: Option<(u64, OsString)>,
    /// Of a link.
    pub(super) target: OsString,
}

impl Inode {
    pub(super) fn new(new: &New<'_>, at: SystemTime) -> Self {
        Self {
            sort: new.sort,
            mode: new.mode,
            uid: new.uid,
            gid: new.gid,
            accessed: at,
            modified: at,
            changed: at,
            links: 0,
            content: Image::new(0),
            names: BTreeMap::new(),
            parent: None,
            target: new.target.to_owned(),
        }
    }

    pub(super) fn size(&self) -> u64 {
        match self.sort {
            Sort::Link => self.target.len() as u64,
            _ => self.content.size(),
        }
    }
}

/// All of them. An inode without a name is not gone: it may be open, or get its
/// name by a change to come.
#[derive(Clone, Debug, Default)]
pub(super) struct FileTree(BTreeMap<u64, Arc<Inode>>);

impl FileTree {
    pub(super) fn get(&self, inode: u64) -> Option<&Inode> {
        Some(self.0.get(&inode)?)
    }

    pub(super) fn get_mut(&mut self, inode: u64) -> Option<&mut Inode> {
        Some(Arc::make_mut(self.0.get_mut(&inode)?))
    }

    pub(super) fn add(&mut self, number: u64, inode: Inode) {
        self.0.insert(number, Arc::new(inode));
    }

    pub(super) fn drop_inode(&mut self, inode: u64) -> Option<Arc<Inode>> {
        self.0.remove(&inode)
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn last(&self) -> u64 {
        self.0.keys().next_back().copied().unwrap_or(ROOT)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.0.values().map(|inode| inode.size()).sum()
    }

    /// Has a name stand for something, or for nothing. Returns what it stood for.
    /// A folder has one name: it loses the one that it had.
    pub(super) fn name(
        &mut self,
        (folder, name): (u64, &OsStr),
        target: Option<u64>,
        at: SystemTime,
    ) -> Option<u64> {
        let target = target.filter(|target| self.get(*target).is_some());
        let former = target.and_then(|target| self.get(target)?.parent.clone());
        if let Some((former, old)) = former {
            self.name((former, &old), None, at);
        }
        let parent = self.get_mut(folder)?;
        (parent.modified, parent.changed) = (at, at);
        let before = match target {
            Some(target) => parent.names.insert(name.to_owned(), target),
            None => parent.names.remove(name),
        };
        if let Some(before) = before.and_then(|before| self.get_mut(before)) {
            before.links -= 1;
            before.parent = None;
        }
        if let Some(inode) = target.and_then(|target| self.get_mut(target)) {
            inode.links += 1;
            if inode.sort == Sort::Folder {
                inode.parent = Some((folder, name.to_owned()));
            }
        }
        before
    }

    /// Only what has a name that leads to it from the top.
    pub(super) fn reachable(&self) -> Self {
        let (mut found, mut folders) = (BTreeMap::new(), vec![ROOT]);
        let mut links = BTreeMap::<u64, u32>::new();
        while let Some(number) = folders.pop() {
            let Some(inode) = self.0.get(&number) else { continue };
            if found.insert(number, Arc::clone(inode)).is_none() {
                folders.extend(inode.names.values());
                inode.names.values().for_each(|inode| *links.entry(*inode).or_default() += 1);
            }
        }
        // Names in folders that nothing leads to are gone.
        for (number, inode) in &mut found {
            let links = links.get(number).copied().unwrap_or(0);
            if inode.links != links {
                Arc::make_mut(inode).links = links;
            }
        }
        Self(found)
    }

    pub(super) fn attributes(&self, number: u64) -> Option<Attributes> {
        let inode = self.get(number)?;
        Some(Attributes {
            inode: number,
            sort: inode.sort,
            size: inode.size(),
            mode: inode.mode,
            // As of btrfs: the folders in a folder are not counted.
            links: if inode.sort == Sort::Folder { 1 } else { inode.links },
            uid: inode.uid,
            gid: inode.gid,
            accessed: inode.accessed,
            modified: inode.modified,
            changed: inode.changed,
        })
    }
}
