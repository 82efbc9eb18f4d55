//! A generation before it counts: what differs from the last one, and where its
//! content is staged.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::ops::Bound;

use fsure_os::root_dir::{is_denied, is_gone};
use fsure_os::tree_copy::{CopyStat, File, NodeKind, Side, changed_ns, read_at};

use super::content_digest;
use super::disk_capability::{is_too_large, private};
use super::disk_side::DiskSide;
use super::index::{Index, IndexEntry};
use super::journal::path_of;
use super::ram_scan::ScanResult;
use super::staging::{READINGS_MAX, StagedSource, Staging};
use fsure_core::{IoContext as _, RelPath, Result};

/// Result of taking a name into the draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameChange {
    /// It is as it was known.
    Same,
    /// It is not.
    Differs,
    /// It was written whenever it was read.
    Unsettled,
    /// This process has no permission to read it, and does not know what it holds; or the
    /// disk cannot hold it.
    Denied,
}

/// A generation that is being made.
pub(super) struct GenerationBuilder<'a> {
    pub(super) disk: &'a DiskSide,
    ram: &'a Side,
    pub(super) index: &'a Index,
    pub(super) changed: BTreeMap<RelPath, Option<IndexEntry>>,
    /// Names in `changed` by inode, and some that were.
    by_inode: HashMap<u64, Vec<RelPath>>,
    /// The first round that found a name changed.
    pub(super) since: BTreeMap<RelPath, u32>,
    /// The first round since which every round has found a name missing.
    pub(super) missing_since: BTreeMap<RelPath, u32>,
    /// Inodes that were found by a name that they did not have or as they were not.
    pub(super) sighted: HashSet<u64>,
    /// The number of this round.
    pub(super) round: u32,
    /// The latest change time of the files that it read, after they were read.
    pub(super) newest_ns: i64,
    /// True if any file has or had several names.
    pub(super) has_links: bool,
    pub(super) staging: Staging,
}

impl<'a> GenerationBuilder<'a> {
    pub(super) fn new(
        disk: &'a DiskSide,
        ram: &'a Side,
        index: &'a Index,
        generation: u64,
    ) -> Self {
        let (changed, by_inode, since, missing_since, sighted) = Default::default();
        let (round, newest_ns) = (0, i64::MIN);
        let (has_links, staging) = (index.has_links(), Staging::new(generation));
        Self {
            disk,
            ram,
            index,
            changed,
            by_inode,
            since,
            missing_since,
            sighted,
            round,
            newest_ns,
            has_links,
            staging,
        }
    }

    /// Scans what changed once more from here on.
    pub(super) fn begin_round(&mut self, round: u32) {
        (self.round, self.newest_ns) = (round, i64::MIN);
    }

    /// Takes a name as it is now.
    pub(super) fn change(&mut self, path: RelPath, entry: Option<IndexEntry>) {
        self.since.entry(path.clone()).or_insert(self.round);
        match &entry {
            Some(entry) => {
                self.sighted.insert(entry.facts.inode);
                self.missing_since.remove(&path);
                self.has_links |= entry.has_links();
                if entry.is_file() {
                    self.by_inode.entry(entry.facts.inode).or_default().push(path.clone());
                }
            }
            None => _ = self.missing_since.entry(path.clone()).or_insert(self.round),
        }
        self.changed.insert(path, entry);
    }

    /// Returns the last known entry of a name: that of the draft, or else that of the
    /// last generation; `None` if there is no such name.
    pub(super) fn known(&self, path: &RelPath) -> Option<&IndexEntry> {
        match self.changed.get(path) {
            Some(changed) => changed.as_ref(),
            None => self.index.get(path),
        }
    }

    /// The names by which a file is known.
    pub(super) fn names(&self, inode: u64) -> BTreeSet<RelPath> {
        let new = self.by_inode.get(&inode).into_iter().flatten();
        let has = |path: &&RelPath| self.known(path).is_some_and(|one| one.facts.inode == inode);
        self.index.names(inode).iter().chain(new).filter(has).cloned().collect()
    }

    /// Lists names that were known and asked for or in folders that were listed, and was not there.
    pub(super) fn gone(&self, seen: &ScanResult) -> BTreeSet<RelPath> {
        let is_gone = |path: &RelPath| !seen.names.contains_key(path);
        let asked = seen.asked.iter().filter(|path| self.known(path).is_some() && is_gone(path));
        let mut gone: BTreeSet<_> = asked.cloned().collect();
        for folder in &seen.folders {
            let old = self.index.below(folder).map(|(path, _)| path);
            let new = self.changed.range(range_below(folder)).filter(|(_, now)| now.is_some());
            let all = old.chain(new.map(|(path, _)| path));
            let is_in = |path: &&RelPath| path.parent().as_ref() == Some(folder) && is_gone(path);
            gone.extend(all.filter(is_in).cloned());
        }
        gone
    }

    /// Takes out a name that is not there any more, and all below it.
    pub(super) fn remove(&mut self, path: &RelPath) -> bool {
        if self.known(path).is_none() {
            return false;
        }
        let below: Vec<_> = self.index.below(path).map(|(path, _)| path.clone()).collect();
        let new = self.changed.range(range_below(path)).map(|(path, _)| path.clone());
        let new: Vec<_> = new.collect();
        for path in below.into_iter().chain(new) {
            self.change(path, None);
        }
        self.change(path.clone(), None);
        true
    }

    /// Looks at a name, and stages what it holds where that is new.
    pub(super) fn stage_if_changed(
        &mut self,
        path: &RelPath,
        facts: &CopyStat,
    ) -> Result<NameChange> {
        let kind = facts.kind;
        if self.known(path).is_some_and(|known| known.is_folder() != (kind == NodeKind::Folder)) {
            self.remove(path);
        }
        let seen = match kind {
            NodeKind::File => self.see_file(path, facts),
            _ => self.see_other(path, facts).map(Some),
        };
        let seen = match seen {
            // What vanished since it was listed: from the RAM side, and from no other.
            Err(error) if is_gone(&error) => {
                self.remove(path);
                return Ok(NameChange::Differs);
            }
            // One file without permission is not a reason to keep no other.
            Err(error) if is_denied(&error) => return Ok(NameChange::Denied),
            other => other.context("read", path_of(path).as_ref())?,
        };
        let Some((source, mut entry)) = seen else { return Ok(NameChange::Unsettled) };
        if !self.disk.can_store(path, &entry, self.known(path))? {
            if kind == NodeKind::Folder && self.known(path).is_none() {
                self.note(path, private(entry));
            }
            return Ok(NameChange::Denied);
        }
        if let Some(source) = source
            && self.must_stage(path, &entry)
        {
            let staged = self.stage(path, &entry, source);
            if staged.as_ref().is_err_and(is_too_large) {
                return Ok(NameChange::Denied);
            }
            let Some(digest) = staged.context("stage", path_of(path).as_ref())? else {
                return Ok(NameChange::Unsettled);
            };
            entry.digest = digest;
        }
        Ok(self.note(path, entry))
    }

    fn see_other(
        &self,
        path: &RelPath,
        facts: &CopyStat,
    ) -> io::Result<(Option<StagedSource>, IndexEntry)> {
        let target = match facts.kind {
            NodeKind::Link => self.ram.target(path.as_bytes())?,
            _ => Vec::new(),
        };
        let attributes = self.ram.attributes(path.as_bytes())?;
        Ok((None, IndexEntry { facts: facts.clone(), digest: [0; 32], target, attributes }))
    }

    /// `None` where it became shorter meanwhile, or was written whenever it was read.
    fn see_file(
        &mut self,
        path: &RelPath,
        facts: &CopyStat,
    ) -> io::Result<Option<(Option<StagedSource>, IndexEntry)>> {
        let file = self.ram.read(path.as_bytes())?;
        let attributes = self.ram.attributes_of(&file)?;
        let size = file.metadata()?.len();
        let (source, digest) = if self.staging.can_hold(size) {
            let Some(bytes) = read_whole(&file, size)? else { return Ok(None) };
            let digest = content_digest::digest_of(&bytes);
            self.note_change(&file)?;
            (StagedSource::Held(bytes), digest)
        } else {
            let Some(digest) = content_digest::digest(&file, size)? else { return Ok(None) };
            self.note_change(&file)?;
            (StagedSource::File(file), digest)
        };
        let facts = CopyStat { size, ..facts.clone() };
        Ok(Some((Some(source), IndexEntry { facts, digest, target: Vec::new(), attributes })))
    }

    /// Notes when a file was changed that was read just now.
    pub(super) fn note_change(&mut self, file: &File) -> io::Result<()> {
        self.newest_ns = self.newest_ns.max(changed_ns(file)?);
        Ok(())
    }

    fn note(&mut self, path: &RelPath, entry: IndexEntry) -> NameChange {
        if self.known(path) == Some(&entry) {
            return NameChange::Same;
        }
        self.change(path.clone(), Some(entry));
        NameChange::Differs
    }
}

fn range_below(folder: &RelPath) -> (Bound<RelPath>, Bound<RelPath>) {
    let (from, to) = folder.below();
    let to = to.map_or(Bound::Unbounded, |to| Bound::Excluded(RelPath::from_bytes(to)));
    (Bound::Excluded(RelPath::from_bytes(from)), to)
}

/// The content of a file, as two readings in a row had it; `None` where it became shorter
/// or no two did.
fn read_whole(file: &File, size: u64) -> io::Result<Option<Vec<u8>>> {
    let read = || {
        let mut bytes = vec![0; size as usize];
        let is_whole = read_at(file, &mut bytes, 0)? == bytes.len();
        io::Result::Ok(is_whole.then_some(bytes))
    };
    let mut last = read()?;
    for _ in 0..READINGS_MAX {
        let next = read()?;
        if next == last || next.is_none() {
            return Ok(next);
        }
        last = next;
    }
    Ok(None)
}
