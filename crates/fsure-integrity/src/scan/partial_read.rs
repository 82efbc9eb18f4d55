//! Some blocks of a file that a scrub reads, as far as its budget goes.
//! A file with block values need not be read at once: the values are proven by
//! its digest, so that each block can be held against its own.

use super::compare_blocks::BlockComparison;
use super::read_request::ReadContent;
use super::run_time::seconds;
use crate::catalog::{UnfinishedBlocks, VerifiedRange, add_part};
use crate::model::Evidence;
use fsure_core::block_hash::{BLOCK, BlockValue, block_count};

/// The blocks to read of a file that need not be read as a whole.
pub(super) struct PartialRead {
    /// The values of all of its blocks, proven.
    recorded: Vec<BlockValue>,
    blake3: [u8; 32],
    /// Parts that are verified by now.
    verified: Vec<VerifiedRange>,
    /// The blocks that are read now.
    ordered: Vec<u64>,
}

impl PartialRead {
    /// Chooses what to read of a file whose parts are verified so far: as many blocks as
    /// `left` bytes allow. `None` if that is not even one.
    pub(super) fn choose(
        (recorded, blake3): (Vec<BlockValue>, [u8; 32]),
        mut verified: Vec<VerifiedRange>,
        size: u64,
        left: u64,
    ) -> Option<Self> {
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
        (!ordered.is_empty()).then_some(Self { recorded, blake3, verified, ordered })
    }

    pub(super) fn blake3(&self) -> &[u8] {
        &self.blake3
    }

    pub(super) fn ordered(&self) -> &[u64] {
        &self.ordered
    }

    /// Returns the parts that are verified by now.
    pub(super) fn verified(&self) -> &[VerifiedRange] {
        &self.verified
    }

    /// Returns the time at which the oldest part was verified, seconds since 1970.
    pub(super) fn oldest_s(&self) -> Option<i64> {
        self.verified.iter().map(|part| part.verified_s).min()
    }

    /// Returns the bytes that are not verified yet of a file of `size` bytes.
    pub(super) fn left_bytes(&self, size: u64) -> u64 {
        bytes_of(&missing(&self.verified, size), size)
    }

    /// Takes no part for verified: the file is to be read as a whole.
    pub(super) fn forget_verified(&mut self) {
        self.verified.clear();
    }

    /// Takes what a reader has read of it so far.
    pub(super) fn add_unfinished(&mut self, read: &UnfinishedBlocks) {
        let numbered = (read.first_block..).zip(read.values.iter().copied());
        self.add_equal(numbered, seconds(read.hashed_ns));
    }

    /// Takes what was read of it.
    pub(super) fn add_content(&mut self, content: &ReadContent) {
        let read = content.blocks.iter().filter_map(|(block, value)| Some((*block, (*value)?)));
        self.add_equal(read, seconds(content.hashed_ns));
    }

    pub(super) fn is_complete(&self) -> bool {
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

/// The blocks of a file that are in none of these parts.
pub(super) fn missing(parts: &[VerifiedRange], size: u64) -> Vec<u64> {
    let mut blocks = Vec::new();
    let mut next = 0;
    for part in parts {
        blocks.extend(next..part.first_block);
        next = part.first_block + part.blocks;
    }
    blocks.extend(next..block_count(size));
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(verified: &[(u64, u64)], left: u64) -> Option<Vec<u64>> {
        let part = |(first_block, blocks)| VerifiedRange { first_block, blocks, verified_s: 1 };
        let verified = verified.iter().copied().map(part).collect();
        let values = (vec![[0; 32]; 4], [0; 32]);
        let part = PartialRead::choose(values, verified, 3 * BLOCK + 1, left);
        part.map(|part| part.ordered().to_vec())
    }

    #[test]
    fn what_is_not_verified_is_read_as_far_as_the_budget_goes() {
        assert_eq!(chosen(&[(1, 1)], u64::MAX), Some(vec![0, 2, 3]));
        assert_eq!(chosen(&[(1, 1)], 2 * BLOCK), Some(vec![0, 2]));
        assert_eq!(chosen(&[(0, 3)], 1), Some(vec![3]), "the last one is short");
        assert_eq!(chosen(&[(1, 1)], BLOCK - 1), None);
    }

    #[test]
    fn all_is_read_anew_if_all_is_verified() {
        assert_eq!(chosen(&[(0, 4)], u64::MAX), Some(vec![0, 1, 2, 3]));
    }
}
