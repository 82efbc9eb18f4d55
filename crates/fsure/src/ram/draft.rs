//! A generation before it counts: what differs from the last one, and where its
//! content is staged.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Bound;

use fsure_os::folder::{is_denied, is_gone};
use fsure_os::mirror::{Facts, File, Kind, Side};

use super::content::{self, Digest};
use super::hold::{is_too_large, private};
use super::index::{Entry, Index};
use super::journal::path_of;
use super::look::Seen;
use super::own::{Disk, staged};
use super::step::Step;
use crate::words::{IoContext as _, RelPath, Result};

/// How often a file is read until two readings in a row are the same.
const READINGS: u32 = 4;
/// From this size on the unchanged part of a file is shared with the old one, where
/// the file system can.
const SHARED_FROM: u64 = 256 << 10;
/// A generation that removes more files than this is one that somebody may regret.
const REMOVED_MAX: usize = 1000;
/// So is one that removes more than half of at least this many.
const FEW: usize = 10;

/// What has become of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It is as it was known.
    Same,
    /// It is not.
    Differs,
    /// It was written whenever it was read.
    Unsettled,
    /// We may not read it, and nobody is told what it holds; or the disk cannot hold it.
    Denied,
}

/// What is staged under a name.
#[derive(Clone, Debug)]
struct Staged {
    name: String,
    digest: Digest,
    what: What,
}

/// What a staged file is.
#[derive(Clone, Copy, Debug)]
enum What {
    /// The whole of a new one.
    Whole,
    /// A second name of what is on the disk side already: its owner and dates stay
    /// until the generation counts.
    Old,
    /// What comes behind the first `from` bytes of what is on the disk side, and its
    /// digest.
    Tail { from: u64, digest: Digest },
}

/// A generation that is being made.
pub(super) struct Draft<'a> {
    pub(super) disk: &'a Disk,
    ram: &'a Side,
    pub(super) index: &'a Index,
    generation: u64,
    pub(super) changed: BTreeMap<RelPath, Option<Entry>>,
    /// Of which look it is the first that found a name changed.
    pub(super) since: BTreeMap<RelPath, u32>,
    /// What was found by a name that it did not have or as it was not.
    pub(super) sighted: HashSet<u64>,
    /// Which look this is.
    pub(super) round: u32,
    staged: BTreeMap<RelPath, Staged>,
    by_inode: HashMap<u64, Staged>,
    count: u64,
    /// Bytes written so far, and those that are written once more when it counts.
    pub(super) written: u64,
    pub(super) again: u64,
}

/// What a draft comes to.
pub(super) struct Planned {
    pub(super) steps: Vec<Step>,
    pub(super) changed: BTreeMap<RelPath, Option<Entry>>,
    /// Names made or changed, and names removed.
    pub(super) counts: (u64, u64),
    pub(super) has_trash: bool,
}

impl<'a> Draft<'a> {
    pub(super) fn new(disk: &'a Disk, ram: &'a Side, index: &'a Index, generation: u64) -> Self {
        let (changed, since, sighted, staged, by_inode) = Default::default();
        Self {
            disk,
            ram,
            index,
            generation,
            changed,
            since,
            sighted,
            round: 0,
            staged,
            by_inode,
            count: 0,
            written: 0,
            again: 0,
        }
    }

    /// What a name is, as far as we know.
    pub(super) fn known(&self, path: &RelPath) -> Option<&Entry> {
        match self.changed.get(path) {
            Some(changed) => changed.as_ref(),
            None => self.index.get(path),
        }
    }

    /// The names by which a file is known.
    pub(super) fn names(&self, inode: u64) -> Vec<RelPath> {
        self.index.names(inode).to_vec()
    }

    /// What was known in folders that were listed, and was not in them.
    pub(super) fn gone(&self, seen: &Seen) -> Vec<RelPath> {
        let is_gone = |path: &RelPath| {
            !seen.names.contains_key(path)
                && path.parent().is_some_and(|parent| seen.folders.contains(&parent))
        };
        let new = self.changed.iter().filter(|(path, now)| now.is_some() && is_gone(path));
        let mut gone: BTreeSet<_> = new.map(|(path, _)| path.clone()).collect();
        for folder in &seen.folders {
            let old = self.index.below(folder).map(|(path, _)| path);
            let old = old.filter(|path| path.parent().as_ref() == Some(folder) && is_gone(path));
            gone.extend(old.cloned());
        }
        gone.into_iter().collect()
    }

    /// Takes out a name that is not there any more, and all below it.
    pub(super) fn remove(&mut self, path: &RelPath) -> bool {
        if self.known(path).is_none() {
            return false;
        }
        let below: Vec<_> = self.index.below(path).map(|(path, _)| path.clone()).collect();
        let (from, to) = path.below();
        let from = Bound::Excluded(RelPath::from_bytes(from));
        let to = to.map_or(Bound::Unbounded, |to| Bound::Excluded(RelPath::from_bytes(to)));
        let new: Vec<_> = self.changed.range((from, to)).map(|(path, _)| path.clone()).collect();
        for path in below.into_iter().chain(new) {
            self.change(path, None);
        }
        self.change(path.clone(), None);
        true
    }

    /// Looks at a name, and stages what it holds where that is new.
    pub(super) fn take(&mut self, path: &RelPath, facts: &Facts) -> Result<Taken> {
        let kind = facts.kind;
        if self.known(path).is_some_and(|known| known.is_folder() != (kind == Kind::Folder)) {
            self.remove(path);
        }
        let seen = match kind {
            Kind::File => self.see_file(path, facts),
            _ => self.see_other(path, facts).map(Some),
        };
        let seen = match seen {
            // What vanished since it was listed: from the RAM side, and from no other.
            Err(error) if is_gone(&error) => {
                self.remove(path);
                return Ok(Taken::Differs);
            }
            // One file without permission is no reason to keep no other.
            Err(error) if is_denied(&error) => return Ok(Taken::Denied),
            other => other.doing("read", path_of(path).as_ref())?,
        };
        let Some((file, mut entry)) = seen else { return Ok(Taken::Unsettled) };
        if !self.holds(path, &entry)? {
            if kind == Kind::Folder && self.known(path).is_none() {
                self.note(path, private(entry));
            }
            return Ok(Taken::Denied);
        }
        if let Some(file) = file
            && self.must_stage(path, &entry)
        {
            let staged = self.stage(path, &entry, &file);
            if staged.as_ref().is_err_and(is_too_large) {
                return Ok(Taken::Denied);
            }
            let Some(digest) = staged.doing("stage", path_of(path).as_ref())? else {
                return Ok(Taken::Unsettled);
            };
            entry.digest = digest;
        }
        Ok(self.note(path, entry))
    }

    fn see_other(&self, path: &RelPath, facts: &Facts) -> std::io::Result<(Option<File>, Entry)> {
        let target = match facts.kind {
            Kind::Link => self.ram.target(path.as_bytes())?,
            _ => Vec::new(),
        };
        let attributes = self.ram.attributes(path.as_bytes())?;
        Ok((None, Entry { facts: facts.clone(), digest: [0; 32], target, attributes }))
    }

    /// `None` where it became shorter meanwhile.
    fn see_file(
        &self,
        path: &RelPath,
        facts: &Facts,
    ) -> std::io::Result<Option<(Option<File>, Entry)>> {
        let file = self.ram.read(path.as_bytes())?;
        let size = file.metadata()?.len();
        let Some(digest) = content::digest(&file, size)? else { return Ok(None) };
        let attributes = self.ram.attributes(path.as_bytes())?;
        let facts = Facts { size, ..facts.clone() };
        Ok(Some((Some(file), Entry { facts, digest, target: Vec::new(), attributes })))
    }

    fn note(&mut self, path: &RelPath, entry: Entry) -> Taken {
        if self.known(path) == Some(&entry) {
            return Taken::Same;
        }
        self.change(path.clone(), Some(entry));
        Taken::Differs
    }

    /// Whether the disk side needs another file by this name.
    fn must_stage(&self, path: &RelPath, entry: &Entry) -> bool {
        let Some(known) = self.known(path).filter(|known| known.is_same_thing_as(entry)) else {
            return true;
        };
        // The same content of another file. The one that is on the disk side by this
        // name may be another name's by now, with a date of its own.
        known.facts.inode != entry.facts.inode
    }

    /// Stages a file; the digest of what is staged, `None` where it would not hold
    /// still.
    fn stage(
        &mut self,
        path: &RelPath,
        entry: &Entry,
        file: &File,
    ) -> std::io::Result<Option<Digest>> {
        self.count += 1;
        let name = format!("{}-{}", self.generation, self.count);
        if let Some(what) = self.link(entry, &name)? {
            let staged = Staged { name, digest: entry.digest, what };
            self.staged.insert(path.clone(), staged);
            return Ok(Some(entry.digest));
        }
        if let Some(tail) = self.tail(path, entry, file, &name)? {
            let what = What::Tail { from: tail.0, digest: tail.1 };
            self.staged.insert(path.clone(), Staged { name, digest: entry.digest, what });
            return Ok(Some(entry.digest));
        }
        let (mut last, size) = (entry.digest, entry.facts.size);
        for _ in 0..READINGS {
            let digest = self.write(path, size, file, &name)?;
            if digest == Some(last) {
                let staged = Staged { name, digest: last, what: What::Whole };
                self.staged.insert(path.clone(), staged.clone());
                self.by_inode.insert(entry.facts.inode, staged);
                return Ok(Some(last));
            }
            self.disk.side.remove(staged(&name).as_bytes(), false)?;
            let Some(digest) = digest else { return Ok(None) };
            last = digest;
        }
        Ok(None)
    }

    /// A second name of what is staged or on the disk side already, where the file
    /// is one by another name; what that makes of it.
    fn link(&self, entry: &Entry, name: &str) -> std::io::Result<Option<What>> {
        let target = staged(name);
        if let Some(other) = self.by_inode.get(&entry.facts.inode)
            && other.digest == entry.digest
        {
            let linked =
                self.disk.side.link(staged(&other.name).as_bytes(), target.as_bytes()).is_ok();
            return Ok(linked.then_some(other.what));
        }
        for path in self.index.names(entry.facts.inode) {
            let is_same = self.index.get(path).is_some_and(|known| known.is_same_thing_as(entry));
            // A file system without hard links, or with too many: then it is copied.
            if is_same && self.disk.side.link(path.as_bytes(), target.as_bytes()).is_ok() {
                return Ok(Some(What::Old));
            }
        }
        Ok(None)
    }

    /// Stages what was appended to a large file, where nothing else was done to it:
    /// from where on, and its digest. A log of a gigabyte is not written anew for
    /// every line. Not where the file has other names, which would be appended to.
    fn tail(
        &mut self,
        path: &RelPath,
        entry: &Entry,
        file: &File,
        name: &str,
    ) -> std::io::Result<Option<(u64, Digest)>> {
        let is_grown = |old: &&Entry| {
            old.is_file()
                && old.facts.inode == entry.facts.inode
                && old.facts.links == 1
                && entry.facts.links == 1
                && (SHARED_FROM..entry.facts.size).contains(&old.facts.size)
        };
        let Some(old) = self.index.get(path).filter(is_grown) else { return Ok(None) };
        let (from, known, size) = (old.facts.size, old.digest, entry.facts.size);
        // Where we could not write later on, it is replaced as a whole; and where it is
        // not, or not only, the file that we know.
        let is_ours = self.disk.side.facts(path.as_bytes()).is_ok_and(|there| {
            (there.links, there.size, there.mtime_ns) == (1, from, old.facts.mtime_ns)
        });
        if !is_ours || self.disk.side.write(path.as_bytes()).is_err() {
            return Ok(None);
        }
        let target = self.disk.side.create(staged(name).as_bytes())?;
        // Where the whole is too large, that is known before it counts.
        target.set_len(size)?;
        target.set_len(0)?;
        if let Some([head, tail, all]) = content::split(file, from, size, &target)?
            && head == known
            && all == entry.digest
        {
            self.written += size - from;
            self.has_room_again(&target)?;
            return Ok(Some((from, tail)));
        }
        self.disk.side.remove(staged(name).as_bytes(), false)?;
        Ok(None)
    }

    fn write(
        &mut self,
        path: &RelPath,
        size: u64,
        file: &File,
        name: &str,
    ) -> std::io::Result<Option<Digest>> {
        let target = self.disk.side.create(staged(name).as_bytes())?;
        let old = (size >= SHARED_FROM)
            .then(|| self.index.get(path).filter(|known| known.is_file()))
            .flatten()
            .and_then(|_| self.disk.side.read(path.as_bytes()).ok());
        if let Some(old) = old
            && self.disk.side.share(&old, &target)?
        {
            let patched = content::patch(file, size, &old, &target, &mut self.written);
            if patched.is_ok() {
                return patched;
            }
            // The old one cannot be read any more, perhaps: as if there were none.
            target.set_len(0)?;
        }
        self.written += size;
        content::copy(file, size, &target)
    }

    /// The steps that make the generation of the last one. What is staged has its
    /// owner, dates and attributes from here on.
    pub(super) fn plan(mut self) -> Result<Planned> {
        let index = self.index;
        self.changed.retain(|path, entry| entry.as_ref() != index.get(path));
        let trashes = self.removes_much();
        let mut plan = Plan::default();
        for (path, entry) in &self.changed {
            let old = index.get(path);
            let (was, is) = (old.map(Entry::is_folder), entry.as_ref().map(Entry::is_folder));
            if let Some(was_folder) = was.filter(|_| was != is) {
                plan.remove(path, was_folder, trashes && !was_folder);
            }
            if let Some(entry) = entry {
                self.plan_entry(path, entry, old, &mut plan)?;
            }
        }
        let folders = plan.touched.iter().filter_map(|folder| {
            let entry = self.known(folder)?;
            entry.is_folder().then(|| (folder.clone(), entry.meta()))
        });
        let folders: Vec<_> = folders.collect();
        let counts = (plan.changed, plan.removes.len() as u64);
        let mut steps: Vec<_> = plan.removes.into_iter().rev().collect();
        steps.extend(plan.makes);
        steps.extend(plan.puts);
        // The deepest first: what is done in a folder is done by then.
        steps.extend(folders.into_iter().rev().map(|(path, meta)| Step::Meta {
            path,
            kind: Kind::Folder,
            meta,
        }));
        Ok(Planned { steps, changed: self.changed, counts, has_trash: trashes })
    }

    fn plan_entry(
        &self,
        path: &RelPath,
        entry: &Entry,
        old: Option<&Entry>,
        plan: &mut Plan,
    ) -> Result<()> {
        let kind = entry.facts.kind;
        let is_same_thing = old.is_some_and(|old| old.is_same_thing_as(entry));
        let staged = self.staged.get(path).filter(|staged| staged.digest == entry.digest);
        let needs_put = entry.is_file()
            && (!is_same_thing
                || staged.is_some() && old.is_none_or(|old| old.facts.inode != entry.facts.inode));
        if needs_put {
            let staged = staged.expect("what differs was staged");
            plan.put(path, staged, entry);
            if let What::Whole = staged.what {
                return self.dress(&staged.name, entry);
            }
        } else if !is_same_thing {
            plan.make(path, entry);
        } else if old.is_some_and(|old| old.is_same_as(entry)) {
            return Ok(());
        } else {
            plan.changed += 1;
        }
        if kind == Kind::Folder {
            plan.touched.insert(path.clone());
        } else if entry.is_file() || is_same_thing {
            plan.puts.push(Step::Meta { path: path.clone(), kind, meta: entry.meta() });
        }
        Ok(())
    }

    fn removes_much(&self) -> bool {
        let gone: Vec<_> = self
            .changed
            .iter()
            .filter(|(_, now)| now.is_none())
            .filter_map(|(path, _)| self.index.get(path).filter(|old| old.is_file()))
            .map(|old| old.facts.inode)
            .collect();
        let files = self.index.files();
        let is_much = |gone: usize| gone > REMOVED_MAX || files >= FEW && gone * 2 > files;
        // What was only renamed is not gone.
        is_much(gone.len()) && {
            let left: HashSet<_> = self
                .changed
                .values()
                .flatten()
                .filter(|entry| entry.is_file())
                .map(|entry| entry.facts.inode)
                .collect();
            is_much(gone.iter().filter(|inode| !left.contains(inode)).count())
        }
    }
}

/// Steps by kind, each in the order of the paths.
#[derive(Default)]
struct Plan {
    removes: Vec<Step>,
    makes: Vec<Step>,
    puts: Vec<Step>,
    /// Folders whose date our own changes have moved, or that differ themselves.
    touched: BTreeSet<RelPath>,
    changed: u64,
}

impl Plan {
    fn remove(&mut self, path: &RelPath, is_folder: bool, to_trash: bool) {
        self.removes.push(Step::Remove { path: path.clone(), is_folder, to_trash });
        self.touch(path);
    }

    fn make(&mut self, path: &RelPath, entry: &Entry) {
        let (kind, target) = (entry.facts.kind, entry.target.clone());
        let step = Step::Make { path: path.clone(), kind, target, meta: entry.meta() };
        // Folders first: what is put into them comes after them.
        if kind == Kind::Folder { &mut self.makes } else { &mut self.puts }.push(step);
        self.changed += 1;
        self.touch(path);
    }

    fn put(&mut self, path: &RelPath, staged: &Staged, entry: &Entry) {
        self.touch(path);
        let (path, stage, size) = (path.clone(), staged.name.clone(), entry.facts.size);
        self.puts.push(match staged.what {
            What::Tail { from, digest } => Step::Append { path, stage, from, size, digest },
            _ => Step::Put { path, stage, size, digest: entry.digest },
        });
        self.changed += 1;
    }

    fn touch(&mut self, path: &RelPath) {
        self.touched.extend(path.parent());
    }
}
