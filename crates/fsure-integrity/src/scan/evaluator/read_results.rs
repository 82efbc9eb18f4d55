//! Evaluates what readers bring back: a content beside its record, once and, if that would be
//! damage, with a second reading; and orders that brought no content.

use std::rc::Rc;
use std::time::Duration;

use fsure_os::root_dir::Root;
use fsure_os::{Kind, Stat, mapped_write};

use super::{Evaluator, ScrubTurn};
use crate::catalog::{Catalog, RecheckPriority, StoredRow, UnfinishedBlocks};
use crate::model::{Basis, Evidence, Observation, RecordState, Verdict, judge};
use crate::scan::LISTED_SIZE;
use crate::scan::compare_blocks::{
    BlockComparison, FirstRead, ReadPair, are_proven, compare, look_again, nothing_to_compare,
    ranges,
};
use crate::scan::entry_builder::known;
use crate::scan::partial_read::PartialRead;
use crate::scan::path_result::PathResult;
use crate::scan::read_queue::PendingRead;
use crate::scan::read_request::{ReadContent, ReadOutcome, ReadRequest};
use fsure_core::{Result, timeout_error};

/// Most attempts to read a file that changes while it is read.
const ATTEMPTS_MAX: u32 = 3;

impl Evaluator<'_> {
    /// Keeps the values of a part of a large file that is being read.
    pub(in crate::scan) fn store_partial_blocks(
        &mut self,
        id: u64,
        stat: &Stat,
        blocks: &UnfinishedBlocks,
    ) -> Result<()> {
        let Some(pending) = self.reads.get_mut(id) else { return Ok(()) };
        let Some(part) = &mut pending.part else {
            let (path, device) = (pending.path.clone(), pending.device);
            let entry = self.entry(&path, stat, device)?;
            return self.recorder.keep_unfinished(&path, &entry, blocks);
        };
        if !stat.is_unchanged_from(&pending.stat) || pending.first.is_some() {
            return Ok(());
        }
        part.add_unfinished(blocks);
        let (path, entry) = (&pending.path, &pending.entry);
        self.recorder.keep_parts(path, entry, part.blake3(), part.verified())
    }

    /// Takes a reader's response.
    pub(in crate::scan) fn handle_read_outcome(
        &mut self,
        order: ReadRequest,
        reading: ReadOutcome,
    ) -> Result<()> {
        let Some(pending) = self.reads.answer(order.id)? else { return Ok(()) };
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
            let Some(mut other) = self.reads.remove(id) else {
                continue;
            };
            match content {
                Some(content) => self.evaluate_content(id, other, Rc::clone(content))?,
                None => {
                    other.link = None;
                    self.reads.push(id, other, Vec::new(), Vec::new());
                }
            }
        }
        Ok(())
    }

    /// Evaluates a content that was read.
    pub(super) fn evaluate_content(
        &mut self,
        id: u64,
        mut pending: Box<PendingRead>,
        content: Rc<ReadContent>,
    ) -> Result<()> {
        if pending.first.as_ref().is_some_and(|first| !is_same_file(&first.content, &content)) {
            // Two readings of two contents prove nothing about either.
            return self.handle_read_failure(id, pending, ReadOutcome::Changed);
        }
        if pending.part.is_some() && !content.stat.is_unchanged_from(&pending.stat) {
            // What was read of it earlier was read of another state.
            return self.handle_read_failure(id, pending, ReadOutcome::Changed);
        }
        pending.stat = content.stat.clone();
        pending.entry = self.entry(&pending.path, &content.stat, pending.device)?;
        let rules = self.date_rules(pending.stored.as_ref(), &pending.entry);
        let known = known(pending.stored.as_ref(), &pending.entry, rules.granularity_ns);
        let (RecordState::Sound(record), Some(StoredRow::Sound(row))) = (known, &pending.stored)
        else {
            return self.finish_after_first_read(pending, nothing_to_compare(&content), content);
        };
        if let Some(first) = pending.first.take() {
            let error = content.error.as_ref().or(first.content.error.as_ref());
            let reason = error.map(ToString::to_string);
            let looks = look_again(record, first, &content);
            return self.finish_after_reads(pending, looks, reason);
        }
        let recorded = if let Some(part) = &pending.part {
            part.recorded().to_vec()
        } else if record.digests.agree(&content.digests) == Some(true) {
            Vec::new()
        } else {
            let values = self.recorder.blocks(row)?;
            if are_proven(record, &values) { values } else { Vec::new() }
        };
        let comparison = match &pending.part {
            Some(part) => part.compare(&content),
            None => compare(record, &recorded, &content),
        };
        let is_listed_size = !self.plan.is_list
            || record.verified_s & LISTED_SIZE == 0
            || record.entry.size == pending.entry.size;
        let is_same = matches!(comparison.evidence, Evidence::Same | Evidence::SameOnSecondRead);
        if is_same && !is_listed_size {
            let comparison = BlockComparison { evidence: Evidence::Different, ..comparison };
            let reason = Some("its digest is the listed one, and its size is not".to_owned());
            let unreadable = content.unreadable.clone();
            return self.finish_after_reads(
                pending,
                ReadPair { comparison, unreadable, content: Some(content) },
                reason,
            );
        }
        let found = Observation::Present(&pending.entry, comparison.evidence);
        let verdict = judge(known, found, rules);
        let then = record.entry.clone();
        let is_same_size = then.size == pending.entry.size;
        let is_edit = matches!(verdict, Verdict::Modified | Verdict::Reverted);
        if is_edit && is_same_size && self.are_dates_in_doubt()? {
            self.held_edits.push(id, pending, FirstRead { content, comparison, recorded });
            return match self.held_edits.is_full() {
                true => self.decide_held_edits(),
                false => Ok(()),
            };
        }
        if verdict.is_suspicious() && is_same_size {
            // Nothing is reported as damaged after one reading.
            let first = FirstRead { content, comparison, recorded };
            let blocks = first.blocks(pending.entry.size);
            pending.first = Some(first);
            self.reads.push(id, pending, blocks, Vec::new());
            return Ok(());
        }
        self.finish_after_first_read(pending, comparison, content)
    }

    fn finish_after_first_read(
        &mut self,
        pending: Box<PendingRead>,
        comparison: BlockComparison,
        content: Rc<ReadContent>,
    ) -> Result<()> {
        let second = || "it could only be read at the second attempt".to_owned();
        let reason = content.error.as_ref().map(ToString::to_string);
        let reason = reason.or_else(|| content.needed_second_read.then(second));
        let unreadable = content.unreadable.clone();
        self.finish_after_reads(
            pending,
            ReadPair { comparison, unreadable, content: Some(content) },
            reason,
        )
    }

    fn finish_after_reads(
        &mut self,
        mut pending: Box<PendingRead>,
        looks: ReadPair,
        reason: Option<String>,
    ) -> Result<()> {
        let part = pending.part.take();
        let evidence = looks.comparison.evidence;
        let verdict = self.judge(pending.stored.as_ref(), &pending.entry, evidence);
        let doubt = match verdict {
            Verdict::Rotten => doubt_of_rot(&self.plan.root, self.recorder.catalog(), &pending),
            _ => None,
        };
        let result = match doubt {
            Some(doubt) => result_of(*pending, Verdict::Altered, looks, Some(doubt)),
            None => result_of(*pending, verdict, looks, reason),
        };
        match part {
            Some(part) => self.finish_part(part, result, evidence),
            None => self.finish_read(result),
        }
    }

    /// Returns true if it is not known yet what other dates say in this tree.
    fn are_dates_in_doubt(&mut self) -> Result<bool> {
        // Which looks at a sample of the tree.
        Ok(self.recorder.precheck_once()? && self.recorder.mtimes().is_in_doubt())
    }

    /// Decides the meaning of other dates, and gives the edits that wait their
    /// verdict. Returns true if some of them are read a second time.
    pub(in crate::scan) fn finish_held_edits(&mut self) -> Result<bool> {
        if self.held_edits.is_empty() {
            return Ok(false);
        }
        self.decide_held_edits()?;
        Ok(self.reads.in_flight() > 0)
    }

    fn decide_held_edits(&mut self) -> Result<()> {
        let held = self.held_edits.take();
        self.recorder.mtimes_mut().decide(held.len() as u64);
        for (id, mut pending) in held {
            if self.recorder.mtimes().explains_nothing() {
                // Nothing is reported as damaged after one reading.
                let first = pending.first.as_ref();
                let blocks = first.map_or_else(Vec::new, |first| first.blocks(pending.entry.size));
                self.reads.push(id, pending, blocks, Vec::new());
            } else if let Some(FirstRead { content, comparison, .. }) = pending.first.take() {
                self.finish_after_first_read(pending, comparison, content)?;
            }
        }
        Ok(())
    }

    /// Finishes what was read: at once, or with those that may be found to have
    /// moved.
    fn finish_read(&mut self, mut result: PathResult) -> Result<()> {
        let content = result.content.as_ref().filter(|_| result.unreadable.is_empty());
        let (Verdict::New, Some(content), Some(entry)) = (result.verdict, content, &result.entry)
        else {
            return self.finish(result);
        };
        let key = self.moves.content_key(entry, &content.digests);
        let (Some(key), Some(_)) = (key, self.moves.wants(entry)?) else {
            return self.finish(result);
        };
        let Some(is_recorded) = self.recorder.write_and_count(&mut result)? else { return Ok(()) };
        self.moves.defer_content(&result.path, &key, is_recorded)
    }

    /// Finishes a file of which some blocks were read. One that is well so far
    /// has no verdict before all of it is.
    fn finish_part(
        &mut self,
        mut part: PartialRead,
        mut result: PathResult,
        evidence: Evidence,
    ) -> Result<()> {
        let is_well = matches!(result.verdict, Verdict::Ok | Verdict::Touched);
        // What came only at a second attempt comes by again.
        let is_at_once = evidence != Evidence::SameOnSecondRead;
        if let Some(content) = result.content.as_ref().filter(|_| is_at_once) {
            part.add_content(content);
        }
        if is_well && part.is_complete() {
            result.verified_s = part.oldest_s();
            return self.recorder.finish_path(result);
        }
        if RecheckPriority::of(result.verdict) == Some(RecheckPriority::ByAge) {
            // What is edited is read as a whole in its next turn.
            part.forget_verified();
        }
        if let Some(entry) = &result.entry {
            self.recorder.keep_parts(&result.path, entry, part.blake3(), part.verified())?;
        }
        if !is_well {
            return self.recorder.finish_path(result);
        }
        self.note_partly(&part, result.size());
        Ok(())
    }

    /// Notes how far the reading of a file came when the run came to its end.
    /// One that can only be read as a whole, and took most of the time, comes
    /// last from now on, or it would keep all others from their turn.
    fn note_unfinished(&mut self, pending: &PendingRead, begun_ns: Option<i64>) -> Result<()> {
        if pending.first.is_some() {
            return self.note_undecided(pending);
        }
        if let Some(part) = &pending.part {
            self.note_partly(part, pending.stat.size);
            return Ok(());
        }
        let Some(begun_ns) = begun_ns else { return Ok(()) };
        let spent_ns = self.plan.clock.now_ns().saturating_sub(begun_ns).max(0).unsigned_abs();
        let deadline = self.reads.budget().deadline();
        if deadline.is_over() && deadline.is_half(Duration::from_nanos(spent_ns)) {
            self.recorder.keep_cut_off(&pending.path)?;
        }
        Ok(())
    }

    fn note_partly(&mut self, part: &PartialRead, size: u64) {
        let left = part.left_bytes(size);
        if left < size {
            let scrubbed = self.recorder.report_mut().scrub_mut();
            scrubbed.partly_files += 1;
            scrubbed.partly_bytes += size - left;
        }
    }

    /// Notes a file that differed at a first reading when the run came to its
    /// end: it comes first the next time, and is not reported as OK now.
    fn note_undecided(&mut self, pending: &PendingRead) -> Result<()> {
        let (Some(_), Some(_)) = (&pending.first, &self.plan.scrub) else { return Ok(()) };
        self.recorder.report_mut().scrub_mut().undecided_files += 1;
        self.recorder.keep_undecided(&pending.path)
    }

    /// Does the same for all files whose second reading was not even begun.
    pub(in crate::scan) fn note_all_undecided(&mut self) -> Result<()> {
        let left = self.reads.take();
        left.values().try_for_each(|pending| self.note_undecided(pending))
    }

    /// Orders a file again, by itself: a reader that had it in hand with
    /// others got stuck at one of them.
    pub(in crate::scan) fn retry_alone(&mut self, id: u64) {
        let Some(mut pending) = self.reads.give_up(id) else { return };
        pending.alone = true;
        let blocks = pending.ordered_blocks();
        self.reads.refund(&pending);
        let id = self.reads.new_id();
        self.reads.push(id, pending, blocks, Vec::new());
    }

    /// Gives up a file for which the storage does not respond.
    pub(in crate::scan) fn abandon(&mut self, id: u64, timeout: Duration) -> Result<()> {
        let Some(pending) = self.reads.give_up(id) else { return Ok(()) };
        let mut all = vec![(id, pending)];
        // Its other names would only get stuck in turn.
        if let Some(key) = all[0].1.link.filter(|_| all[0].1.first.is_none()) {
            let waiting = self.links.give_up(&key);
            all.extend(waiting.iter().filter_map(|id| Some((*id, self.reads.remove(*id)?))));
        }
        for (id, pending) in all {
            self.handle_read_failure(id, pending, ReadOutcome::Unopened(timeout_error(timeout)))?;
        }
        Ok(())
    }

    pub(super) fn handle_read_failure(
        &mut self,
        id: u64,
        mut pending: Box<PendingRead>,
        failed: ReadOutcome,
    ) -> Result<()> {
        if !matches!(failed, ReadOutcome::Changed) && pending.first.is_none() {
            // Nothing of it was read.
            self.reads.refund(&pending);
        }
        match failed {
            ReadOutcome::Changed
                if pending.attempt + 1 < ATTEMPTS_MAX
                    && pending.stat.size <= self.reads.budget().left() =>
            {
                pending.first = None;
                pending.link = None;
                pending.attempt += 1;
                pending.is_retry = true;
                if pending.part.take().is_some() {
                    return self.order_anew(pending);
                }
                self.reads.push(id, pending, Vec::new(), Vec::new());
                Ok(())
            }
            ReadOutcome::Changed => self.finish_changed(pending),
            ReadOutcome::Gone if self.is_back(&pending) => {
                // Renamed away and back: an attempt as any other, or a name that
                // comes and goes all the time would be ordered without end.
                self.handle_read_failure(id, pending, ReadOutcome::Changed)
            }
            ReadOutcome::Gone => {
                // Between the walk and the reading; the record decides.
                self.process_missing(pending.path, pending.stored)
            }
            ReadOutcome::Denied(error) => {
                self.finish_unread(pending, Evidence::Denied, Some(error.to_string()))
            }
            ReadOutcome::Unopened(error) | ReadOutcome::NoMeans(error) => {
                let evidence = Evidence::Partial { rest_differs: false };
                self.finish_unread(pending, evidence, Some(error.to_string()))
            }
            ReadOutcome::Read(_) | ReadOutcome::Stopped | ReadOutcome::CutOff(_) => {
                unreachable!("no failures")
            }
        }
    }

    /// Returns true if a file that was gone when it was to be read is there
    /// again under the name that decides about it.
    fn is_back(&mut self, pending: &PendingRead) -> bool {
        let path = &pending.path;
        let decides = pending.stored.as_ref().is_none_or(|stored| stored.path() == path);
        let stat = self.plan.root.stat(path.as_bytes()).ok().filter(|_| decides);
        stat.is_some_and(|stat| {
            stat.kind == Kind::File && !self.listed.is_alias(&self.plan.root, path, &stat)
        })
    }

    /// It changed at every attempt: busy, or no file at all any more.
    fn finish_changed(&mut self, pending: Box<PendingRead>) -> Result<()> {
        match self.plan.root.stat(pending.path.as_bytes()) {
            Ok(stat) if stat.kind != Kind::File => {
                self.process_entry(pending.path, pending.stored, &stat, pending.device)
            }
            _ => {
                let reason = match pending.attempt + 1 {
                    1 => "it changed while it was read, and the budget is used up".to_owned(),
                    attempts => format!("it changed during each of {attempts} attempts"),
                };
                self.finish_unread(pending, Evidence::Busy, Some(reason))
            }
        }
    }

    fn finish_unread(
        &mut self,
        pending: Box<PendingRead>,
        evidence: Evidence,
        reason: Option<String>,
    ) -> Result<()> {
        let verdict = self.judge(pending.stored.as_ref(), &pending.entry, evidence);
        let mut result =
            PathResult::new(pending.path, pending.stored, Some(pending.entry), verdict);
        if matches!(evidence, Evidence::Partial { .. }) {
            result.unreadable = std::iter::once(0..result.size()).collect();
        }
        result.reason = reason;
        result.basis = Basis::Content;
        self.finish(result)
    }

    /// Orders a file again of which not all was read when it changed.
    fn order_anew(&mut self, mut pending: Box<PendingRead>) -> Result<()> {
        if let Ok(stat) = self.plan.root.stat(pending.path.as_bytes()) {
            pending.entry = self.entry(&pending.path, &stat, pending.device)?;
            pending.stat = stat;
        }
        self.begin_turn(ScrubTurn { is_again: pending.is_again, bytes_max: u64::MAX });
        self.order_due(pending)
    }
}

/// Returns the result for a file by all of its readings.
fn result_of(
    pending: PendingRead,
    verdict: Verdict,
    looks: ReadPair,
    reason: Option<String>,
) -> PathResult {
    let ReadPair { comparison, unreadable, content } = looks;
    let reason = reason.or_else(|| reason_of_copy(verdict, &pending));
    let mut result = PathResult::new(pending.path, pending.stored, Some(pending.entry), verdict);
    // Where the date explains the change, the blocks that differ are an edit.
    if verdict.is_suspicious() {
        result.damaged_blocks = comparison.damaged.len() as u64;
        result.damaged = ranges(&comparison.damaged, result.longest_size());
    }
    let unstable = || "its content came out differently each time".to_owned();
    result.unreadable = unreadable;
    result.reason = reason.or_else(|| content.is_none().then(unstable));
    result.was_read = true;
    result.basis = Basis::Content;
    result.content = content;
    result
}

/// Returns the reason to doubt that no program wrote to a file whose stat
/// is as recorded; `None` if that is proved.
fn doubt_of_rot(root: &Root, catalog: &Catalog, pending: &PendingRead) -> Option<String> {
    let Some(StoredRow::Sound(row)) = &pending.stored else { return None };
    let path = pending.path.as_bytes();
    if mapped_write::is_open_for_writing(root, path) == Some(true) {
        let why = "another process has it open for writing, and may have changed it in memory \
                   (mmap) without a new date";
        return Some(why.to_owned());
    }
    let kind = &catalog.file_system(pending.entry.file_system).volume.kind;
    let unseen_write_max_ns = mapped_write::unseen_write_max_ns(kind);
    row.record.may_hide_mapped_write(unseen_write_max_ns).then(|| {
        "it was last seen as recorded so soon after its last change that a program may have \
         changed it in memory (mmap) since, without a new date"
            .to_owned()
    })
}

/// Returns the reason that a new date does not explain the other content of a
/// damaged copy; `None` for other verdicts and unchanged dates.
fn reason_of_copy(verdict: Verdict, pending: &PendingRead) -> Option<String> {
    let Some(StoredRow::Sound(row)) = &pending.stored else { return None };
    let then = &row.record.entry;
    if verdict != Verdict::DamagedCopy || then.mtime_ns == pending.entry.mtime_ns {
        return None;
    }
    let why = match then.file_system == pending.entry.file_system {
        true => "most files have their recorded content under another date, as after a copy",
        false => "it is on another file system than recorded, as a copy is",
    };
    Some(format!("{why}: its new date explains nothing"))
}

/// Returns true if two readings are of one state of one file.
fn is_same_file(one: &ReadContent, other: &ReadContent) -> bool {
    other.stat.is_unchanged_from(&one.stat)
}
