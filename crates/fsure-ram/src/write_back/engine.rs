//! One RAM folder, from its filling to its end: the two sides, what the disk side
//! holds, and how a generation comes to it. `docs/ram.md` says why in these steps.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fsure_os::tree_copy::{CopyStat, Side};

use super::activity::Activity;
use super::changes::{FirstScanTracker, ReportedChanges, Tracker};
use super::disk_side::{DiskSide, OWN, trash};
use super::generation_builder::GenerationBuilder;
use super::index::Index;
use super::journal::{Journal, JournalDone};
use super::missed_names::MissedNames;
use super::plan::PlannedGeneration;
use super::rehash_rotation::RehashRotation;
use super::scan_rounds::{CompareDepth, Freeze, RoundsResult, Start, rounds};
use fsure_core::{IoContext as _, RelPath, Result};

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
    /// True if no tracker has told what changed since the last generation.
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
        let mapped = ram.mapped().context("see what is mapped in", Path::new("/proc"))?;
        self.asked = Some((now, now.elapsed()));
        self.inodes = &mapped | &self.last;
        self.last = mapped;
        Ok(std::mem::take(&mut self.dated))
    }
}

/// The files that a generation changes.
fn files_of(planned: &PlannedGeneration) -> Vec<RelPath> {
    let files = planned
        .changed
        .iter()
        .filter(|(_, entry)| entry.as_ref().is_some_and(super::index::IndexEntry::is_file));
    files.map(|(path, _)| path.clone()).collect()
}

impl Engine {
    /// The number of the last generation.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Files, and the bytes in them, at the last generation.
    pub fn size(&self) -> (usize, u64) {
        (self.index.files(), self.index.bytes())
    }

    /// Has the search for the state of one moment suit the loss that was agreed on.
    pub fn suit(&mut self, max_loss: Duration) {
        self.search = (max_loss / SEARCH_PART).min(SEARCH_MAX);
    }

    /// Has what it is at be told there.
    pub fn tell(&mut self, doing: &Activity) {
        self.doing = doing.clone();
    }

    /// Has the next generation look at everything: a tracker has missed what was before it.
    pub fn distrust(&mut self) {
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
            // What is missing there comes at once: this one was to bring it.
            let changed = first.changed_outside.clone();
            done = self.attempt(tracker, depth, stillness);
            if let Ok(second) = &mut done {
                second.changed_outside.splice(..0, changed);
            }
        }
        if done.is_err() {
            // The tracker has told what it knew; and what was staged only takes room,
            // perhaps the room that was missing.
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
        let planned = draft.plan()?;
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
            self.doing.begin("do on the disk what the journal says, and flush it (syncfs)");
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
