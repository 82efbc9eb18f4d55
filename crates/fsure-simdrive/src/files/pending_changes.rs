//! Changes of a file system. Those of one inode's content are in order among themselves,
//! and so are those of names. There is no order between content and names, nor between
//! the content of two files.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ffi::OsString;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::view::FileTree;
use fsure_core::Random;

/// Bytes of memory for a name, besides its letters.
const NAME: usize = 64;

/// A name in a folder.
pub(super) type DirEntryName = (u64, OsString);

/// A change.
#[derive(Clone, Debug)]
pub(super) enum FileChange {
    /// Bytes of a file.
    Write { inode: u64, offset: u64, data: Arc<[u8]> },
    /// A range of a file that reads as zero.
    Zero { inode: u64, offset: u64, length: u64 },
    /// The length of a file.
    Size { inode: u64, size: u64 },
    /// Mode, owner and times.
    Set { inode: u64, set: InodeInfo },
    /// New inodes of names, changed atomically: a rename has two names. `None` removes a
    /// name.
    Names(Vec<(DirEntryName, Option<u64>)>),
}

/// Attributes of an inode, without its content.
#[derive(Clone, Copy, Debug)]
pub(super) struct InodeInfo {
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) accessed: SystemTime,
    pub(super) modified: SystemTime,
}

impl FileChange {
    /// Applies the change to a view; returns the inodes that lost a name. A change of
    /// something that is not there does nothing.
    pub(super) fn make(&self, view: &mut FileTree, at: SystemTime) -> Vec<u64> {
        match self {
            Self::Write { inode, offset, data } => write(view, *inode, *offset, data, at),
            Self::Zero { inode, offset, length } => {
                if let Some(inode) = view.get_mut(*inode) {
                    let end = offset.saturating_add(*length).min(inode.content.size());
                    let length = end.saturating_sub(*offset);
                    inode.content.zero(*offset, length).unwrap_or_default();
                    (inode.modified, inode.changed) = (at, at);
                }
            }
            Self::Size { inode, size } => {
                if let Some(inode) = view.get_mut(*inode) {
                    inode.content.resize(*size);
                    (inode.modified, inode.changed) = (at, at);
                }
            }
            Self::Set { inode, set } => {
                if let Some(inode) = view.get_mut(*inode) {
                    (inode.mode, inode.uid, inode.gid) = (set.mode, set.uid, set.gid);
                    (inode.accessed, inode.modified) = (set.accessed, set.modified);
                    inode.changed = at;
                }
            }
            Self::Names(names) => {
                return names
                    .iter()
                    .filter_map(|((folder, name), to)| view.name((*folder, name), *to, at))
                    .collect();
            }
        }
        Vec::new()
    }

    /// Applies a random choice of the sectors of a write. Any other change is applied as
    /// a whole or not at all.
    fn tear(&self, sector: u64, view: &mut FileTree, at: SystemTime, random: &mut Random) {
        let Self::Write { inode, offset, data } = self else {
            if random.coin() {
                self.make(view, at);
            }
            return;
        };
        let mut done = 0;
        while done < data.len() {
            let from = *offset + done as u64;
            let end = (done + (sector - from % sector) as usize).min(data.len());
            if random.coin() {
                write(view, *inode, from, &data[done..end], at);
            }
            done = end;
        }
    }

    fn inodes(&self) -> impl Iterator<Item = u64> {
        let names = if let Self::Names(names) = self { &names[..] } else { &[] };
        names.iter().filter_map(|(_, to)| *to)
    }
}

fn write(view: &mut FileTree, inode: u64, offset: u64, data: &[u8], at: SystemTime) {
    let Some(inode) = view.get_mut(inode) else { return };
    let end = offset + data.len() as u64;
    if end > inode.content.size() {
        inode.content.resize(end);
    }
    inode.content.write(offset, data).expect("it was made long enough");
    (inode.modified, inode.changed) = (at, at);
}

/// A change that is not durable.
#[derive(Clone, Debug)]
pub(super) struct PendingChange {
    /// Its position among all changes.
    pub(super) number: u64,
    /// Time of its acknowledgement: `now` since the drive was switched on, `at` by the
    /// clock.
    pub(super) now: Duration,
    pub(super) at: SystemTime,
    /// Number of syncs before it.
    pub(super) epoch: u64,
    pub(super) change: FileChange,
}

impl PendingChange {
    /// Returns its bytes of content.
    pub(super) fn bytes(&self) -> u64 {
        match &self.change {
            FileChange::Write { data, .. } => data.len() as u64,
            _ => 0,
        }
    }

    fn held(&self) -> usize {
        let more = match &self.change {
            FileChange::Write { data, .. } => data.len(),
            FileChange::Names(names) => names.iter().map(|(place, _)| NAME + place.1.len()).sum(),
            _ => 0,
        };
        size_of::<Self>() + more
    }
}

/// All changes that are not durable.
#[derive(Clone, Debug, Default)]
pub(super) struct ChangeLog {
    contents: BTreeMap<u64, VecDeque<PendingChange>>,
    names: VecDeque<PendingChange>,
    /// Number of pending names of each inode.
    named: HashMap<u64, u32>,
    /// Bytes of memory that all of them take.
    held: usize,
}

impl ChangeLog {
    pub(super) fn push(&mut self, waiting: PendingChange) {
        for inode in waiting.change.inodes() {
            *self.named.entry(inode).or_default() += 1;
        }
        self.held += waiting.held();
        let queue = match &waiting.change {
            FileChange::Names(_) => &mut self.names,
            FileChange::Write { inode, .. }
            | FileChange::Zero { inode, .. }
            | FileChange::Size { inode, .. }
            | FileChange::Set { inode, .. } => self.contents.entry(*inode).or_default(),
        };
        queue.push_back(waiting);
    }

    /// Returns true if a pending change gives the inode a name.
    pub(super) fn will_name(&self, inode: u64) -> bool {
        self.named.contains_key(&inode)
    }

    pub(super) fn forget(&mut self, inode: u64) {
        let gone = self.contents.remove(&inode).into_iter().flatten();
        self.held -= gone.map(|waiting| waiting.held()).sum::<usize>();
    }

    /// Bytes of memory that all of them take.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Returns all changes in their order.
    pub(super) fn in_order(&self) -> Vec<&PendingChange> {
        let mut all: Vec<_> = self.contents.values().flatten().chain(&self.names).collect();
        all.sort_unstable_by_key(|waiting| waiting.number);
        all
    }

    /// Returns the bytes of content and the number of name changes that a cut may lose.
    pub(super) fn volatile(&self) -> (u64, u64) {
        let bytes = self.contents.values().flatten().map(PendingChange::bytes).sum();
        (bytes, self.names.len() as u64)
    }

    /// Takes out the changes of one inode's content up to `until`.
    pub(super) fn content(&mut self, inode: u64, until: Duration) -> Vec<PendingChange> {
        let Some(queue) = self.contents.get_mut(&inode) else { return Vec::new() };
        let due = queue.partition_point(|waiting| waiting.now <= until);
        let taken: Vec<_> = queue.drain(..due).collect();
        if queue.is_empty() {
            self.contents.remove(&inode);
        }
        self.held -= taken.iter().map(PendingChange::held).sum::<usize>();
        taken
    }

    /// Returns the bytes of the content of an inode that wait.
    pub(super) fn content_bytes(&self, inode: u64) -> u64 {
        self.contents.get(&inode).into_iter().flatten().map(PendingChange::bytes).sum()
    }

    /// Takes out the changes of names up to `until`: all of them, or those of one folder
    /// and the ones that they follow from.
    pub(super) fn names(&mut self, folder: Option<u64>, until: Duration) -> Vec<PendingChange> {
        let due = self.names.partition_point(|waiting| waiting.now <= until);
        let taken = match folder {
            None => self.names.drain(..due).collect(),
            Some(folder) => self.names_of(folder, due),
        };
        self.held -= taken.iter().map(PendingChange::held).sum::<usize>();
        for inode in taken.iter().flat_map(|waiting: &PendingChange| waiting.change.inodes()) {
            if let Some(count) = self.named.get_mut(&inode) {
                *count -= 1;
                if *count == 0 {
                    self.named.remove(&inode);
                }
            }
        }
        taken
    }

    /// Marks those of the first `due` names that a sync of one of some folders makes durable.
    fn is_of(&self, folders: &BTreeSet<u64>, due: usize) -> Vec<bool> {
        // A rename out of another folder takes along what made its old name:
        // that must not come after it.
        let mut places = BTreeSet::<&DirEntryName>::new();
        let mut is_taken = vec![false; self.names.len()];
        for (place, waiting) in self.names.iter().enumerate().take(due).rev() {
            let FileChange::Names(names) = &waiting.change else { continue };
            let is_own =
                |place: &DirEntryName| folders.contains(&place.0) || places.contains(place);
            if names.iter().any(|(place, _)| is_own(place)) {
                is_taken[place] = true;
                places.extend(names.iter().map(|(place, _)| place));
            }
        }
        is_taken
    }

    /// Returns the numbers of all changes that syncs of these files and folders would
    /// make durable.
    pub(super) fn covered(&self, inodes: &BTreeSet<u64>) -> BTreeSet<u64> {
        let is_taken = self.is_of(inodes, self.names.len());
        let names = self.names.iter().zip(is_taken).filter(|(_, is_taken)| *is_taken);
        let contents = inodes.iter().filter_map(|inode| self.contents.get(inode)).flatten();
        contents.chain(names.map(|(waiting, _)| waiting)).map(|waiting| waiting.number).collect()
    }

    fn names_of(&mut self, folder: u64, due: usize) -> Vec<PendingChange> {
        let is_taken = self.is_of(&BTreeSet::from([folder]), due);
        let (mut taken, mut left) = (Vec::new(), VecDeque::new());
        for (waiting, is_taken) in self.names.drain(..).zip(is_taken) {
            if is_taken { taken.push(waiting) } else { left.push_back(waiting) }
        }
        self.names = left;
        taken
    }

    /// Returns the time at which the oldest change was acknowledged; `None` if there is
    /// none.
    pub(super) fn oldest(&self) -> Option<Duration> {
        let contents = self.contents.values().filter_map(VecDeque::front);
        contents.chain(self.names.front()).map(|waiting| waiting.now).min()
    }

    /// Takes out all changes up to `until`.
    pub(super) fn all(&mut self, until: Duration) -> Vec<PendingChange> {
        let inodes: Vec<_> = self.contents.keys().copied().collect();
        let mut taken: Vec<_> =
            inodes.into_iter().flat_map(|inode| self.content(inode, until)).collect();
        taken.extend(self.names(None, until));
        taken
    }
}

impl PendingChange {
    /// Applies the change to a view: whole, or torn into sectors of that many bytes.
    pub(super) fn survive(
        &self,
        torn_sector_bytes: Option<u64>,
        view: &mut FileTree,
        random: &mut Random,
    ) {
        match torn_sector_bytes {
            Some(sector) => self.change.tear(sector, view, self.at, random),
            None => drop(self.change.make(view, self.at)),
        }
    }
}
