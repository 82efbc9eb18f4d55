//! Evaluates a content that was read, beside its record: once and, if that
//! would be damage, with a second reading.

use std::rc::Rc;

use fsure_os::mapped_write;

use super::LISTED_SIZE;
use super::compare_blocks::{
    BlockComparison, FirstRead, ReadPair, are_proven, compare, look_again, nothing_to_compare,
    ranges,
};
use super::entry_builder::known;
use super::evaluator::{Evaluator, PendingRead};
use super::file_read::{ReadContent, ReadOutcome};
use super::result_recorder::PathResult;
use crate::catalog::StoredRow;
use crate::model::{Basis, Evidence, Observation, RecordState, Verdict, judge};
use fsure_core::Result;

impl Evaluator<'_> {
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
        if self.is_in_doubt(verdict, &then, &pending.entry)? {
            return self.hold_edit(id, pending, content, comparison, recorded);
        }
        if verdict.is_suspicious() && then.size == pending.entry.size {
            // Nothing is reported as damaged after one reading.
            let first = FirstRead { content, comparison, recorded };
            let blocks = first.blocks(pending.entry.size);
            pending.first = Some(first);
            self.queue_read(id, pending, blocks, Vec::new());
            return Ok(());
        }
        self.finish_after_first_read(pending, comparison, content)
    }

    pub(super) fn finish_after_first_read(
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
        let ReadPair { comparison, unreadable, content } = looks;
        let mut verdict = self.judge(pending.stored.as_ref(), &pending.entry, comparison.evidence);
        let doubt = if verdict == Verdict::Rotten { self.doubt_of_rot(&pending) } else { None };
        if doubt.is_some() {
            verdict = Verdict::Altered;
        }
        let reason = doubt.or(reason).or_else(|| reason_of_copy(verdict, &pending));
        let mut settled =
            PathResult::new(pending.path, pending.stored, Some(pending.entry), verdict);
        // Where the date explains the change, the blocks that differ are an edit.
        if verdict.is_suspicious() {
            settled.damaged_blocks = comparison.damaged.len() as u64;
            settled.damaged = ranges(&comparison.damaged, settled.longest_size());
        }
        let unstable = || "its content came out differently each time".to_owned();
        settled.unreadable = unreadable;
        settled.reason = reason.or_else(|| content.is_none().then(unstable));
        settled.was_read = true;
        settled.basis = Basis::Content;
        settled.content = content;
        match part {
            Some(part) => self.settle_part(part, settled, comparison.evidence),
            None => self.settle_read(settled),
        }
    }
}

impl Evaluator<'_> {
    /// Returns the reason to doubt that no program wrote to a file whose stat
    /// is as recorded; `None` if that is proved.
    fn doubt_of_rot(&self, pending: &PendingRead) -> Option<String> {
        let Some(StoredRow::Sound(row)) = &pending.stored else { return None };
        let path = pending.path.as_bytes();
        if mapped_write::is_open_for_writing(&self.plan.root, path) == Some(true) {
            let why = "another process has it open for writing, and may have changed it in memory \
                       (mmap) without a new date";
            return Some(why.to_owned());
        }
        let kind = &self.recorder.catalog.file_system(pending.entry.file_system).volume.kind;
        let unseen_write_max_ns = mapped_write::unseen_write_max_ns(kind);
        row.record.may_hide_mapped_write(unseen_write_max_ns).then(|| {
            "it was last seen as recorded so soon after its last change that a program may have \
             changed it in memory (mmap) since, without a new date"
                .to_owned()
        })
    }
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
