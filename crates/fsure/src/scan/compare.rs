//! A content beside its record: the same, or which blocks are not.

use std::rc::Rc;

use super::hash::{BLOCK, BlockValue, block_count, merge_blocks};
use super::reader::Content;
use super::span::push_merged;
use crate::words::{ByteRange, Evidence, Record};

/// What a comparison says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Comparison {
    pub(super) evidence: Evidence,
    /// Blocks that differ, in order; empty where nothing tells which.
    pub(super) damaged: Vec<u64>,
}

/// Compares a content with its record. `recorded` are the record's block
/// values, or empty.
pub(super) fn compare(record: &Record, recorded: &[BlockValue], content: &Content) -> Comparison {
    if content.unreadable.is_empty() {
        let same = record.digests.agree(&content.digests);
        match same.expect("a file is read with the algorithms of its record") {
            true if content.needed_second_read => plain(Evidence::SameOnSecondRead),
            true => plain(Evidence::Same),
            false => Comparison {
                evidence: Evidence::Different,
                damaged: differing_blocks(record, recorded, content),
            },
        }
    } else {
        let damaged = differing_blocks(record, recorded, content);
        Comparison { evidence: Evidence::Partial { rest_differs: !damaged.is_empty() }, damaged }
    }
}

fn plain(evidence: Evidence) -> Comparison {
    Comparison { evidence, damaged: Vec::new() }
}

/// The readable blocks that differ from the record, as far as block values
/// tell: those that both have, at the same length, and all that only one has.
fn differing_blocks(record: &Record, recorded: &[BlockValue], content: &Content) -> Vec<u64> {
    let (then, now) = (record.entry.size, content.stat.size);
    let longer = block_count(then.max(now));
    if longer <= 1 {
        return if content.unreadable.is_empty() { vec![0] } else { Vec::new() };
    }
    let same_length = |block: u64| length_of(block, then) == length_of(block, now);
    if content.blocks.is_empty() {
        // The lengths are all that tells.
        let first = if content.unreadable.is_empty() { 0 } else { block_count(now) };
        return (first..longer).filter(|block| !same_length(*block)).collect();
    }
    let known = if are_proven(record, recorded) { recorded } else { &[] };
    let differs = |block: u64, value: BlockValue| {
        !same_length(block) || known.get(block as usize).is_some_and(|known| *known != value)
    };
    let read = content.blocks.iter().filter_map(|(block, value)| Some((*block, (*value)?)));
    let mut damaged: Vec<u64> =
        read.filter(|(block, value)| differs(*block, *value)).map(|(block, _)| block).collect();
    damaged.extend(block_count(now)..longer);
    damaged
}

/// Whether block values are those of the record: they merge to its digest.
pub(super) fn are_proven(record: &Record, values: &[BlockValue]) -> bool {
    values.len() > 1
        && values.len() as u64 == block_count(record.entry.size)
        && record.digests.blake3 == Some(merge_blocks(values))
}

fn length_of(block: u64, size: u64) -> u64 {
    size.saturating_sub(block * BLOCK).min(BLOCK)
}

/// Puts a second look at the blocks that differed beside the first.
fn second_look(recorded: &[BlockValue], first: &Comparison, again: &Content) -> Comparison {
    let still = |block: &u64| {
        let read = again.blocks.iter().find(|(number, _)| number == block);
        match read {
            Some((_, Some(value))) => recorded.get(*block as usize) != Some(value),
            // Unreadable now: told as that, not as damage.
            _ => false,
        }
    };
    let damaged: Vec<u64> = first.damaged.iter().copied().filter(|block| still(block)).collect();
    let evidence = match (again.unreadable.is_empty(), damaged.is_empty()) {
        (true, true) => Evidence::SameOnSecondRead,
        (true, false) => Evidence::Different,
        (false, none) => Evidence::Partial { rest_differs: !none },
    };
    Comparison { evidence, damaged }
}

/// What the first look at a file said, while the second is under way.
pub(super) struct FirstLook {
    pub(super) content: Rc<Content>,
    pub(super) comparison: Comparison,
    pub(super) recorded: Vec<BlockValue>,
}

/// The verdict of a second look, and whether both looks saw the same.
pub(super) fn look_again(
    record: &Record,
    first: &FirstLook,
    again: &Content,
) -> (Comparison, bool) {
    let was_whole = first.comparison.damaged.is_empty() || first.content.blocks.is_empty();
    if was_whole {
        let mut comparison = compare(record, &first.recorded, again);
        if comparison.evidence == Evidence::Same {
            comparison.evidence = Evidence::SameOnSecondRead;
        }
        return (comparison, again.digests == first.content.digests);
    }
    let same_value = |seen: &(u64, Option<BlockValue>)| first.content.blocks.contains(seen);
    let is_stable = again.blocks.iter().all(same_value);
    (second_look(&first.recorded, &first.comparison, again), is_stable)
}

/// The first look is the complete one; the second knows better what cannot be
/// read.
pub(super) fn merge_looks(first: FirstLook, again: Rc<Content>) -> Rc<Content> {
    if again.unreadable.is_empty() { first.content } else { again }
}

/// The comparison of a content of which nothing is recorded.
pub(super) fn nothing_to_compare(content: &Content) -> Comparison {
    let evidence = if content.unreadable.is_empty() {
        Evidence::Different
    } else {
        Evidence::Partial { rest_differs: false }
    };
    Comparison { evidence, damaged: Vec::new() }
}

/// Blocks as ranges of bytes of a file of `size` bytes.
pub(super) fn ranges(blocks: &[u64], size: u64) -> Vec<ByteRange> {
    let mut ranges = Vec::new();
    for block in blocks {
        push_merged(&mut ranges, block * BLOCK..((block + 1) * BLOCK).min(size));
    }
    ranges
}
