//! The requests that a drive of files answers.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use fsure_os::fuse_files::{
    Attributes, FreeSpace, FsResult, FuseDirEntry, FuseError, New, Ranging, Renaming, Setting,
    Sort, VirtualFs, When,
};

use super::pending_changes::{FileChange, InodeInfo};
use super::view::Inode;
use super::{Behavior, FileDrive, RunningSync};

/// Maximum bytes of a name, as on every file system that programs expect.
const NAME_MAX: usize = 255;
/// New things in a folder with this bit belong to its group.
const SET_GROUP: u32 = 0o2000;

impl FileDrive {
    fn inode(&self, inode: u64) -> FsResult<&Inode> {
        self.seen.get(inode).ok_or(FuseError::NotFound)
    }

    /// Returns a folder in which new names can be made.
    fn folder(&self, folder: u64) -> FsResult<&Inode> {
        let inode = self.inode(folder)?;
        match inode.sort {
            // Removed while a process was in it.
            Sort::Folder if inode.parent.is_none() && folder != super::ROOT => {
                Err(FuseError::NotFound)
            }
            Sort::Folder => Ok(inode),
            _ => Err(FuseError::NotAFolder),
        }
    }

    fn find(&self, (folder, name): (u64, &OsStr)) -> FsResult<u64> {
        self.folder(folder)?.names.get(name).copied().ok_or(FuseError::NotFound)
    }

    fn must_be_free(&self, (folder, name): (u64, &OsStr)) -> FsResult<()> {
        if name.len() > NAME_MAX {
            return Err(FuseError::NameTooLong);
        }
        match self.folder(folder)?.names.contains_key(name) {
            true => Err(FuseError::Exists),
            false => Ok(()),
        }
    }

    fn attributes_of(&self, inode: u64) -> FsResult<Attributes> {
        self.seen.attributes(inode).ok_or(FuseError::NotFound)
    }

    /// Grants a file a length, if there is space.
    fn resized(&mut self, inode: u64, size: u64) -> FsResult<()> {
        let file = self.inode(inode)?;
        if file.sort != Sort::File {
            return Err(if file.sort == Sort::Folder {
                FuseError::IsAFolder
            } else {
                FuseError::Invalid
            });
        }
        let others = self.used - file.size();
        if size > self.traits.space {
            return Err(FuseError::TooLarge);
        }
        if size > file.size() && others + size > self.traits.space {
            return Err(FuseError::NoRoom);
        }
        self.used = others + size;
        Ok(())
    }

    fn name(&mut self, now: Duration, names: Vec<((u64, &OsStr), Option<u64>)>) {
        let owned = |((folder, name), to): ((u64, &OsStr), _)| ((folder, name.to_owned()), to);
        self.counts.names += 1;
        self.take(now, FileChange::Names(names.into_iter().map(owned).collect()));
    }

    /// Returns an error if the inode cannot make way for something of the kind `sort`.
    fn may_replace(&self, there: u64, sort: Sort) -> FsResult<()> {
        let there = self.inode(there)?;
        match (sort, there.sort) {
            (Sort::Folder, Sort::Folder) if !there.names.is_empty() => Err(FuseError::NotEmpty),
            (Sort::Folder, Sort::Folder) => Ok(()),
            (Sort::Folder, _) => Err(FuseError::NotAFolder),
            (_, Sort::Folder) => Err(FuseError::IsAFolder),
            _ => Ok(()),
        }
    }
}

impl VirtualFs for FileDrive {
    fn look_up(&self, folder: u64, name: &OsStr) -> FsResult<Attributes> {
        self.attributes_of(self.find((folder, name))?)
    }

    fn attributes(&self, inode: u64) -> FsResult<Attributes> {
        self.attributes_of(inode)
    }

    fn set(&mut self, now: Duration, inode: u64, setting: &Setting) -> FsResult<Attributes> {
        if let Some(size) = setting.size {
            self.resized(inode, size)?;
            self.take(now, FileChange::Size { inode, size });
        }
        let (is, at) = (self.inode(inode)?, self.begun + now);
        let time = |when: Option<When>, was| match when {
            None => was,
            Some(When::Now) => at,
            Some(When::At(time)) => time,
        };
        if (Setting { size: None, ..*setting }) != Setting::default() {
            let set = InodeInfo {
                mode: setting.mode.unwrap_or(is.mode),
                uid: setting.uid.unwrap_or(is.uid),
                gid: setting.gid.unwrap_or(is.gid),
                accessed: time(setting.accessed, is.accessed),
                modified: time(setting.modified, is.modified),
            };
            self.take(now, FileChange::Set { inode, set });
        }
        self.attributes_of(inode)
    }

    fn make(&mut self, now: Duration, place: (u64, &OsStr), new: &New<'_>) -> FsResult<Attributes> {
        self.must_be_free(place)?;
        let parent = self.folder(place.0)?;
        let mut inode = Inode::new(new, self.begun + now);
        if parent.mode & SET_GROUP != 0 {
            inode.gid = parent.gid;
            inode.mode |= if new.sort == Sort::Folder { SET_GROUP } else { 0 };
        }
        let number = self.next_inode;
        self.next_inode += 1;
        // On the medium it waits for a name: that alone decides whether it is
        // there after a cut, empty, with the mode that it was made with.
        self.medium.add(number, inode.clone());
        self.used += inode.size();
        self.seen.add(number, inode);
        self.name(now, vec![(place, Some(number))]);
        self.attributes_of(number)
    }

    fn link(&mut self, now: Duration, inode: u64, place: (u64, &OsStr)) -> FsResult<Attributes> {
        if self.inode(inode)?.sort == Sort::Folder {
            return Err(FuseError::Invalid);
        }
        self.must_be_free(place)?;
        self.name(now, vec![(place, Some(inode))]);
        self.attributes_of(inode)
    }

    fn remove(&mut self, now: Duration, place: (u64, &OsStr), is_folder: bool) -> FsResult<()> {
        let inode = self.find(place)?;
        self.may_replace(inode, if is_folder { Sort::Folder } else { Sort::File })?;
        self.name(now, vec![(place, None)]);
        Ok(())
    }

    fn rename(
        &mut self,
        now: Duration,
        from: (u64, &OsStr),
        to: (u64, &OsStr),
        renaming: Renaming,
    ) -> FsResult<()> {
        let moved = self.find(from)?;
        let there = match self.must_be_free(to) {
            Ok(()) if renaming == Renaming::Exchange => return Err(FuseError::NotFound),
            Ok(()) => None,
            Err(FuseError::Exists) if renaming != Renaming::Refuse => Some(self.find(to)?),
            Err(refusal) => return Err(refusal),
        };
        // One inode with two names, or one name: nothing is to be done.
        if there == Some(moved) {
            return Ok(());
        }
        if let Some(there) = there.filter(|_| renaming == Renaming::Replace) {
            self.may_replace(there, self.inode(moved)?.sort)?;
        }
        let left = there.filter(|_| renaming == Renaming::Exchange);
        self.name(now, vec![(from, left), (to, Some(moved))]);
        Ok(())
    }

    fn target(&self, inode: u64) -> FsResult<OsString> {
        let inode = self.inode(inode)?;
        match inode.sort {
            Sort::Link => Ok(inode.target.clone()),
            _ => Err(FuseError::Invalid),
        }
    }

    fn read(&self, inode: u64, offset: u64, length: usize) -> FsResult<Vec<u8>> {
        let content = &self.inode(inode)?.content;
        let left = content.size().saturating_sub(offset);
        let mut data = vec![0; usize::try_from(left).map_or(length, |left| left.min(length))];
        if !data.is_empty() {
            content.read(offset, &mut data).ok_or(FuseError::Invalid)?;
        }
        Ok(data)
    }

    fn write(&mut self, now: Duration, inode: u64, offset: u64, data: &[u8]) -> FsResult<()> {
        self.may_fail()?;
        let end = offset.checked_add(data.len() as u64).ok_or(FuseError::TooLarge)?;
        self.resized(inode, end.max(self.inode(inode)?.size()))?;
        self.take(now, FileChange::Write { inode, offset, data: data.into() });
        self.counts.writes += 1;
        self.counts.bytes += data.len() as u64;
        Ok(())
    }

    fn range(
        &mut self,
        now: Duration,
        inode: u64,
        (offset, length): (u64, u64),
        ranging: Ranging,
    ) -> FsResult<()> {
        let size = self.inode(inode)?.size();
        match ranging {
            Ranging::Reserve => {
                let end = offset.checked_add(length).ok_or(FuseError::TooLarge)?;
                if end > size {
                    self.resized(inode, end)?;
                    self.take(now, FileChange::Size { inode, size: end });
                }
            }
            Ranging::Zero => self.take(now, FileChange::Zero { inode, offset, length }),
        }
        Ok(())
    }

    fn list(&self, folder: u64) -> FsResult<Vec<FuseDirEntry>> {
        let folder = self.inode(folder)?;
        if folder.sort != Sort::Folder {
            return Err(FuseError::NotAFolder);
        }
        let name = |(name, inode): (&OsString, &u64)| {
            let sort = self.seen.get(*inode)?.sort;
            Some(FuseDirEntry { inode: *inode, sort, name: name.clone() })
        };
        Ok(folder.names.iter().filter_map(name).collect())
    }

    fn sync(&mut self, now: Duration, inode: u64) -> FsResult<Duration> {
        self.inode(inode)?;
        self.persist_due(now);
        self.epoch += 1;
        self.counts.syncs += 1;
        let due = match self.traits.behavior {
            Behavior::Honest => None,
            Behavior::Protected | Behavior::Lying { .. } => return Ok(Duration::ZERO),
            Behavior::Defer { longest } => {
                let then = self.synced_at.filter(|then| now - *then < longest);
                then.map(|then| then + longest)
            }
        };
        if let Some(due) = due {
            self.deferred.insert(inode);
            self.sync_due.get_or_insert(due);
            return Ok(Duration::ZERO);
        }
        let took = self.traits.latency.of_flush(self.pending.content_bytes(inode));
        self.synced_at = Some(now);
        self.syncs.push(RunningSync {
            inode,
            is_folder: self.is_folder(inode),
            begun: now,
            ends: now + took,
        });
        self.persist_due(now);
        Ok(took)
    }

    fn forget(&mut self, inode: u64) {
        let is_gone = self.seen.get(inode).is_some_and(|inode| inode.links == 0);
        if is_gone && inode != super::ROOT {
            let gone = self.seen.drop_inode(inode);
            self.used -= gone.map_or(0, |inode| inode.size());
            self.bury(inode);
        }
    }

    fn free_space(&self) -> FreeSpace {
        let free = self.traits.space.saturating_sub(self.used);
        FreeSpace { bytes: self.traits.space, free, inodes: self.seen.count() as u64 }
    }
}
