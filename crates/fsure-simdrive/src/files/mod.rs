//! A simulated drive of files and names: what a cut may leave of a folder, without any
//! notion of blocks.
//!
//! It keeps two views, as a [`Drive`](super::Drive) keeps two images, and between them
//! the changes that are acknowledged and not durable. A sync of a file covers that file,
//! a sync of a folder covers its names. The [`Mode`] decides what else a sync does.

mod pending_changes;
mod pre_cut_state;
mod requests;
mod view;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::time::{Duration, SystemTime};

use fsure_os::fuse_files::{FsResult, FuseError, New, ROOT, Sort};

use super::{Behavior, CACHE, CutVariant, Latency};
use fsure_core::Random;
use pending_changes::{ChangeLog, FileChange, PendingChange};
pub use pre_cut_state::{PreCutState, Unsynced};
use view::{FileTree, Inode};

/// Promises of a sync beyond the file or folder that it was requested for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Those of POSIX, and no more: a sync of a file makes its content durable, a sync of
    /// the folder makes its name durable. What was not synced may survive in any order. A
    /// rename is there as a whole or not at all.
    Strict,
    /// Those of file systems with one journal, such as ext4: any sync makes all names
    /// durable that were given before it, and names survive in their order.
    Journal,
}

impl Mode {
    /// Its name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Journal => "journal",
        }
    }
}

/// Properties of a drive of files.
#[derive(Clone, Copy, Debug)]
pub struct FileTraits {
    /// Kind of drive: decides when acknowledged changes become durable.
    pub behavior: Behavior,
    /// Further promises of a sync.
    pub mode: Mode,
    /// Time that writes and syncs take.
    pub latency: Latency,
    /// Bytes that there is space for.
    pub space: u64,
    /// Owner of the top folder: user and group.
    pub owner: (u32, u32),
}

/// Counts of the requests to a drive of files so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileCounts {
    /// Writes acknowledged.
    pub writes: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Changes of names acknowledged.
    pub names: u64,
    /// Syncs acknowledged.
    pub syncs: u64,
    /// Requests that failed because they were meant to.
    pub errors: u64,
}

/// A sync, which makes durable at its end what was there when it began.
#[derive(Clone, Copy, Debug)]
struct RunningSync {
    inode: u64,
    is_folder: bool,
    begun: Duration,
    ends: Duration,
}

/// A simulated drive of files. It answers the requests of
/// [`VirtualFs`](fsure_os::fuse_files::VirtualFs).
#[derive(Clone, Debug)]
pub struct FileDrive {
    traits: FileTraits,
    /// Time at which it was switched on, by the clock.
    begun: SystemTime,
    seen: FileTree,
    medium: FileTree,
    pending: ChangeLog,
    next_inode: u64,
    next_change: u64,
    epoch: u64,
    /// Bytes of everything that is visible.
    used: u64,
    /// Inodes that are synced when the deferred sync is due, for a drive that defers.
    deferred: BTreeSet<u64>,
    sync_due: Option<Duration>,
    synced_at: Option<Duration>,
    /// Syncs that have not ended, in the order in which they began.
    syncs: Vec<RunningSync>,
    /// Writes that succeed before one fails, and the number of writes that fail then.
    failing: Option<(u64, u64)>,
    /// Highest number up to which everything was acknowledged as safe.
    marked: u64,
    counts: FileCounts,
}

impl FileDrive {
    /// Creates an empty drive that is switched on at the time `begun` of the clock.
    pub fn new(traits: FileTraits, begun: SystemTime) -> Self {
        let (uid, gid) = traits.owner;
        let top = New { sort: Sort::Folder, mode: 0o755, uid, gid, target: OsStr::new("") };
        let mut view = FileTree::default();
        view.add(ROOT, Inode::new(&top, begun));
        Self::holding(traits, begun, view)
    }

    /// Returns the name of its mounts: its behavior and the time of a flush, so that a
    /// measurement of such a drive says so.
    pub(crate) fn source(&self) -> String {
        let FileTraits { behavior, latency, .. } = self.traits;
        match latency.flush.as_secs_f64() * 1e3 {
            0.0 => format!("fsure:{behavior}"),
            flush_ms => format!("fsure:{behavior}:flush={flush_ms}ms"),
        }
    }

    fn holding(traits: FileTraits, begun: SystemTime, view: FileTree) -> Self {
        Self {
            traits,
            begun,
            medium: view.clone(),
            pending: ChangeLog::default(),
            next_inode: view.last() + 1,
            next_change: 0,
            epoch: 0,
            used: view.bytes(),
            seen: view,
            deferred: BTreeSet::new(),
            sync_due: None,
            syncs: Vec::new(),
            synced_at: None,
            failing: None,
            marked: 0,
            counts: FileCounts::default(),
        }
    }

    /// Returns its properties.
    pub fn traits(&self) -> &FileTraits {
        &self.traits
    }

    /// Returns a drive of another kind that holds everything visible on this one, all of
    /// it durable.
    pub fn as_another(&self, behavior: Behavior, latency: Latency) -> Self {
        let traits = FileTraits { behavior, latency, ..self.traits };
        Self::holding(traits, self.begun, self.seen.clone())
    }

    /// Returns the counts of requests so far.
    pub fn counts(&self) -> FileCounts {
        self.counts
    }

    /// Returns the bytes of content and the number of name changes that are acknowledged
    /// and not durable, those of a sync that has not ended among them.
    pub fn volatile(&mut self, now: Duration) -> (u64, u64) {
        self.persist_due(now);
        self.pending.volatile()
    }

    /// Notes that everything up to a number was acknowledged as safe.
    pub fn mark(&mut self, number: u64) {
        self.marked = self.marked.max(number);
    }

    /// Returns the highest mark so far; 0 if there is none.
    pub fn marked(&self) -> u64 {
        self.marked
    }

    /// Changes the kind of the drive from now on. What the former kind has made durable
    /// stays.
    pub fn set_behavior(&mut self, now: Duration, behavior: Behavior) {
        self.persist_due(now);
        self.traits.behavior = behavior;
        self.deferred.clear();
        (self.synced_at, self.sync_due) = (None, None);
        self.persist_due(now);
    }

    /// Fails `errors` writes after `writes` more that succeed, and no others.
    pub fn fail_after(&mut self, writes: u64, errors: u64) {
        self.failing = Some((writes, errors));
    }

    /// Returns the drive after a power cut now, when the power comes back: a drive
    /// without any earlier requests.
    pub fn cut(&mut self, now: Duration, cut: CutVariant, random: &mut Random) -> Self {
        self.persist_due(now);
        self.left(now, cut, random, &BTreeSet::new())
    }

    /// The same as [`FileDrive::cut`], with what it was made of.
    pub fn cut_with_state(
        &mut self,
        now: Duration,
        cut: CutVariant,
        random: &mut Random,
    ) -> (Self, PreCutState) {
        self.persist_due(now);
        let state = PreCutState { drive: self.clone(), now, cut, random: random.clone() };
        (self.left(now, cut, random, &BTreeSet::new()), state)
    }

    /// Returns what a cut leaves now, had `synced` been synced just before it. Chance
    /// decides the same with and without them.
    fn left(
        &self,
        now: Duration,
        cut: CutVariant,
        random: &mut Random,
        synced: &BTreeSet<u64>,
    ) -> Self {
        let mut left = self.medium.clone();
        let waiting = self.pending.in_order();
        let survives = self.survivors(&waiting, cut, random);
        let covered = self.pending.covered(synced);
        for (waiting, survives) in waiting.iter().zip(survives) {
            if survives {
                waiting.survive(self.torn_sector_bytes(waiting, cut), &mut left, random);
            }
            // Over what is torn of it.
            if covered.contains(&waiting.number) {
                waiting.survive(None, &mut left, random);
            }
        }
        Self::holding(self.traits, self.begun + now, left.reachable())
    }

    /// Returns the bytes that the cut keeps or takes as a whole, if it tears the change.
    fn torn_sector_bytes(&self, waiting: &PendingChange, cut: CutVariant) -> Option<u64> {
        cut.torn_sector_bytes().filter(|_| !self.is_ordered(waiting))
    }

    /// Returns true if a change never overtakes another of its kind.
    fn is_ordered(&self, waiting: &PendingChange) -> bool {
        self.traits.mode == Mode::Journal && matches!(waiting.change, FileChange::Names(_))
    }

    /// Decides for each change if it survives. If names are in order, those before a
    /// moment survive.
    fn survivors(
        &self,
        waiting: &[&PendingChange],
        cut: CutVariant,
        random: &mut Random,
    ) -> Vec<bool> {
        let moment = random.below(waiting.len() as u64 + 1);
        let names = waiting.iter().filter(|waiting| self.is_ordered(waiting)).count() as u64;
        let mut names_left = random.below(names + 1);
        let first = waiting.first().map_or(0, |waiting| waiting.epoch);
        let last = waiting.last().map_or(0, |waiting| waiting.epoch);
        let epoch = first + random.below(last - first + 1);
        let mut is_open = true;
        let mut survives = |place: u64, waiting: &PendingChange| match cut {
            CutVariant::None => false,
            CutVariant::All => true,
            CutVariant::Prefix => place < moment,
            CutVariant::Epoch if waiting.epoch != epoch => waiting.epoch < epoch,
            CutVariant::Epoch if self.is_ordered(waiting) => {
                is_open &= random.coin();
                is_open
            }
            CutVariant::Epoch => random.coin(),
            CutVariant::Random | CutVariant::Torn | CutVariant::Torn4k
                if self.is_ordered(waiting) =>
            {
                let is_before = names_left > 0;
                names_left = names_left.saturating_sub(1);
                is_before
            }
            CutVariant::Random => random.coin(),
            CutVariant::Torn | CutVariant::Torn4k => true,
        };
        (0..).zip(waiting).map(|(place, waiting)| survives(place, waiting)).collect()
    }

    /// Takes a change that was checked against the view.
    fn take(&mut self, now: Duration, change: FileChange) {
        self.persist_due(now);
        let at = self.begun + now;
        change.make(&mut self.seen, at);
        if self.traits.behavior == Behavior::Protected {
            let lost = change.make(&mut self.medium, at);
            lost.into_iter().for_each(|inode| self.bury(inode));
            return;
        }
        let (number, epoch) = (self.next_change, self.epoch);
        self.next_change += 1;
        self.pending.push(PendingChange { number, now, at, epoch, change });
        // The older half at a time: finding the oldest takes a while.
        while self.pending.held() > CACHE
            && let Some(oldest) = self.pending.oldest()
        {
            self.persist_until((oldest + now) / 2);
        }
    }

    /// Makes everything durable that a sync of a file or a folder covers.
    fn persist_for_sync(&mut self, inode: u64, is_folder: bool, until: Duration) {
        let mut taken = self.pending.content(inode, until);
        match self.traits.mode {
            Mode::Journal => taken.extend(self.pending.names(None, until)),
            Mode::Strict if is_folder => {
                taken.extend(self.pending.names(Some(inode), until));
            }
            Mode::Strict => {}
        }
        self.make_durable(taken);
    }

    fn is_folder(&self, inode: u64) -> bool {
        self.seen.get(inode).is_some_and(|inode| inode.sort == Sort::Folder)
    }

    fn make_durable(&mut self, taken: Vec<PendingChange>) {
        for waiting in taken {
            for inode in waiting.change.make(&mut self.medium, waiting.at) {
                self.bury(inode);
            }
        }
    }

    /// Makes durable what the drive brings to the medium by itself.
    fn persist_due(&mut self, now: Duration) {
        let has_ended = |sync: &mut RunningSync| sync.ends <= now;
        let ended: Vec<_> = self.syncs.extract_if(.., has_ended).collect();
        for sync in ended {
            self.persist_for_sync(sync.inode, sync.is_folder, sync.begun);
        }
        match self.traits.behavior {
            Behavior::Honest => {}
            Behavior::Protected => self.persist_until(now),
            Behavior::Lying { lag } => {
                if let Some(until) = lag.and_then(|lag| now.checked_sub(lag)) {
                    self.persist_until(until);
                }
            }
            Behavior::Defer { .. } => {
                if let Some(due) = self.sync_due.filter(|due| *due <= now) {
                    for inode in std::mem::take(&mut self.deferred) {
                        self.persist_for_sync(inode, self.is_folder(inode), due);
                    }
                    (self.synced_at, self.sync_due) = (Some(due), None);
                }
            }
        }
    }

    fn persist_until(&mut self, until: Duration) {
        let taken = self.pending.all(until);
        self.make_durable(taken);
    }

    /// Drops an inode that nothing leads to any more, now or after a cut.
    fn bury(&mut self, inode: u64) {
        let is_left = self.seen.get(inode).is_some()
            || self.medium.get(inode).is_some_and(|inode| inode.links > 0)
            || self.pending.will_name(inode)
            || inode == ROOT;
        if !is_left {
            self.medium.drop_inode(inode);
            self.pending.forget(inode);
        }
    }

    fn may_fail(&mut self) -> FsResult<()> {
        let Some((left, errors)) = &mut self.failing else { return Ok(()) };
        if *left > 0 {
            *left -= 1;
            return Ok(());
        }
        if *errors == 0 {
            self.failing = None;
            return Ok(());
        }
        *errors -= 1;
        self.counts.errors += 1;
        Err(FuseError::Failed)
    }
}

#[cfg(test)]
mod tests;
