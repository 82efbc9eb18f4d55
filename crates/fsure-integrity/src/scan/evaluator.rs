//! Leads every path to its verdict: decides what has to be read for it,
//! evaluates the reading, and decides when to read a second time.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use fsure_os::Stat;
use fsure_os::root_dir::is_denied;

use super::case_alias::FolderCache;
use super::compare_blocks::FirstRead;
use super::entry_builder::{EntryBuilder, granularity_ns, known};
use super::file_read::{ReadContent, ReadOutcome, ReadRequest};
use super::hard_links::{HardLinkCache, HardLinkState, LinkKey};
use super::known_damage::known_damage;
use super::merge::{MergedPath, WalkState};
use super::moves::Moves;
use super::mtime_reliability::HeldEdits;
use super::partial_read::{PartialRead, bytes_of};
use super::progress_estimate::{Remaining, judges_all};
use super::result_recorder::{PathResult, ResultRecorder};
use super::retries::Retries;
use super::scrub_budget::{BudgetTracker, Deadline};
use super::{ContentSource, Purpose, ScanPlan, UpdateRules};
use crate::catalog::{Catalog, Claims, StoredRow, UnfinishedBlocks};
use crate::model::{
    Entry, EntryKind, Evidence, Observation, Outcome, RecordState, StopReason, Verdict, judge,
};
use fsure_core::{AlgorithmSet, Error, RelPath, Result, timeout_error};

/// Most attempts to read a file that changes while it is read.
pub(super) const ATTEMPTS_MAX: u32 = 3;

/// Files from this size on keep the values of finished parts, so that a run
/// that is cut off goes on inside them. Below it, reading anew takes seconds.
pub(super) const KEEP_PARTS_MIN: u64 = 256 << 20;

/// A file that is being read.
pub(super) struct PendingRead {
    pub(super) path: RelPath,
    pub(super) stored: Option<StoredRow>,
    pub(super) entry: Entry,
    /// Stat of the file when it was last taken or read.
    pub(super) stat: Stat,
    pub(super) device: u64,
    pub(super) algorithms: AlgorithmSet,
    pub(super) link: Option<LinkKey>,
    /// Number of times that it was found changed while it was read.
    pub(super) attempt: u32,
    /// True if its next order gives its writer time to finish.
    pub(super) is_retry: bool,
    /// True if it is to be read by itself: a reader got stuck at it or at one
    /// of those it was read with.
    pub(super) alone: bool,
    /// The result of the first reading, while the second is under way.
    pub(super) first: Option<FirstRead>,
    /// The blocks that are read of it, if these are not all.
    pub(super) part: Option<PartialRead>,
    /// True if it was not OK when it was last checked.
    pub(super) is_again: bool,
    /// Bytes that the budget was charged for its last order.
    pub(super) charged: u64,
}

/// Decides the verdict of every path of a run.
pub(super) struct Evaluator<'a> {
    pub(super) plan: &'a ScanPlan,
    pub(super) recorder: ResultRecorder<'a>,
    /// Orders to be sent to the workers.
    pub(super) orders: Vec<ReadRequest>,
    /// Orders to be sent later.
    pub(super) retries: Retries,
    /// By order. Boxed: they are large, and go from hand to hand.
    pub(super) pending: BTreeMap<u64, Box<PendingRead>>,
    pub(super) links: HardLinkCache,
    pub(super) budget: BudgetTracker,
    /// The part of the record that is left, if all of it is judged.
    pub(super) remaining: Option<Remaining>,
    /// True if the file that is taken now was not OK when it was last checked.
    pub(super) is_again: bool,
    /// The most bytes that may be read of it.
    pub(super) bytes_max: u64,
    pub(super) moves: Moves,
    pub(super) held_edits: HeldEdits,
    pub(super) entries: EntryBuilder,
    pub(super) listed: FolderCache,
    /// Folders whose names the walk has not come to yet.
    pub(super) folders: HashMap<RelPath, (Option<StoredRow>, Entry)>,
    next_id: u64,
    /// Orders that were given up: their responses come too late.
    pub(super) given_up: HashSet<u64>,
    /// The file ordered last.
    current: Option<u64>,
}

impl<'a> Evaluator<'a> {
    pub(super) fn new(
        plan: &'a ScanPlan,
        recorder: ResultRecorder<'a>,
        ending: Deadline,
    ) -> Result<Self> {
        Ok(Self {
            plan,
            moves: Moves::new(recorder.catalog, plan.scrub.is_none())?,
            budget: BudgetTracker::new(plan.scrub.as_ref(), ending),
            remaining: judges_all(plan)
                .then(|| Remaining { record: recorder.catalog.bytes(), ..Remaining::default() }),
            is_again: false,
            bytes_max: u64::MAX,
            recorder,
            orders: Vec::new(),
            retries: Retries::default(),
            pending: BTreeMap::new(),
            held_edits: HeldEdits::default(),
            links: HardLinkCache::default(),
            entries: EntryBuilder::default(),
            listed: FolderCache::default(),
            folders: HashMap::new(),
            next_id: 0,
            given_up: HashSet::new(),
            current: None,
        })
    }

    pub(super) fn catalog(&mut self) -> &mut Catalog {
        self.recorder.catalog
    }

    pub(super) fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// Files judged, and bytes: those of the files judged, and of the
    /// `hashed` ones those that belong to files still being read.
    pub(super) fn judged(&self, hashed: u64) -> (u64, u64) {
        let under_way = hashed.saturating_sub(self.recorder.bytes_read_and_judged);
        let outcome = &self.recorder.outcome;
        (outcome.files.total(), outcome.bytes_judged.saturating_add(under_way))
    }

    /// Returns the bytes to judge in all; `None` if this run knows no better
    /// than the record does.
    pub(super) fn bytes_total(&self) -> Option<u64> {
        let judged = self.recorder.outcome.bytes_judged;
        let under_way = |size: fn(&PendingRead) -> u64| {
            self.pending.values().map(|pending| size(pending)).fold(0, u64::saturating_add)
        };
        let left = if let Some(scrub) = &self.recorder.outcome.scrub {
            let may_be_read = self.budget.left().saturating_add(under_way(|one| one.charged));
            scrub.left_bytes().min(may_be_read)
        } else {
            self.remaining.as_ref()?.bytes().saturating_add(under_way(|one| one.stat.size))
        };
        Some(judged.saturating_add(left))
    }

    pub(super) fn current(&self) -> Option<&RelPath> {
        let ordered = self.current.and_then(|id| self.pending.get(&id));
        let pending = ordered.or_else(|| self.pending.values().next());
        pending.map(|pending| &pending.path)
    }

    pub(super) fn stop(&mut self, stop: StopReason) {
        self.recorder.stop(stop);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.recorder.is_stopped()
    }

    pub(super) fn open_gate(&mut self) -> Result<bool> {
        self.recorder.precheck_once()
    }

    pub(super) fn commit_if_due(&mut self) -> Result<()> {
        self.recorder.commit_if_due()
    }

    pub(super) fn finish(&mut self, claims: Option<Claims>) -> Result<Outcome> {
        self.recorder.finish(claims)
    }

    /// Takes a path from the merge: settles it or orders its content.
    pub(super) fn process_path(&mut self, case: MergedPath) -> Result<()> {
        let MergedPath { path, stored, seen } = case;
        if let Some(remaining) = &mut self.remaining {
            remaining.pass(stored.as_ref());
        }
        match seen {
            WalkState::Entry(stat, device) => self.process_entry(path, stored, &stat, device),
            WalkState::LeftOut(kind, why) => self.take_left_out(path, stored, kind, why),
            WalkState::BelowLeftOut(why) => {
                if let Some(stored) = stored {
                    self.recorder.leave_out_recorded(path, stored, why)?;
                }
                Ok(())
            }
            WalkState::Unlisted(true) => {
                self.finish_without_entry(path, stored, Observation::Forbidden, None)
            }
            WalkState::Unlisted(false) => {
                self.finish_without_entry(path, stored, Observation::Unlisted, None)
            }
            WalkState::Unseen(error) => {
                let found =
                    if is_denied(&error) { Observation::Forbidden } else { Observation::Unlisted };
                self.finish_without_entry(path, stored, found, Some(error.to_string()))
            }
            WalkState::Absent => self.process_missing(path, stored),
            WalkState::NamesKnown => self.settle_folder(&path, None),
            WalkState::NamesUnknown(error) => match self.folders.contains_key(&path) {
                true => self.settle_folder(&path, Some(&error)),
                false => {
                    self.recorder.root_unlisted(path, &error);
                    Ok(())
                }
            },
            WalkState::PatternsRead(text) => {
                self.recorder.remember_exclude_file(path, text);
                Ok(())
            }
            WalkState::PatternsUnread(error) => {
                self.recorder
                    .warn(&format!("{}: {error}: nothing is left out for it", path.display()));
                Ok(())
            }
        }
    }

    pub(super) fn process_entry(
        &mut self,
        path: RelPath,
        stored: Option<StoredRow>,
        stat: &Stat,
        device: u64,
    ) -> Result<()> {
        let mut entry = self.entry(&path, stat, device)?;
        match entry.kind {
            EntryKind::File => return self.plan_file_read(path, stored, entry, stat, device),
            EntryKind::Special => {
                self.recorder.outcome.special += 1;
                if matches!(known(stored.as_ref(), &entry, 1), RecordState::Nothing) {
                    return Ok(());
                }
            }
            EntryKind::Link if self.plan.is_list && stored.is_none() => return Ok(()),
            EntryKind::Link => match self.plan.root.link_target(path.as_bytes()) {
                Ok(target) => entry.target = Some(target.into_boxed_slice()),
                Err(error) => {
                    let found = if is_denied(&error) {
                        Observation::Forbidden
                    } else {
                        Observation::Unlisted
                    };
                    return self.finish_without_entry(path, stored, found, Some(error.to_string()));
                }
            },
            // Its verdict waits for its names.
            EntryKind::Folder => {
                self.folders.insert(path.clone(), (stored, entry));
                // A scrub comes by no names: there is a folder where a file was.
                return match self.plan.scrub {
                    Some(_) => self.settle_folder(&path, None),
                    None => Ok(()),
                };
            }
        }
        if entry.kind == EntryKind::Link
            && self.defer_as_move_candidate(&path, stored.as_ref(), &entry, device)?
        {
            return Ok(());
        }
        let verdict = self.judge(stored.as_ref(), &entry, Evidence::StatOnly);
        self.settle(PathResult::new(path, stored, Some(entry), verdict))
    }

    /// Returns the digests for which a file has to be read; `None` if it need not be.
    fn digests_to_compute(
        &mut self,
        path: &RelPath,
        stored: Option<&StoredRow>,
        entry: &Entry,
    ) -> Result<Option<AlgorithmSet>> {
        let granularity_ns = granularity_ns(self.recorder.catalog, stored, entry);
        let known = known(stored, entry, granularity_ns);
        Ok(match (&self.plan.purpose, known) {
            // A link or a folder has become this file: nothing to compare with.
            (Purpose::Verify, RecordState::Sound(record))
                if record.entry.kind != EntryKind::File =>
            {
                None
            }
            (Purpose::Update(rules), RecordState::Sound(record))
                if record.entry.kind != EntryKind::File =>
            {
                rules.accept.covers(path).then_some(rules.digests)
            }
            (Purpose::Status, _) | (Purpose::Verify, RecordState::Bad) => None,
            (Purpose::Update(UpdateRules { only_sizes: Some(sizes), .. }), _)
                if !sizes.may_be_shared(entry.size) =>
            {
                None
            }
            (Purpose::Verify, RecordState::Nothing) => self.moves.wants(entry)?,
            (Purpose::Verify, RecordState::Sound(record)) => Some(record.digests.algorithms()),
            (Purpose::Update(rules), RecordState::Nothing) => {
                (!rules.only_completes).then_some(rules.digests)
            }
            (Purpose::Update(rules), RecordState::Bad) => {
                rules.accept.covers(path).then_some(rules.digests)
            }
            (Purpose::Update(rules), RecordState::Sound(record)) => {
                let has = record.digests.algorithms();
                let is_racy = record.is_racy(granularity_ns)
                    && !self.recorder.catalog.is_own_change(path, &record.entry)?;
                let is_as_recorded = record.entry.same_stat(entry)
                    && !is_racy
                    && record.gone_s.is_none()
                    && has.covers(rules.digests)
                    // What may have been put right below the file system.
                    && known_damage(stored)
                        .is_none_or(|known| known.verdict == Verdict::Unreadable);
                let is_wanted = match rules.only_completes {
                    true => !has.covers(rules.digests),
                    false => rules.full || !is_as_recorded,
                };
                is_wanted.then_some(has.union(rules.digests))
            }
        })
    }

    fn plan_file_read(
        &mut self,
        path: RelPath,
        stored: Option<StoredRow>,
        entry: Entry,
        stat: &Stat,
        device: u64,
    ) -> Result<()> {
        if self.defer_as_move_candidate(&path, stored.as_ref(), &entry, device)? {
            return Ok(());
        }
        let wanted = self.digests_to_compute(&path, stored.as_ref(), &entry)?;
        let Some(algorithms) = wanted else {
            let verdict = self.judge(stored.as_ref(), &entry, Evidence::StatOnly);
            let settled = PathResult::new(path, stored, Some(entry), verdict);
            return self.settle(settled.remember_damage());
        };
        let pending = Box::new(PendingRead {
            path,
            stored,
            entry,
            stat: stat.clone(),
            device,
            algorithms,
            link: LinkKey::of(stat, algorithms),
            attempt: 0,
            is_retry: false,
            alone: false,
            first: None,
            part: None,
            is_again: false,
            charged: 0,
        });
        match self.plan.scrub {
            Some(_) => self.order_due(pending),
            None => self.request_read_once_per_inode(pending),
        }
    }

    /// Orders a file to be read, unless another name of it is or was.
    pub(super) fn request_read_once_per_inode(&mut self, pending: Box<PendingRead>) -> Result<()> {
        let id = self.new_id();
        if let Some(key) = pending.link {
            match self.links.get(&key) {
                Some(HardLinkState::Reading(waiting)) => {
                    waiting.push(id);
                    self.pending.insert(id, pending);
                    return Ok(());
                }
                Some(HardLinkState::Read(content, _))
                    if content.stat.is_unchanged_from(&pending.stat) =>
                {
                    let content = Rc::clone(content);
                    self.links.pass(&key);
                    return self.evaluate_content(id, pending, content);
                }
                Some(HardLinkState::Silent) => {
                    let failed = ReadOutcome::Unopened(timeout_error(self.plan.effort.patience));
                    return self.handle_read_failure(id, pending, failed);
                }
                // Another file by now, or a number used again.
                Some(HardLinkState::Read(..)) => {}
                None => self.links.begin(key),
            }
        }
        let kept = self.kept_parts(&pending)?;
        self.queue_read(id, pending, Vec::new(), kept);
        Ok(())
    }

    pub(super) fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn kept_parts(&mut self, pending: &PendingRead) -> Result<Vec<UnfinishedBlocks>> {
        if self.keeps_parts(pending) && pending.part.is_none() {
            return self.catalog().unfinished(&pending.path, &pending.entry);
        }
        Ok(Vec::new())
    }

    fn keeps_parts(&self, pending: &PendingRead) -> bool {
        let is_large = match self.plan.purpose {
            Purpose::Update(_) => pending.stat.size >= KEEP_PARTS_MIN,
            _ => pending.part.is_some(),
        };
        is_large && pending.first.is_none()
    }

    pub(super) fn queue_read(
        &mut self,
        id: u64,
        mut pending: Box<PendingRead>,
        blocks: Vec<u64>,
        kept: Vec<UnfinishedBlocks>,
    ) {
        let size = pending.stat.size;
        pending.charged = if blocks.is_empty() { size } else { bytes_of(&blocks, size) };
        self.budget.spend(pending.charged, pending.is_again);
        self.current = Some(id);
        let order = ReadRequest {
            id,
            path: pending.path.clone(),
            stat: pending.stat.clone(),
            algorithms: pending.algorithms,
            // A second reading is of the medium, whatever the first one found,
            // and so is that of a file that is known to be damaged there.
            uses_cache: self.plan.reads_from == ContentSource::Cache
                && pending.first.is_none()
                && known_damage(pending.stored.as_ref()).is_none(),
            blocks,
            kept,
            keeps_parts: self.keeps_parts(&pending),
            // The less is read with it, the less can change meanwhile.
            alone: pending.alone || pending.attempt > 0,
        };
        match std::mem::take(&mut pending.is_retry) {
            true => self.retries.put(order, pending.attempt),
            false => self.orders.push(order),
        }
        self.pending.insert(id, pending);
    }

    /// Keeps the values of a part of a large file that is being read.
    pub(super) fn store_partial_blocks(
        &mut self,
        id: u64,
        stat: &Stat,
        blocks: &UnfinishedBlocks,
    ) -> Result<()> {
        let Some(pending) = self.pending.get(&id) else { return Ok(()) };
        if pending.part.is_some() {
            let is_same = stat.is_unchanged_from(&pending.stat);
            return if is_same { self.keep_part(id, blocks) } else { Ok(()) };
        }
        let (path, device) = (pending.path.clone(), pending.device);
        let entry = self.entry(&path, stat, device)?;
        self.recorder.keep(&path, &entry, blocks)
    }

    /// Takes a reader's response.
    pub(super) fn handle_read_outcome(
        &mut self,
        order: ReadRequest,
        reading: ReadOutcome,
    ) -> Result<()> {
        let Some(pending) = self.pending.remove(&order.id) else {
            if self.given_up.contains(&order.id) {
                return Ok(());
            }
            return Err(Error::Internal("an answer nobody asked for".to_owned()));
        };
        match reading {
            ReadOutcome::Read(content) => {
                let content = Rc::from(content);
                self.share_with_hard_links(&pending, Some(&content))?;
                self.evaluate_content(order.id, pending, content)
            }
            ReadOutcome::Stopped => self.note_unfinished(&pending, None),
            ReadOutcome::CutOff(begun_ns) => self.note_unfinished(&pending, Some(begun_ns)),
            failed => {
                self.share_with_hard_links(&pending, None)?;
                self.handle_read_failure(order.id, pending, failed)
            }
        }
    }

    /// Gives a content to the other names of its inode that wait for it, or,
    /// without one, orders each of them to be read.
    fn share_with_hard_links(
        &mut self,
        pending: &PendingRead,
        content: Option<&Rc<ReadContent>>,
    ) -> Result<()> {
        let Some(key) = pending.link.filter(|_| pending.first.is_none()) else {
            return Ok(());
        };
        for id in self.links.finish(&key, content) {
            let Some(mut other) = self.pending.remove(&id) else {
                continue;
            };
            match content {
                Some(content) => self.evaluate_content(id, other, Rc::clone(content))?,
                None => {
                    other.link = None;
                    self.queue_read(id, other, Vec::new(), Vec::new());
                }
            }
        }
        Ok(())
    }

    pub(super) fn entry(&mut self, path: &RelPath, stat: &Stat, device: u64) -> Result<Entry> {
        self.entries.entry(&self.plan.root, self.recorder.catalog, path, stat, device)
    }

    pub(super) fn judge(
        &self,
        stored: Option<&StoredRow>,
        entry: &Entry,
        evidence: Evidence,
    ) -> Verdict {
        let rules = self.date_rules(stored, entry);
        let known = known(stored, entry, rules.granularity_ns);
        judge(known, Observation::Present(entry, evidence), rules)
    }
}
