//! Checks content against the record: each of its blocks, or only the whole.

use crate::catalog::{Catalog, Row};
use crate::model::ByteRange;
use crate::scan::are_proven;
use fsure_core::block_hash::{BLOCK, BlockValue, block_count, block_value};
use fsure_core::{Digests, Result};

/// The recorded proof of a content.
enum Proof {
    /// By these values, which merge to the recorded BLAKE3.
    Blocks(Vec<BlockValue>),
    /// By its digests, all together.
    Whole,
}

/// A recorded file, and the proof to check bytes with.
pub(super) struct RecordProof {
    pub(super) row: Row,
    proof: Proof,
}

impl RecordProof {
    pub(super) fn of(row: Row, catalog: &mut Catalog) -> Result<Self> {
        let values = catalog.block_values().of(&row)?;
        let is_by_blocks = are_proven(&row.record, &values);
        let proof = if is_by_blocks { Proof::Blocks(values) } else { Proof::Whole };
        Ok(Self { row, proof })
    }

    /// A file that is only known as a whole.
    pub(super) fn whole(row: Row) -> Self {
        Self { row, proof: Proof::Whole }
    }

    /// The recorded length; `None` if it is not known: a list does not have to
    /// contain it, and what was there when the list was read may have been damaged.
    pub(super) fn size(&self) -> Option<u64> {
        let entry = &self.row.record.entry;
        (!entry.is_undated()).then_some(entry.size)
    }

    pub(super) fn is_by_blocks(&self) -> bool {
        matches!(self.proof, Proof::Blocks(_))
    }

    /// Returns the number of pieces that can be proven by themselves.
    pub(super) fn pieces(&self) -> u64 {
        match &self.proof {
            Proof::Blocks(values) => values.len() as u64,
            Proof::Whole => 1,
        }
    }

    /// Returns the range of a piece in a content of `size` bytes.
    pub(super) fn range(&self, piece: u64, size: u64) -> ByteRange {
        match &self.proof {
            Proof::Blocks(_) => piece * BLOCK..((piece + 1) * BLOCK).min(size),
            Proof::Whole => 0..size,
        }
    }

    /// The pieces that ranges of bytes touch, and all from `end` on.
    pub(super) fn touched(&self, ranges: &[ByteRange], end: u64) -> Vec<u64> {
        let count = self.pieces();
        if count == 1 {
            return vec![0];
        }
        let of_range = |range: &ByteRange| range.start / BLOCK..block_count(range.end).min(count);
        let mut pieces: Vec<u64> = ranges.iter().flat_map(of_range).collect();
        pieces.extend(end / BLOCK..count);
        pieces.sort_unstable();
        pieces.dedup();
        pieces
    }

    /// Returns true if this is the recorded content of a block.
    pub(super) fn proves_block(&self, block: u64, content: &[u8]) -> bool {
        match &self.proof {
            Proof::Blocks(values) => {
                values.get(block as usize) == Some(&block_value(block, content))
            }
            Proof::Whole => false,
        }
    }

    /// Returns true if these are all recorded digests, each with its recorded value.
    pub(super) fn proves(&self, digests: &Digests) -> bool {
        let recorded = &self.row.record.digests;
        digests.algorithms().covers(recorded.algorithms()) && recorded.agree(digests) == Some(true)
    }
}
