//! Edits whose verdict waits until it is known what other dates say in the tree.

use super::compare_blocks::FirstRead;
use super::read_queue::PendingRead;
use fsure_core::block_hash::BlockValue;

/// Memory for edits whose verdict waits for the end of the run. Beyond it what
/// was seen so far decides.
const HELD_BYTES_MAX: usize = 64 << 20;

/// The edits that wait, and the memory that they take.
#[derive(Default)]
pub(super) struct HeldEdits {
    edits: Vec<(u64, Box<PendingRead>)>,
    bytes: usize,
}

impl HeldEdits {
    /// Adds an edit that was read once.
    pub(super) fn push(&mut self, id: u64, pending: Box<PendingRead>) {
        let values = |first: &FirstRead| first.content.blocks.len() + first.recorded.len();
        let values = pending.first.as_ref().map_or(0, values);
        self.bytes += size_of::<PendingRead>() + 1024 + values * size_of::<BlockValue>();
        self.edits.push((id, pending));
    }

    /// Returns true if there is no memory for more.
    pub(super) fn is_full(&self) -> bool {
        self.bytes > HELD_BYTES_MAX
    }

    pub(super) fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Takes all edits with the numbers of their orders.
    pub(super) fn take(&mut self) -> Vec<(u64, Box<PendingRead>)> {
        std::mem::take(self).edits
    }
}
