//! The stretches that a file is read in. Those of a large file are worked out
//! when a reader takes them: its size is what it claims, and memory must not
//! grow with that.

use std::ops::Range;

use super::read_request::ReadRequest;
use crate::catalog::UnfinishedBlocks;
use crate::model::push_range;
use fsure_core::block_hash::{BLOCK, BlockValue, SequentialDigests, block_count};

/// Bytes of a large file that one reader takes at once: long enough for
/// sequential reading, short enough to spread a file over the readers.
pub(super) const SEGMENT_BYTES: u64 = 64 << 20;

/// The stretches of one file, in order.
pub(super) enum Segments {
    /// These.
    Listed(Vec<Range<u64>>),
    /// All of a file of `size` bytes, but for the segments that are kept.
    All {
        size: u64,
        /// The numbers of the segments to read, as runs, each behind the count
        /// of those before it.
        runs: Vec<(u64, Range<u64>)>,
    },
}

impl Segments {
    /// All of a file in one stretch where its bytes are needed in order, else
    /// in segments, without those whose values are kept already: these are added
    /// to `blocks`.
    pub(super) fn of(
        order: &ReadRequest,
        size: u64,
        blocks: &mut Vec<(u64, Option<BlockValue>)>,
    ) -> Self {
        if !order.blocks.is_empty() {
            let mut ranges = Vec::new();
            for block in &order.blocks {
                push_range(&mut ranges, block * BLOCK..((block + 1) * BLOCK).min(size));
            }
            ranges.retain(|range| !range.is_empty());
            if order.keeps_parts {
                ranges = ranges.into_iter().flat_map(in_pieces).collect();
            }
            return Self::listed(ranges);
        }
        if SequentialDigests::new(order.algorithms).is_some() || size <= SEGMENT_BYTES {
            return Self::Listed(vec![0..size]);
        }
        let mut kept = Vec::new();
        for part in order.kept.iter().filter(|part| fits(part, size)) {
            kept.push(part.first_block * BLOCK / SEGMENT_BYTES);
            let numbered = part.values.iter().zip(part.first_block..);
            blocks.extend(numbered.map(|(value, block)| (block, Some(*value))));
        }
        kept.sort_unstable();
        Self::all_but(&kept, size)
    }

    /// Takes `ranges`, or one empty range if nothing is left to read. Then the
    /// file has changed since, or all of it is known: its stat decides, and the
    /// empty range makes a reader check it.
    fn listed(ranges: Vec<Range<u64>>) -> Self {
        Self::Listed(if ranges.is_empty() { vec![0..0] } else { ranges })
    }

    fn all_but(kept: &[u64], size: u64) -> Self {
        let (mut runs, mut start, mut before) = (Vec::new(), 0, 0);
        for end in kept.iter().copied().chain([size.div_ceil(SEGMENT_BYTES)]) {
            if start < end {
                runs.push((before, start..end));
                before += end - start;
            }
            start = end + 1;
        }
        if runs.is_empty() { Self::listed(Vec::new()) } else { Self::All { size, runs } }
    }

    pub(super) fn count(&self) -> usize {
        match self {
            Self::Listed(ranges) => ranges.len(),
            Self::All { runs, .. } => {
                let count = runs.last().map_or(0, |(before, run)| before + (run.end - run.start));
                usize::try_from(count).unwrap_or(usize::MAX)
            }
        }
    }

    /// One of them, by its number.
    pub(super) fn get(&self, number: usize) -> Option<Range<u64>> {
        match self {
            Self::Listed(ranges) => ranges.get(number).cloned(),
            Self::All { size, runs } => {
                let number = number as u64;
                let behind = runs.partition_point(|(before, _)| *before <= number);
                let (before, run) = runs.get(behind.checked_sub(1)?)?;
                let segment = run.start + (number - before);
                let start = (segment < run.end).then(|| segment * SEGMENT_BYTES)?;
                Some(start..start.saturating_add(SEGMENT_BYTES).min(*size))
            }
        }
    }
}

/// Blocks that a reader takes at once of a file that is read by its blocks.
const SHARE_BLOCKS: u64 = 8;

/// A stretch in pieces that are kept one by one: a second's worth of reading
/// by all readers on a disk of middling speed.
fn in_pieces(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    const SHARE_BYTES: u64 = SHARE_BLOCKS * BLOCK;
    let end = range.end;
    range.step_by(SHARE_BYTES as usize).map(move |start| start..(start + SHARE_BYTES).min(end))
}

/// Returns true if kept values are those of exactly one segment.
fn fits(kept: &UnfinishedBlocks, size: u64) -> bool {
    let start = kept.first_block.saturating_mul(BLOCK);
    start < size
        && start.is_multiple_of(SEGMENT_BYTES)
        && kept.values.len() as u64 == block_count(SEGMENT_BYTES.min(size - start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(segments: &Segments) -> Vec<Range<u64>> {
        let all: Vec<_> = (0..).map_while(|number| segments.get(number)).collect();
        assert_eq!(all.len(), segments.count());
        all
    }

    #[test]
    fn every_segment_is_read_that_is_not_kept() {
        let size = 5 * SEGMENT_BYTES + 7;
        for bits in 0..1_u64 << 6 {
            let kept: Vec<_> = (0..6).filter(|segment| bits >> segment & 1 == 1).collect();
            let starts =
                (0..6).filter(|segment| !kept.contains(segment)).map(|it| it * SEGMENT_BYTES);
            let mut expected: Vec<_> =
                starts.map(|start| start..(start + SEGMENT_BYTES).min(size)).collect();
            if expected.is_empty() {
                expected.push(0..0);
            }
            assert_eq!(all(&Segments::all_but(&kept, size)), expected, "{kept:?}");
        }
    }

    #[test]
    fn a_size_that_is_only_claimed_costs_no_memory() {
        let size = u64::MAX >> 1;
        let Segments::All { runs, .. } = Segments::all_but(&[3], size) else { panic!("listed") };
        assert_eq!(runs.len(), 2);
        let segments = Segments::all_but(&[3], size);
        let count = segments.count();
        assert_eq!(count as u64, size.div_ceil(SEGMENT_BYTES) - 1);
        assert_eq!(segments.get(3), Some(4 * SEGMENT_BYTES..5 * SEGMENT_BYTES));
        assert_eq!(segments.get(count - 1).map(|range| range.end), Some(size));
        assert_eq!(segments.get(count), None);
    }
}
