//! The files that are being read: ordered, and not come back yet.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::candidate::Candidate;
use super::compare_blocks::FirstRead;
use super::hard_links::LinkKey;
use super::partial_read::{PartialRead, bytes_of};
use super::read_request::{KEEP_PARTS_MIN, ReadRequest};
use super::retries::Retries;
use super::scrub_budget::{BudgetTracker, Deadline};
use super::{ContentSource, Purpose, ScanPlan};
use crate::catalog::UnfinishedBlocks;
use crate::model::{CurrentFile, OWN_PROGRESS_MIN, percent};
use fsure_core::block_hash::BLOCK;
use fsure_core::{AlgorithmSet, Error, Result};

/// A file that is being read.
pub(super) struct PendingRead {
    pub(super) file: Candidate,
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
    charged: u64,
    /// Blocks read so far of a large file.
    blocks_read: Option<Arc<AtomicU64>>,
}

impl PendingRead {
    pub(super) fn new(file: Candidate, algorithms: AlgorithmSet) -> Self {
        let link = LinkKey::of(&file.stat, algorithms);
        Self {
            file,
            algorithms,
            link,
            attempt: 0,
            is_retry: false,
            alone: false,
            first: None,
            part: None,
            is_again: false,
            charged: 0,
            blocks_read: None,
        }
    }

    /// Returns the share of a large file that is read, in percent.
    fn percent_read(&self) -> Option<u8> {
        let bytes = self.blocks_read.as_ref()?.load(Ordering::Relaxed).saturating_mul(BLOCK);
        Some(percent(bytes, self.charged))
    }

    /// Returns the numbers of the blocks that its last order was for; empty for all.
    pub(super) fn requested_blocks(&self) -> Vec<u64> {
        match (&self.first, &self.part) {
            (Some(first), _) => first.blocks(self.file.entry.size),
            (None, Some(part)) => part.ordered().to_vec(),
            (None, None) => Vec::new(),
        }
    }
}

/// The files that are being read, and the budget that they are charged to.
pub(super) struct ReadQueue<'a> {
    plan: &'a ScanPlan,
    budget: BudgetTracker,
    /// Orders to be sent to the readers.
    orders: Vec<ReadRequest>,
    /// Orders to be sent later.
    retries: Retries,
    /// By order. Boxed: they are large, and go from hand to hand.
    pending: BTreeMap<u64, Box<PendingRead>>,
    next_id: u64,
    /// Orders that were given up: their responses come too late.
    given_up: HashSet<u64>,
    /// The file ordered last.
    current: Option<u64>,
}

impl<'a> ReadQueue<'a> {
    pub(super) fn new(plan: &'a ScanPlan, ending: Deadline) -> Self {
        Self {
            plan,
            budget: BudgetTracker::new(plan.scrub.as_ref(), ending),
            orders: Vec::new(),
            retries: Retries::default(),
            pending: BTreeMap::new(),
            next_id: 0,
            given_up: HashSet::new(),
            current: None,
        }
    }

    pub(super) fn budget(&self) -> &BudgetTracker {
        &self.budget
    }

    pub(super) fn budget_mut(&mut self) -> &mut BudgetTracker {
        &mut self.budget
    }

    pub(super) fn in_flight(&self) -> usize {
        self.pending.len()
    }

    pub(super) fn has_unsent(&self) -> bool {
        !self.orders.is_empty()
    }

    /// Returns true if readers have orders that did not come back yet.
    pub(super) fn awaits_readers(&self) -> bool {
        self.pending.len() > self.orders.len() + self.retries.len()
    }

    /// Returns the file to show as the one that is being read: the largest with a progress of
    /// its own, which the reader of the screen waits for, or else the one ordered last.
    pub(super) fn current(&self) -> Option<CurrentFile<'_>> {
        let large = self.pending.values().filter(|pending| pending.blocks_read.is_some());
        let large = large.max_by_key(|pending| pending.charged);
        let ordered = self.current.and_then(|id| self.pending.get(&id));
        let pending = large.or(ordered).or_else(|| self.pending.values().next())?;
        Some(CurrentFile { path: &pending.file.path, percent: pending.percent_read() })
    }

    /// Bytes of the files under way.
    pub(super) fn bytes_under_way(&self) -> u64 {
        self.sum(|pending| pending.file.stat.size)
    }

    /// Bytes that the budget was charged for the files under way.
    pub(super) fn charged_under_way(&self) -> u64 {
        self.sum(|pending| pending.charged)
    }

    fn sum(&self, size: impl Fn(&PendingRead) -> u64) -> u64 {
        self.pending.values().map(|pending| size(pending)).fold(0, u64::saturating_add)
    }

    /// Blocks of the files that are read by their blocks now: their values are
    /// in memory.
    pub(super) fn blocks_under_way(&self) -> usize {
        let parts = self.pending.values().filter_map(|pending| pending.part.as_ref());
        parts.map(|part| part.recorded().len()).sum()
    }

    pub(super) fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Orders a file to be read: these blocks of it or, without any, all of it.
    pub(super) fn push(
        &mut self,
        id: u64,
        mut pending: Box<PendingRead>,
        blocks: Vec<u64>,
        kept: Vec<UnfinishedBlocks>,
    ) {
        let size = pending.file.stat.size;
        pending.charged = if blocks.is_empty() { size } else { bytes_of(&blocks, size) };
        self.budget.spend(pending.charged, pending.is_again);
        self.current = Some(id);
        let kept_blocks: usize = kept.iter().map(|part| part.values.len()).sum();
        pending.blocks_read = (pending.charged >= OWN_PROGRESS_MIN)
            .then(|| Arc::new(AtomicU64::new(kept_blocks as u64)));
        let order = ReadRequest {
            id,
            path: pending.file.path.clone(),
            stat: pending.file.stat.clone(),
            algorithms: pending.algorithms,
            // A second reading is of the medium, whatever the first one found,
            // and so is that of a file that is known to be damaged there.
            uses_cache: self.plan.reads_from == ContentSource::Cache
                && pending.first.is_none()
                && pending.file.known_damage().is_none(),
            blocks,
            kept,
            keeps_parts: self.keeps_parts(&pending),
            // The less is read with it, the less can change meanwhile.
            alone: pending.alone || pending.attempt > 0,
            blocks_read: pending.blocks_read.clone(),
        };
        match std::mem::take(&mut pending.is_retry) {
            true => self.retries.put(order, pending.attempt),
            false => self.orders.push(order),
        }
        self.pending.insert(id, pending);
    }

    /// Adds a file that waits for the order of another name of it.
    pub(super) fn push_waiting(&mut self, id: u64, pending: Box<PendingRead>) {
        self.pending.insert(id, pending);
    }

    /// Returns true if the values of finished parts are kept of a file.
    pub(super) fn keeps_parts(&self, pending: &PendingRead) -> bool {
        let is_large = match self.plan.purpose {
            Purpose::Update(_) => pending.file.stat.size >= KEEP_PARTS_MIN,
            _ => pending.part.is_some(),
        };
        is_large && pending.first.is_none()
    }

    pub(super) fn get_mut(&mut self, id: u64) -> Option<&mut PendingRead> {
        self.pending.get_mut(&id).map(|pending| &mut **pending)
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<Box<PendingRead>> {
        self.pending.remove(&id)
    }

    /// Takes the file that a response is for; `None` if it was given up.
    pub(super) fn answer(&mut self, id: u64) -> Result<Option<Box<PendingRead>>> {
        let pending = self.pending.remove(&id);
        if pending.is_none() && !self.given_up.contains(&id) {
            return Err(Error::Internal("an answer without a request".to_owned()));
        }
        Ok(pending)
    }

    /// Takes a file that a reader is stuck with, and no more response for it.
    pub(super) fn give_up(&mut self, id: u64) -> Option<Box<PendingRead>> {
        let pending = self.pending.remove(&id)?;
        self.given_up.insert(id);
        Some(pending)
    }

    /// Takes all files.
    pub(super) fn take(&mut self) -> BTreeMap<u64, Box<PendingRead>> {
        std::mem::take(&mut self.pending)
    }

    /// Gives back to the budget what a file was charged for and was not read.
    pub(super) fn refund(&mut self, pending: &PendingRead) {
        self.budget.refund(pending.charged, pending.is_again);
    }

    /// Returns the orders that are due, to be sent.
    pub(super) fn due_requests(&mut self) -> &mut Vec<ReadRequest> {
        self.retries.release(&mut self.orders);
        &mut self.orders
    }

    /// Returns the time until the next order is due, if that is less than `most`.
    pub(super) fn wait(&self, most: Duration) -> Duration {
        self.retries.wait(most)
    }
}
