//! One RAM folder, from its filling to its end: the two sides, what the disk side
//! holds, and how a generation comes to it. `docs/ram.md` says why in these steps.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fsure_os::tree_copy::{CopyStat, NodeKind, Side};

use super::activity::Activity;
use super::changes::{FirstScanTracker, ReportedChanges, Tracker};
use super::content_digest;
use super::disk_side::{DiskSide, OWN, trash};
use super::generation_builder::GenerationBuilder;
use super::index::{Index, IndexEntry};
use super::journal::{Journal, JournalDone, path_of};
use super::missed_names::MissedNames;
use super::plan::PlannedGeneration;
use super::ram_scan::everything;
use super::recover::finish_interrupted;
use super::rehash_rotation::RehashRotation;
use super::scan_rounds::{CompareDepth, Freeze, RoundsResult, Start, rounds};
use super::side_reader::{in_ram, on_disk};
use fsure_core::{Error, ExitCode, IoContext as _, RelPath, Result};

/// Result of one attempt to bring the disk side up to date.
#[derive(Clone, Debug)]
pub struct Generation {
    /// Its number; that of the last one if nothing had changed.
    pub number: u64,
    /// Start of the generation. What was changed before this moment is on the disk.
    pub began: Instant,
    /// Duration from start to end.
    pub took: Duration,
    /// Duration until it counted.
    pub committed: Duration,
    /// Bytes written as content.
    pub written: u64,
    /// Names made or changed.
    pub changed: u64,
    /// Names removed.
    pub removed: u64,
    /// Files that were written whenever they were read, that fsure has no permission to read
    /// or that the disk side cannot have: it keeps their last whole version.
    pub unsettled: Vec<RelPath>,
    /// The most that the moments are apart of which its names and files are; `None` if
    /// all are of one moment, but for what fsure has no permission to read or the disk side
    /// cannot have.
    pub spread: Option<Duration>,
    /// Path of the trash folder with what it removed, if that was suspiciously much.
    pub trash: Option<PathBuf>,
    /// Folders that stay on the disk side, because something is in them that was
    /// never in RAM.
    pub kept: Vec<RelPath>,
    /// Names of the disk side that another process has changed there. What was in the way
    /// is in the trash, and what is in RAM is there again.
    pub changed_outside: Vec<RelPath>,
}

/// One RAM folder.
pub struct Engine {
    pub(super) disk: DiskSide,
    pub(super) ram: Side,
    /// The disk side, as far as it counts.
    pub(super) index: Index,
    pub(super) generation: u64,
    /// True if no tracker has reported what changed since the last generation.
    pub(super) is_blind: bool,
    /// True if the disk side is not what the index says: another process has changed it.
    pub(super) is_adrift: bool,
    /// Looked at again, whatever their dates say.
    pub(super) again: BTreeSet<RelPath>,
    /// Reported already, and of after the last generation.
    pub(super) changes: ReportedChanges,
    /// Not found by the last generation, and kept.
    pub(super) missed: MissedNames,
    /// Of which the disk side has an older version, and of when it is at least.
    pub(super) stale: BTreeMap<RelPath, Instant>,
    /// The time at which the last generation began.
    pub(super) before: Instant,
    pub(super) mapped: MmapTracker,
    pub(super) turns: RehashRotation,
    /// Counts, and is not applied: an error was in the way.
    pub(super) pending: Option<Journal>,
    /// The disk side's files when they were copied into RAM.
    pub(super) filled: BTreeMap<RelPath, CopyStat>,
    /// So long the state of one moment is searched for.
    pub(super) search: Duration,
    /// The current step, for other threads to read.
    pub(super) doing: Activity,
}

/// Attempts to copy a file that another process writes meanwhile.
const COPY_ATTEMPTS_MAX: u32 = 5;

/// Hears of every name that is copied, with the bytes it holds; may end it all.
pub type Filling<'a> = &'a mut dyn FnMut(&RelPath, u64) -> ControlFlow<ExitCode>;

/// Part of the agreed loss for which the state of one moment is searched for while programs
/// change names all the time. A round takes some 0.1 ms then, so these are hundreds.
const SEARCH_PART: u32 = 8;
/// No longer in any case.
const SEARCH_MAX: Duration = Duration::from_secs(1);

/// Files that are mapped for writing, as far as was asked. The first store into a
/// page moves the file's date and no later one does, so what is mapped is hashed
/// every time; and so is once more, when it is asked again, what was dated since it
/// was asked last: it may have been mapped, written and let go in between.
#[derive(Default)]
pub(super) struct MmapTracker {
    inodes: BTreeSet<u64>,
    /// Mapped when it was asked last; they may have been written just before they
    /// were let go.
    last: BTreeSet<u64>,
    dated: BTreeSet<RelPath>,
    /// Time of the last query, and its duration: 0.2 ms for each process.
    asked: Option<(Instant, Duration)>,
}

impl MmapTracker {
    /// Asks, unless that would take more than 5 % of the time; then the files that
    /// are to be looked at because of it.
    fn ask(&mut self, ram: &Side) -> Result<BTreeSet<RelPath>> {
        let now = Instant::now();
        if self.asked.is_some_and(|(at, took)| now.duration_since(at) < took * 20) {
            return Ok(BTreeSet::new());
        }
        let mapped = ram.mapped().context("find mapped files in", Path::new("/proc"))?;
        self.asked = Some((now, now.elapsed()));
        self.inodes = &mapped | &self.last;
        self.last = mapped;
        Ok(std::mem::take(&mut self.dated))
    }
}

/// The files that a generation changes.
fn files_of(planned: &PlannedGeneration) -> Vec<RelPath> {
    let files =
        planned.changed.iter().filter(|(_, entry)| entry.as_ref().is_some_and(IndexEntry::is_file));
    files.map(|(path, _)| path.clone()).collect()
}

impl Engine {
    /// Copies a folder into an empty one in memory. Both paths may lead there in any
    /// way, also by a descriptor. What a crash has left under way is settled first.
    pub fn fill(disk: &Path, ram: &Path, filling: Filling<'_>) -> Result<Self> {
        let mut engine = Self::open(disk, ram)?;
        if !engine.ram.list(b"").context("list", ram)?.is_empty() {
            return Err(Error::FailedPrecondition {
                message: format!("{} is not empty", ram.display()),
                hint: None,
            });
        }
        let seen = everything(&engine.disk.side)?;
        if let Some(folder) = seen.denied.first() {
            return Err(Error::FailedPrecondition {
                message: format!(
                    "{} cannot be listed: you have no permission",
                    path_of(folder).display()
                ),
                hint: Some("give yourself the permission with 'chmod u+rx'".to_owned()),
            });
        }
        let mut inodes = HashMap::new();
        for (path, facts) in &seen.names {
            if let ControlFlow::Break(code) = filling(path, facts.size) {
                return Err(Error::Interrupted(code));
            }
            engine.copy_entry(path, facts, &mut inodes).context("copy", path_of(path).as_ref())?;
        }
        // The deepest first: what is made in a folder moves its date.
        for (path, facts) in seen.names.iter().rev().filter(|(_, one)| one.kind == NodeKind::Folder)
        {
            let dated =
                engine.copy_attributes(path, facts).and_then(|()| engine.note(path, [0; 32]));
            dated.context("copy", path_of(path).as_ref())?;
        }
        engine.note_links()?;
        Ok(engine)
    }

    /// Takes over two sides that are filled: the process that had them is gone. Reads
    /// both; what differs comes with the next generation.
    pub fn adopt(disk: &Path, ram: &Path) -> Result<Self> {
        let mut engine = Self::open(disk, ram)?;
        engine.rebuild_index()?;
        Ok(engine)
    }

    /// Reads both sides, whatever was known of them.
    pub(super) fn rebuild_index(&mut self) -> Result<()> {
        let there = on_disk(&self.disk.side)?;
        let here = in_ram(&self.ram)?;
        (self.index, self.is_blind) = (Index::default(), true);
        let linked = apart(&there, &here);
        for (path, mut entry) in there {
            match here.get(&path) {
                Some(same) if same.is_same_as(&entry) && !linked.contains(&path) => {
                    entry.facts = same.facts.clone();
                }
                // Of no file that is there: whatever is will differ from it.
                _ => (entry.facts.inode, entry.facts.ctime_ns) = (0, 0),
            }
            self.index.set(path, Some(entry));
        }
        self.is_adrift = false;
        Ok(())
    }

    /// Goes on by another way to the same RAM side: another mount of it.
    pub fn reach(&mut self, ram: &Path) -> Result<()> {
        let side = Side::open(ram).context("open", ram)?;
        let [now, then] = [&side, &self.ram].map(|side| side.facts(b"").context("access", ram));
        let (now, then) = (now?, then?);
        if (now.device, now.inode) != (then.device, then.inode) {
            return Err(Error::Internal(format!("{} is not the RAM side", ram.display())));
        }
        self.ram = side;
        Ok(())
    }

    fn open(disk: &Path, ram: &Path) -> Result<Self> {
        let disk = DiskSide::open(disk)?;
        finish_interrupted(&disk)?;
        let last = Journal::last_applied(&disk)?.map_or(0, |last| last.generation);
        let generation = last.max(disk.trashes()?.last().copied().unwrap_or(0));
        Ok(Self {
            ram: Side::open(ram).context("open", ram)?,
            disk,
            index: Index::default(),
            generation,
            is_blind: true,
            is_adrift: false,
            again: [].into(),
            changes: ReportedChanges::none(),
            missed: [].into(),
            stale: [].into(),
            before: Instant::now(),
            mapped: MmapTracker::default(),
            turns: RehashRotation::new(Instant::now()),
            pending: None,
            filled: BTreeMap::new(),
            search: Duration::from_millis(50),
            doing: Activity::default(),
        })
    }

    /// Makes on the RAM side what is on the disk side.
    fn copy_entry(
        &mut self,
        path: &RelPath,
        facts: &CopyStat,
        inodes: &mut HashMap<u64, RelPath>,
    ) -> io::Result<()> {
        let at = path.as_bytes();
        match facts.kind {
            NodeKind::Folder if path.is_root() => return Ok(()),
            NodeKind::Folder => return self.ram.make(at, NodeKind::Folder, b""),
            NodeKind::File => {}
            kind => {
                let target = match kind {
                    NodeKind::Link => self.disk.side.target(at)?,
                    _ => Vec::new(),
                };
                self.ram.make(at, kind, &target)?;
                self.copy_attributes(path, facts)?;
                return self.note(path, [0; 32]);
            }
        }
        if let Some(first) = inodes.get(&facts.inode) {
            self.ram.link(first.as_bytes(), at)?;
            let digest = self.index.get(first).map_or([0; 32], |entry| entry.digest);
            self.filled.insert(path.clone(), facts.clone());
            return self.note(path, digest);
        }
        for _ in 0..COPY_ATTEMPTS_MAX {
            let before = self.disk.side.facts(at)?;
            let from = self.disk.side.read(at)?;
            let to = self.ram.create(at)?;
            let digest = content_digest::copy(&from, before.size, &to)?;
            self.copy_attributes(path, &before)?;
            let after = self.disk.side.facts(at)?;
            if let (Some(digest), true) = (digest, after == before) {
                if facts.links > 1 {
                    inodes.insert(facts.inode, path.clone());
                }
                self.filled.insert(path.clone(), before);
                return self.note(path, digest);
            }
            self.ram.remove(at, false)?;
        }
        Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            "a program writes to it all the time: end that program, and run the same command again",
        ))
    }

    /// Owner, mode, date and attributes, as on the disk side.
    fn copy_attributes(&self, path: &RelPath, facts: &CopyStat) -> io::Result<()> {
        let at = path.as_bytes();
        let attributes = self.disk.side.attributes(at)?;
        self.ram.set(at, facts.kind, facts.ownership, Some(facts.mtime_ns), &attributes)
    }

    /// Notes what is on both sides now.
    fn note(&mut self, path: &RelPath, digest: content_digest::Digest) -> io::Result<()> {
        let at = path.as_bytes();
        let facts = self.ram.facts(at)?;
        let target = if facts.kind == NodeKind::Link { self.ram.target(at)? } else { Vec::new() };
        let attributes = self.ram.attributes(at)?;
        self.index.set(path.clone(), Some(IndexEntry { facts, digest, target, attributes }));
        Ok(())
    }

    /// Every further name of a file has changed the facts of those before it.
    fn note_links(&mut self) -> Result<()> {
        let linked: Vec<_> = self.index.iter().filter(|(_, one)| one.is_file()).collect();
        let linked: Vec<_> = linked
            .into_iter()
            .filter(|(_, one)| self.index.names(one.facts.inode).len() > 1)
            .map(|(path, one)| (path.clone(), one.digest))
            .collect();
        for (path, digest) in linked {
            self.note(&path, digest).context("access", path_of(&path).as_ref())?;
        }
        Ok(())
    }

    /// The number of the last generation.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Files, and the bytes in them, at the last generation.
    pub fn size(&self) -> (usize, u64) {
        (self.index.files(), self.index.bytes())
    }

    /// Bounds the search for the state of one moment by the loss that was agreed on.
    pub fn set_max_loss(&mut self, max_loss: Duration) {
        self.search = (max_loss / SEARCH_PART).min(SEARCH_MAX);
    }

    /// Sets the place to which it reports what it does.
    pub fn set_activity(&mut self, doing: &Activity) {
        self.doing = doing.clone();
    }

    /// Makes the next generation scan everything: a tracker has missed what was before it.
    pub fn force_full_scan(&mut self) {
        self.is_blind = true;
    }

    /// Brings the disk side up to date. When this returns without an error, what was
    /// changed before [`Generation::began`] is on the medium, but for what is
    /// unsettled. After an error the disk side is the last generation.
    pub fn sync(
        &mut self,
        tracker: &mut dyn Tracker,
        depth: CompareDepth,
        stillness: Option<&dyn Freeze>,
    ) -> Result<Generation> {
        let mut done = self.attempt(tracker, depth, stillness);
        if let (Ok(first), true) = (&done, self.is_adrift) {
            // Its changes are written at once: this generation should have done so.
            let changed = first.changed_outside.clone();
            done = self.attempt(tracker, depth, stillness);
            if let Ok(second) = &mut done {
                second.changed_outside.splice(..0, changed);
            }
        }
        if done.is_err() {
            // The tracker has reported what it knew; and what was staged only takes space,
            // perhaps the space that was missing.
            self.is_blind = true;
            if self.pending.is_none() {
                let _ = self.disk.clear_stage();
            }
        }
        self.doing.end();
        done
    }

    fn attempt(
        &mut self,
        tracker: &mut dyn Tracker,
        depth: CompareDepth,
        stillness: Option<&dyn Freeze>,
    ) -> Result<Generation> {
        let began = Instant::now();
        self.doing.begin("complete the last generation on the disk");
        let changed_outside = self.finish_pending()?.changed;
        if self.is_adrift {
            self.doing.begin("read both sides");
            self.rebuild_index()?;
        }
        self.doing.begin("copy to the disk what has changed");
        self.disk.clear_stage()?;
        // Kept until a generation was made with them.
        self.again.extend(self.mapped.ask(&self.ram)?);
        let mut must = self.again.clone();
        must.extend(self.turns.next(&self.index, began));
        for inode in &self.mapped.inodes {
            must.extend(self.index.names(*inode).iter().cloned());
        }
        let mut draft =
            GenerationBuilder::new(&self.disk, &self.ram, &self.index, self.generation + 1);
        let tracker: &mut dyn Tracker = if self.is_blind {
            // From here on it is to be relied on.
            tracker.take();
            &mut FirstScanTracker(tracker, false)
        } else {
            tracker
        };
        let start = Start {
            search: self.search,
            changes: std::mem::replace(&mut self.changes, ReportedChanges::none()),
            always: must,
            missed: &self.missed,
            stale: &self.stale,
            before: self.before,
        };
        let rounds = rounds(&mut draft, &self.ram, tracker, depth, stillness, &start)?;
        let RoundsResult { changes, denied, stale, again, spread, missed } = rounds;
        draft.stage_held()?;
        let written = draft.staging.written;
        let planned = PlannedGeneration::of(draft)?;
        let (changed, removed) = planned.counts;
        let mut done = Generation {
            number: self.generation,
            began,
            took: Duration::ZERO,
            committed: began.elapsed(),
            written,
            changed,
            removed,
            unsettled: denied.iter().chain(stale.keys()).cloned().collect(),
            spread,
            trash: None,
            kept: Vec::new(),
            changed_outside,
        };
        self.mapped.dated.extend(files_of(&planned));
        // Also where it fails when the index has it already.
        self.again.extend(again.iter().cloned());
        self.commit(planned, &mut done)?;
        self.is_blind = false;
        (self.again, self.missed, self.stale) = (again, missed, stale);
        (self.changes, self.before) = (changes, began);
        done.took = began.elapsed();
        Ok(done)
    }

    fn commit(&mut self, planned: PlannedGeneration, done: &mut Generation) -> Result<()> {
        let PlannedGeneration { steps, changed, has_trash, .. } = planned;
        if !steps.is_empty() {
            let journal = Journal { generation: self.generation + 1, spread: done.spread, steps };
            self.doing.begin("flush the disk's file system (syncfs)");
            self.disk.side.flush_all().context("flush", &self.disk.path)?;
            self.doing.begin("write the journal on the disk");
            journal.write(&self.disk)?;
            self.generation = journal.generation;
            done.number = self.generation;
            done.trash = has_trash.then(|| self.disk.path.join(trash(self.generation)));
            // From here on it may count, whatever fails.
            self.pending = Some(journal);
        }
        for (path, entry) in changed {
            self.index.set(path, entry);
        }
        if let Some(journal) = &self.pending {
            journal.publish(&self.disk)?;
            done.committed = done.began.elapsed();
            self.doing.begin("apply the journal on the disk, and flush it (syncfs)");
            let applied = journal.apply(&self.disk)?;
            self.is_adrift |= !applied.changed.is_empty();
            done.kept = applied.kept;
            done.changed_outside.extend(applied.changed);
            self.pending = None;
            if has_trash {
                self.disk.trim_trash()?;
            }
        }
        Ok(())
    }

    /// Applies what counts already.
    fn finish_pending(&mut self) -> Result<JournalDone> {
        let Some(journal) = &self.pending else { return Ok(JournalDone::default()) };
        journal.publish(&self.disk)?;
        let done = journal.apply(&self.disk)?;
        self.is_adrift |= !done.changed.is_empty();
        self.pending = None;
        Ok(done)
    }

    /// Returns the files of the disk side that another process has written since they
    /// were copied into RAM: through a descriptor that was open before. No program that
    /// uses the folder in RAM sees what is written there now.
    pub fn files_written_behind(&mut self) -> Result<Vec<RelPath>> {
        let mut strays = Vec::new();
        for (path, then) in std::mem::take(&mut self.filled) {
            let now = self.disk.side.facts(path.as_bytes());
            // Staging can change the number of links.
            let same = now.is_ok_and(|now| (now.size, now.mtime_ns) == (then.size, then.mtime_ns));
            if !same {
                strays.push(path);
            }
        }
        Ok(strays)
    }

    /// Ends it: nothing of fsure is left on the disk side but the trash. Returns the path of
    /// the trash, if there is one.
    pub fn close(mut self) -> Result<Option<PathBuf>> {
        self.finish_pending()?;
        let has_trash = !self.disk.trashes()?.is_empty();
        let kept = has_trash.then(|| self.disk.path.join(OWN).join("trash"));
        self.disk.leave()?;
        Ok(kept)
    }
}

/// Names of files that are one on one side and more on the other, though equal: what
/// is written to one of them would change the other.
fn apart(
    one: &BTreeMap<RelPath, IndexEntry>,
    other: &BTreeMap<RelPath, IndexEntry>,
) -> HashSet<RelPath> {
    fn groups(entries: &BTreeMap<RelPath, IndexEntry>) -> HashMap<u64, Vec<&RelPath>> {
        let mut groups: HashMap<_, Vec<_>> = HashMap::new();
        for (path, entry) in entries.iter().filter(|(_, entry)| entry.is_file()) {
            groups.entry(entry.facts.inode).or_default().push(path);
        }
        groups
    }
    let of = groups(other);
    let is_apart = |names: &&Vec<&RelPath>| {
        let inode = other.get(names[0]).map(|entry| entry.facts.inode);
        inode.and_then(|inode| of.get(&inode)) != Some(names)
    };
    let apart = groups(one);
    apart.values().filter(is_apart).flatten().map(|path| (*path).clone()).collect()
}
