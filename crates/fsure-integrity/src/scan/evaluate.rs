//! Stage 4: a content that was read, beside its record: the result for the path, or what has to
//! be read again before there is one. Asks the record and the system only by [`EvaluateLookup`].

use std::rc::Rc;

use super::LISTED_SIZE;
use super::candidate::Candidate;
use super::compare_blocks::{
    BlockComparison, FirstRead, ReadPair, are_proven, compare, look_again, nothing_to_compare,
    ranges,
};
use super::partial_read::PartialRead;
use super::path_result::PathResult;
use super::read_queue::PendingRead;
use super::read_request::ReadContent;
use crate::catalog::Row;
use crate::model::{Basis, DateRules, Evidence, Record, RecordState, Verdict};
use fsure_core::Result;
use fsure_core::block_hash::BlockValue;

/// The next step for a content that was read.
// It goes from hand to hand once for each file, and is a result nearly always.
#[allow(clippy::large_enum_variant)]
pub(super) enum Evaluation {
    /// All that was needed was read.
    Done(ReadResult),
    /// Nothing is reported as damaged after one reading: its blocks that differ are read again.
    ReadAgain(Box<PendingRead>),
    /// An edit by its date, as long as it is not known what dates say in this tree.
    Hold(Box<PendingRead>),
    /// Its readings were of different states of the file.
    Changed(Box<PendingRead>),
}

/// The result for a file by all of its readings.
pub(super) struct ReadResult {
    pub(super) result: PathResult,
    pub(super) evidence: Evidence,
    /// The blocks that were read, if these are not all.
    pub(super) part: Option<PartialRead>,
}

/// The questions of the evaluation that are asked for few files.
pub(super) trait EvaluateLookup {
    /// Returns the recorded block values of a row; none if the catalog cannot give them.
    fn block_values(&mut self, row: &Row) -> Result<Vec<BlockValue>>;

    /// Returns true if it is not known yet what other dates say in this tree.
    fn are_dates_in_doubt(&mut self) -> Result<bool>;

    /// Returns the rules for the dates of a file, as of now.
    fn date_rules(&self, file: &Candidate) -> DateRules;

    /// Returns the reason to doubt that no program wrote to a file whose stat is as recorded;
    /// `None` if that is proved.
    fn doubt_of_rot(&self, file: &Candidate) -> Option<String>;
}

/// Evaluates a content. The stat of the file in `pending` is that of the content. `is_list` is
/// true if the record is a list of files.
pub(super) fn evaluate(
    is_list: bool,
    mut pending: Box<PendingRead>,
    content: Rc<ReadContent>,
    lookup: &mut dyn EvaluateLookup,
) -> Result<Evaluation> {
    let first = pending.first.take();
    if first.as_ref().is_some_and(|first| !is_same_file(&first.content, &content)) {
        // Two readings of two contents prove nothing about either.
        return Ok(Evaluation::Changed(pending));
    }
    let rules = lookup.date_rules(&pending.file);
    let (RecordState::Sound(record), Some(row)) =
        (pending.file.state(), pending.file.comparable_row())
    else {
        let looks = first_pair(nothing_to_compare(&content), content);
        return Ok(Evaluation::Done(finish(*pending, looks, rules, lookup)));
    };
    if let Some(first) = first {
        let error = content.error.as_ref().or(first.content.error.as_ref());
        let reason = error.map(ToString::to_string);
        let looks = Readings { pair: look_again(record, first, &content), reason };
        return Ok(Evaluation::Done(finish(*pending, looks, rules, lookup)));
    }
    let recorded = match &pending.part {
        Some(part) => part.recorded().to_vec(),
        None if record.digests.agree(&content.digests) == Some(true) => Vec::new(),
        None => {
            let values = lookup.block_values(row)?;
            if are_proven(record, &values) { values } else { Vec::new() }
        }
    };
    let comparison = match &pending.part {
        Some(part) => part.compare(&content),
        None => compare(record, &recorded, &content),
    };
    if is_list && is_of_other_size_than_listed(record, &pending.file, &comparison) {
        let comparison = BlockComparison { evidence: Evidence::Different, ..comparison };
        let reason = Some("its digest is the listed one, and its size is not".to_owned());
        let unreadable = content.unreadable.clone();
        let pair = ReadPair { comparison, unreadable, content: Some(content) };
        return Ok(Evaluation::Done(finish(*pending, Readings { pair, reason }, rules, lookup)));
    }
    let verdict = pending.file.judge(comparison.evidence, rules);
    let is_same_size = record.entry.size == pending.file.entry.size;
    let is_edit = matches!(verdict, Verdict::Modified | Verdict::Reverted);
    if is_same_size && is_edit && lookup.are_dates_in_doubt()? {
        pending.first = Some(FirstRead { content, comparison, recorded });
        return Ok(Evaluation::Hold(pending));
    }
    if is_same_size && verdict.is_suspicious() {
        pending.first = Some(FirstRead { content, comparison, recorded });
        return Ok(Evaluation::ReadAgain(pending));
    }
    Ok(Evaluation::Done(finish(*pending, first_pair(comparison, content), rules, lookup)))
}

/// Gives an edit that was held the verdict of its first reading, now that it is known what
/// dates say.
pub(super) fn finish_held_edit(
    mut pending: Box<PendingRead>,
    lookup: &dyn EvaluateLookup,
) -> Option<ReadResult> {
    let FirstRead { content, comparison, .. } = pending.first.take()?;
    let rules = lookup.date_rules(&pending.file);
    Some(finish(*pending, first_pair(comparison, content), rules, lookup))
}

/// All readings of a file together, and the reason to report with them.
struct Readings {
    pair: ReadPair,
    reason: Option<String>,
}

/// Returns the readings of a file that was read once.
fn first_pair(comparison: BlockComparison, content: Rc<ReadContent>) -> Readings {
    let second = || "it could only be read at the second attempt".to_owned();
    let reason = content.error.as_ref().map(ToString::to_string);
    let reason = reason.or_else(|| content.needed_second_read.then(second));
    let unreadable = content.unreadable.clone();
    Readings { pair: ReadPair { comparison, unreadable, content: Some(content) }, reason }
}

fn finish(
    mut pending: PendingRead,
    readings: Readings,
    rules: DateRules,
    lookup: &dyn EvaluateLookup,
) -> ReadResult {
    let part = pending.part.take();
    let evidence = readings.pair.comparison.evidence;
    let verdict = pending.file.judge(evidence, rules);
    let doubt = match verdict {
        Verdict::Rotten => lookup.doubt_of_rot(&pending.file),
        _ => None,
    };
    let result = match doubt {
        Some(doubt) => result_of(pending.file, Verdict::Altered, readings.pair, Some(doubt)),
        None => result_of(pending.file, verdict, readings.pair, readings.reason),
    };
    ReadResult { result, evidence, part }
}

/// Returns true if a content is that of a list, and its size is not.
fn is_of_other_size_than_listed(
    record: &Record,
    file: &Candidate,
    comparison: &BlockComparison,
) -> bool {
    record.verified_s & LISTED_SIZE != 0
        && record.entry.size != file.entry.size
        && matches!(comparison.evidence, Evidence::Same | Evidence::SameOnSecondRead)
}

/// Returns the result for a file by all of its readings.
fn result_of(
    file: Candidate,
    verdict: Verdict,
    looks: ReadPair,
    reason: Option<String>,
) -> PathResult {
    let ReadPair { comparison, unreadable, content } = looks;
    let reason = reason.or_else(|| reason_of_copy(verdict, &file));
    let mut result = PathResult::of(file, verdict);
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

/// Returns the reason that a new date does not explain the other content of a
/// damaged copy; `None` for other verdicts and unchanged dates.
fn reason_of_copy(verdict: Verdict, file: &Candidate) -> Option<String> {
    if verdict != Verdict::DamagedCopy {
        return None;
    }
    let then = &file.sound_row()?.record.entry;
    if then.mtime_ns == file.entry.mtime_ns {
        return None;
    }
    let why = match then.file_system == file.entry.file_system {
        true => "most files have their recorded content under another date, as after a copy",
        false => "this is a copy of the recorded folder, or another file system",
    };
    Some(format!("{why}: its new date explains nothing"))
}

/// Returns true if two readings are of one state of one file.
fn is_same_file(one: &ReadContent, other: &ReadContent) -> bool {
    other.stat.is_unchanged_from(&one.stat)
}
