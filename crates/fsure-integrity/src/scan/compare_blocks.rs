//! A content beside its record: the same, or which blocks are not.

use std::rc::Rc;

use super::read_request::ReadContent;
use crate::model::{ByteRange, Evidence, Record, merge_ranges, push_range};
use fsure_core::block_hash::{BLOCK, BlockValue, block_count, merge_blocks};

/// The result of comparing a content with its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BlockComparison {
    pub(super) evidence: Evidence,
    /// Numbers of the blocks that differ, in order; empty if it is not known which.
    pub(super) damaged: Vec<u64>,
}

/// Compares a content with its record. `recorded` are the record's block
/// values, or empty. Where they have no digest in common nothing is the same.
pub(super) fn compare(
    record: &Record,
    recorded: &[BlockValue],
    content: &ReadContent,
) -> BlockComparison {
    let is_same = record.digests.agree(&content.digests) == Some(true);
    match (content.unreadable.is_empty(), is_same) {
        (true, true) if content.needed_second_read => plain(Evidence::SameOnSecondRead),
        (true, true) => plain(Evidence::Same),
        (is_whole, _) => {
            let damaged = differing_blocks(record, recorded, content);
            let partial = Evidence::Partial { rest_differs: !damaged.is_empty() };
            BlockComparison {
                evidence: if is_whole { Evidence::Different } else { partial },
                damaged,
            }
        }
    }
}

fn plain(evidence: Evidence) -> BlockComparison {
    BlockComparison { evidence, damaged: Vec::new() }
}

/// The readable blocks that differ from the record, as far as block values
/// tell: those that both have, at the same length, and all that only one has.
fn differing_blocks(record: &Record, recorded: &[BlockValue], content: &ReadContent) -> Vec<u64> {
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

/// Returns true if `values` are the block values of the recorded file, which
/// has more than one block: they merge to its recorded BLAKE3 digest.
pub fn are_proven(record: &Record, values: &[BlockValue]) -> bool {
    values.len() > 1
        && values.len() as u64 == block_count(record.entry.size)
        && record.digests.blake3 == Some(merge_blocks(values))
}

fn length_of(block: u64, size: u64) -> u64 {
    size.saturating_sub(block * BLOCK).min(BLOCK)
}

/// The result of the first reading of a file, while the second is under way.
pub(super) struct FirstRead {
    pub(super) content: Rc<ReadContent>,
    pub(super) comparison: BlockComparison,
    pub(super) recorded: Vec<BlockValue>,
}

impl FirstRead {
    /// The numbers of the blocks to read again; empty for the whole of a file
    /// of `size` bytes.
    pub(super) fn blocks(&self, size: u64) -> Vec<u64> {
        if size > BLOCK { self.comparison.damaged.clone() } else { Vec::new() }
    }
}

/// The result of all readings of a file together.
pub(super) struct ReadPair {
    pub(super) comparison: BlockComparison,
    pub(super) unreadable: Vec<ByteRange>,
    /// The content, if it came out the same both times.
    pub(super) content: Option<Rc<ReadContent>>,
}

/// Combines a second reading with the first: of the whole file, or of the
/// blocks that differed.
pub(super) fn look_again(record: &Record, first: FirstRead, again: &Rc<ReadContent>) -> ReadPair {
    if first.comparison.damaged.is_empty() || first.content.blocks.is_empty() {
        let mut comparison = compare(record, &first.recorded, again);
        if comparison.evidence == Evidence::Same {
            comparison.evidence = Evidence::SameOnSecondRead;
        }
        let is_stable = again.digests == first.content.digests;
        let content = is_stable.then_some(first.content);
        return ReadPair { comparison, unreadable: again.unreadable.clone(), content };
    }
    // Both lists are in order: a large file may have millions of blocks.
    let value_in = |content: &ReadContent, block: u64| {
        let place = content.blocks.binary_search_by_key(&block, |(number, _)| *number).ok()?;
        content.blocks[place].1
    };
    let still_differs = |block: &u64| match value_in(again, *block) {
        Some(value) => first.recorded.get(*block as usize) != Some(&value),
        // Not there any more to be read: reported as unreadable, not as damage.
        None => *block >= block_count(again.stat.size),
    };
    let damaged: Vec<u64> = first.comparison.damaged.into_iter().filter(still_differs).collect();
    let unreadable = [&first.content.unreadable[..], &again.unreadable[..]].concat();
    let unreadable = merge_ranges(&unreadable);
    let evidence = match (unreadable.is_empty(), damaged.is_empty()) {
        (true, true) => Evidence::SameOnSecondRead,
        (true, false) => Evidence::Different,
        (false, none) => Evidence::Partial { rest_differs: !none },
    };
    let is_stable = again
        .blocks
        .iter()
        .all(|(block, value)| value.is_some() && *value == value_in(&first.content, *block));
    let content = is_stable.then_some(first.content);
    ReadPair { comparison: BlockComparison { evidence, damaged }, unreadable, content }
}

/// The comparison of a content of which nothing is recorded.
pub(super) fn nothing_to_compare(content: &ReadContent) -> BlockComparison {
    let evidence = if content.unreadable.is_empty() {
        Evidence::Different
    } else {
        Evidence::Partial { rest_differs: false }
    };
    BlockComparison { evidence, damaged: Vec::new() }
}

/// Blocks as ranges of bytes of a file of `size` bytes.
pub(super) fn ranges(blocks: &[u64], size: u64) -> Vec<ByteRange> {
    let mut ranges = Vec::new();
    for block in blocks {
        push_range(&mut ranges, block * BLOCK..((block + 1) * BLOCK).min(size));
    }
    ranges
}
