//! Files that are due in a scrub: as a whole, or as far as the budget goes.
//! A file with block values need not be read at once: the values are proven by
//! its digest, so that each block can be held against its own.

use std::time::Duration;

use super::compare_blocks::{BlockComparison, are_proven};
use super::evaluator::{Evaluator, PendingRead};
use super::file_read::ReadContent;
use super::result_recorder::PathResult;
use crate::catalog::{
    DueFile, RecheckPriority, Row, StoredRow, UnfinishedBlocks, VerifiedRange, add_part,
};
use crate::model::{Entry, Evidence, Record, ScrubSummary, Verdict};
use fsure_core::block_hash::{BLOCK, BlockValue, block_count};
use fsure_core::{Algorithm, AlgorithmSet, RelPath, Result};

/// Files from this size on are read by their blocks even if they fit, so that
/// a run that is cut off goes on inside them.
pub(super) const PARTS_MIN: u64 = 64 << 20;

/// Seconds for which the good blocks of a file that is not OK need not be read
/// again, if no age is given. If there were no end to it, they would not be
/// read as long as a single block is bad; if it were zero, a large bad file
/// would take every budget for itself.
const GOOD_FOR_S: i64 = 30 * 86_400;

/// The blocks to read of a file that need not be read as a whole.
pub(super) struct PartialRead {
    /// The values of all of its blocks, proven.
    recorded: Vec<BlockValue>,
    blake3: [u8; 32],
    /// Parts that are verified by now.
    verified: Vec<VerifiedRange>,
    /// The blocks that are read now.
    pub(super) ordered: Vec<u64>,
}

impl PartialRead {
    fn is_complete(&self) -> bool {
        let blocks: u64 = self.verified.iter().map(|part| part.blocks).sum();
        blocks == self.recorded.len() as u64
    }

    /// Takes the blocks that are as recorded for verified.
    fn add_equal(&mut self, read: impl Iterator<Item = (u64, BlockValue)>, verified_s: i64) {
        let recorded = &self.recorded;
        let is_equal = |read: &(u64, BlockValue)| recorded.get(read.0 as usize) == Some(&read.1);
        let mut run: Option<VerifiedRange> = None;
        let mut runs = Vec::new();
        for (block, _) in read.filter(is_equal) {
            match &mut run {
                Some(run) if run.first_block + run.blocks == block => run.blocks += 1,
                _ => runs.extend(run.replace(VerifiedRange {
                    first_block: block,
                    blocks: 1,
                    verified_s,
                })),
            }
        }
        for run in runs.into_iter().chain(run) {
            add_part(&mut self.verified, run);
        }
    }

    /// Compares the first reading of some of the blocks with the record.
    pub(super) fn compare(&self, content: &ReadContent) -> BlockComparison {
        let read = content.blocks.iter().filter_map(|(block, value)| Some((*block, (*value)?)));
        let differs = |(block, value): &(u64, BlockValue)| {
            self.recorded.get(*block as usize).is_none_or(|recorded| recorded != value)
        };
        let damaged: Vec<u64> = read.filter(differs).map(|(block, _)| block).collect();
        let evidence = match (content.unreadable.is_empty(), damaged.is_empty()) {
            (false, none) => Evidence::Partial { rest_differs: !none },
            (true, false) => Evidence::Different,
            (true, true) if content.needed_second_read => Evidence::SameOnSecondRead,
            (true, true) => Evidence::Same,
        };
        BlockComparison { evidence, damaged }
    }

    pub(super) fn recorded(&self) -> &[BlockValue] {
        &self.recorded
    }
}

/// The bytes of some blocks of a file of `size` bytes.
pub(super) fn bytes_of(blocks: &[u64], size: u64) -> u64 {
    blocks.iter().map(|block| size.saturating_sub(block * BLOCK).min(BLOCK)).sum()
}

/// The row of a recorded file that can be verified block by block.
fn splittable(stored: Option<&StoredRow>) -> Option<(&Row, [u8; 32])> {
    let Some(StoredRow::Sound(row)) = stored else { return None };
    let blake3 = row.record.digests.blake3?;
    (row.has_blocks() && row.record.entry.size > BLOCK).then_some((row, blake3))
}

impl Evaluator<'_> {
    /// Returns the counts of the scrub in the outcome of this run.
    pub(super) fn scrubbed(&mut self) -> &mut ScrubSummary {
        self.recorder.outcome.scrub.get_or_insert_default()
    }

    /// Returns the bytes that a file that is due takes, and the least of them
    /// that is worth while.
    pub(super) fn need(&mut self, due: &DueFile, left: u64) -> Result<(u64, u64)> {
        let StoredRow::Sound(row) = &due.stored else { return Ok((0, 0)) };
        if due.was_unreachable {
            // A stat costs nothing, and must not wait for a larger budget.
            return Ok((0, 0));
        }
        let size = row.record.entry.size;
        let Some((row, blake3)) = splittable(Some(&due.stored)).filter(|_| size > left) else {
            return Ok((size, size.min(if row.has_blocks() { BLOCK } else { size })));
        };
        let record = &row.record;
        let parts = self.recorder.catalog.parts(&record.path, &record.entry, &blake3)?;
        let missing = missing(&self.still_good(record, &record.entry, parts, due.is_again), size);
        let needed = if missing.is_empty() { size } else { bytes_of(&missing, size) };
        Ok((needed, needed.min(BLOCK)))
    }

    /// Passes by a file that does not fit, and reports it if it never would.
    pub(super) fn pass_by(&mut self, path: &RelPath, least: u64) {
        if least > self.budget.largest_possible() {
            self.scrubbed().note_too_large([path]);
        }
    }

    /// Orders a file that is due, or what the budget allows of it.
    pub(super) fn order_due(&mut self, mut pending: Box<PendingRead>) -> Result<()> {
        pending.is_again = self.is_again;
        if let Some(part) = self.plan_part(&pending)? {
            pending.algorithms = AlgorithmSet::of(&[Algorithm::Blake3]);
            pending.link = None;
            let (id, blocks) = (self.new_id(), part.ordered.clone());
            pending.part = Some(part);
            self.queue_read(id, pending, blocks, Vec::new());
            return Ok(());
        }
        let is_shared = pending.link.is_some_and(|key| self.links.get(&key).is_some());
        if pending.stat.size > self.budget.left().min(self.bytes_max) && !is_shared {
            self.pass_by(&pending.path, pending.stat.size);
            return Ok(());
        }
        self.request_read_once_per_inode(pending)
    }

    /// Returns true if a file that changed while it was read may be read once more.
    pub(super) fn may_retry(&self, pending: &PendingRead) -> bool {
        pending.stat.size <= self.budget.left()
    }

    /// Orders a file again of which not all was read when it changed.
    pub(super) fn order_anew(&mut self, mut pending: Box<PendingRead>) -> Result<()> {
        if let Ok(stat) = self.plan.root.stat(pending.path.as_bytes()) {
            pending.entry = self.entry(&pending.path, &stat, pending.device)?;
            pending.stat = stat;
        }
        (self.is_again, self.bytes_max) = (pending.is_again, u64::MAX);
        self.order_due(pending)
    }

    /// Chooses the blocks of a file to read; `None` if it is not to be read by blocks.
    fn plan_part(&mut self, pending: &PendingRead) -> Result<Option<PartialRead>> {
        let Some((row, blake3)) = splittable(pending.stored.as_ref()) else { return Ok(None) };
        let (size, record) = (pending.stat.size, &row.record);
        if size != record.entry.size {
            return Ok(None);
        }
        let parts = self.recorder.catalog.parts(&record.path, &pending.entry, &blake3)?;
        let mut verified = self.still_good(record, &pending.entry, parts, pending.is_again);
        let left = self.budget.left().min(self.bytes_max);
        let has_names = pending.stat.links > 1;
        let is_quick = has_names || size < PARTS_MIN;
        let is_timed = self.budget.ending.left().is_some() && !(has_names && size < PARTS_MIN);
        if verified.is_empty() && size <= left && is_quick && !is_timed {
            return Ok(None);
        }
        let recorded = self.recorder.blocks(row)?;
        if !are_proven(record, &recorded) {
            return Ok(None);
        }
        let mut ordered = missing(&verified, size);
        if ordered.is_empty() {
            // Nothing is well that was not read in this run.
            verified.clear();
            ordered = (0..block_count(size)).collect();
        }
        let (mut bytes, mut count) = (0, 0);
        while let Some(block) = ordered.get(count) {
            bytes += bytes_of(&[*block], size);
            if bytes > left {
                break;
            }
            count += 1;
        }
        ordered.truncate(count);
        Ok((!ordered.is_empty()).then_some(PartialRead { recorded, blake3, verified, ordered }))
    }

    /// The parts that still count: not from before the file was last verified
    /// as a whole, not from the future, and of a file that is not well none
    /// that is old. Nor one that was read within two ticks of the file's last
    /// change: another change in the same tick would not show in its stat.
    fn still_good(
        &self,
        record: &Record,
        entry: &Entry,
        mut parts: Vec<VerifiedRange>,
        is_again: bool,
    ) -> Vec<VerifiedRange> {
        let now_s = self.recorder.now_s;
        let max_age = self.plan.scrub.as_ref().and_then(|rules| rules.max_age);
        let good_for_s =
            max_age.map_or(GOOD_FOR_S, |age| i64::try_from(age.as_secs()).unwrap_or(i64::MAX));
        let oldest_s = if is_again { now_s.saturating_sub(good_for_s) } else { i64::MIN };
        let is_dated = record.verified_s <= now_s;
        let oldest_s = oldest_s.max(if is_dated { record.verified_s } else { i64::MIN });
        let granularity_ns = self.recorder.catalog.granularity_ns(entry.file_system);
        let is_racy = |part: &VerifiedRange| {
            let hashed_ns = part.verified_s.saturating_mul(1_000_000_000);
            Record { entry: entry.clone(), hashed_ns, ..record.clone() }.is_racy(granularity_ns)
        };
        parts.retain(|part| (oldest_s..=now_s).contains(&part.verified_s) && !is_racy(part));
        parts
    }

    /// Blocks of the files that are read by their blocks now: their values are
    /// in memory.
    pub(super) fn blocks_under_way(&self) -> usize {
        let parts = self.pending.values().filter_map(|pending| pending.part.as_ref());
        parts.map(|part| part.recorded.len()).sum()
    }

    /// Keeps what a reader has verified of a file that it is still reading.
    pub(super) fn keep_part(&mut self, id: u64, read: &UnfinishedBlocks) -> Result<()> {
        let Some(pending) = self.pending.get_mut(&id) else { return Ok(()) };
        let Some(part) = pending.part.as_mut().filter(|_| pending.first.is_none()) else {
            return Ok(());
        };
        let numbered = (read.first_block..).zip(read.values.iter().copied());
        part.add_equal(numbered, super::result_recorder::seconds(read.hashed_ns));
        let (path, entry) = (&pending.path, &pending.entry);
        self.recorder.keep_parts(path, entry, &part.blake3, &part.verified)
    }

    /// Ends a scrub whose time is over.
    pub(super) fn end_in_time(&mut self) {
        if self.budget.ending.is_over() {
            self.recorder.is_over = true;
        }
    }

    /// Returns true if the run ends before all orders came back, with a record
    /// that is sound and may be written.
    pub(super) fn is_cut_short(&self) -> bool {
        self.recorder.is_stopped() && !self.recorder.is_halted
    }

    /// Returns true if readers have orders that did not come back yet.
    pub(super) fn awaits_readers(&self) -> bool {
        self.pending.len() > self.orders.len() + self.retries.len()
    }

    /// Notes a file that differed at a first reading when the run came to its
    /// end: it comes first the next time, and is not reported as OK now.
    pub(super) fn note_undecided(&mut self, pending: &PendingRead) -> Result<()> {
        let (Some(_), Some(_)) = (&pending.first, &self.plan.scrub) else { return Ok(()) };
        self.scrubbed().undecided_files += 1;
        self.recorder.keep_undecided(&pending.path)
    }

    /// Does the same for all files whose second reading was not even begun.
    pub(super) fn note_all_undecided(&mut self) -> Result<()> {
        let left = std::mem::take(&mut self.pending);
        left.values().try_for_each(|pending| self.note_undecided(pending))
    }

    /// Notes how far the reading of a file came when the run came to its end.
    /// One that can only be read as a whole, and took most of the time, comes
    /// last from now on, or it would keep all others from their turn.
    pub(super) fn note_unfinished(
        &mut self,
        pending: &PendingRead,
        begun_ns: Option<i64>,
    ) -> Result<()> {
        if pending.first.is_some() {
            return self.note_undecided(pending);
        }
        if let Some(part) = &pending.part {
            self.note_partly(part, pending.stat.size);
            return Ok(());
        }
        let Some(begun_ns) = begun_ns else { return Ok(()) };
        let spent_ns = self.plan.clock.now_ns().saturating_sub(begun_ns).max(0).unsigned_abs();
        let ending = &self.budget.ending;
        if ending.is_over() && ending.is_half(Duration::from_nanos(spent_ns)) {
            self.recorder.keep_cut_off(&pending.path)?;
        }
        Ok(())
    }

    fn note_partly(&mut self, part: &PartialRead, size: u64) {
        let left = bytes_of(&missing(&part.verified, size), size);
        if left < size {
            let scrubbed = self.scrubbed();
            scrubbed.partly_files += 1;
            scrubbed.partly_bytes += size - left;
        }
    }

    /// Settles a file of which some blocks were read. One that is well so far
    /// has no verdict before all of it is.
    pub(super) fn settle_part(
        &mut self,
        mut part: PartialRead,
        mut settled: PathResult,
        evidence: Evidence,
    ) -> Result<()> {
        let is_well = matches!(settled.verdict, Verdict::Ok | Verdict::Touched);
        // What came only at a second attempt comes by again.
        let is_at_once = evidence != Evidence::SameOnSecondRead;
        if let Some(content) = settled.content.as_ref().filter(|_| is_at_once) {
            let read = content.blocks.iter().filter_map(|(block, value)| Some((*block, (*value)?)));
            part.add_equal(read, super::result_recorder::seconds(content.hashed_ns));
        }
        if is_well && part.is_complete() {
            settled.verified_s = part.verified.iter().map(|part| part.verified_s).min();
            return self.recorder.finish_path(settled);
        }
        if RecheckPriority::of(settled.verdict) == Some(RecheckPriority::ByAge) {
            // What is edited is read as a whole in its next turn.
            part.verified.clear();
        }
        if let Some(entry) = &settled.entry {
            let path = &settled.path;
            self.recorder.keep_parts(path, entry, &part.blake3, &part.verified)?;
        }
        if !is_well {
            return self.recorder.finish_path(settled);
        }
        self.note_partly(&part, settled.size());
        Ok(())
    }
}

/// The blocks of a file that are in none of these parts.
fn missing(parts: &[VerifiedRange], size: u64) -> Vec<u64> {
    let mut blocks = Vec::new();
    let mut next = 0;
    for part in parts {
        blocks.extend(next..part.first_block);
        next = part.first_block + part.blocks;
    }
    blocks.extend(next..block_count(size));
    blocks
}
