//! The parts of a due file that a scrub has to read: all of it, or what is not verified yet.

use super::ScrubRules;
use super::partial_read::{bytes_of, missing};
use super::read_queue::PendingRead;
use crate::catalog::{Catalog, DueFile, Row, StoredRow, VerifiedRange};
use crate::model::{Entry, Record};
use fsure_core::Result;
use fsure_core::block_hash::BLOCK;

/// Files from this size on are read by their blocks even if they fit, so that
/// a run that is cut off goes on inside them.
pub(super) const PARTS_MIN: u64 = 64 << 20;

/// Seconds for which the good blocks of a file that is not OK need not be read
/// again, if no age is given. If there were no end to it, they would not be
/// read as long as a single block is bad; if it were zero, a large bad file
/// would take every budget for itself.
const GOOD_FOR_S: i64 = 30 * 86_400;

/// The row of a recorded file that can be verified block by block.
fn splittable(stored: Option<&StoredRow>) -> Option<(&Row, [u8; 32])> {
    let Some(StoredRow::Sound(row)) = stored else { return None };
    let blake3 = row.record.digests.blake3?;
    (row.has_blocks() && row.record.entry.size > BLOCK).then_some((row, blake3))
}

/// A file that is to be read by its blocks, if their recorded values are proven.
pub(super) struct PartCandidate<'p> {
    pub(super) row: &'p Row,
    pub(super) blake3: [u8; 32],
    /// Parts that are verified by now.
    pub(super) verified: Vec<VerifiedRange>,
}

/// Decides which parts of a file still count as verified.
#[derive(Clone, Copy)]
pub(super) struct PartPlanner {
    now_s: i64,
    /// Seconds for which a good block of a file that is not OK need not be read again.
    good_for_s: i64,
}

impl PartPlanner {
    pub(super) fn new(rules: Option<&ScrubRules>, now_s: i64) -> Self {
        let max_age = rules.and_then(|rules| rules.max_age);
        let good_for_s =
            max_age.map_or(GOOD_FOR_S, |age| i64::try_from(age.as_secs()).unwrap_or(i64::MAX));
        Self { now_s, good_for_s }
    }

    /// Returns the bytes that a file that is due takes, and the least of them
    /// that is worth while.
    pub(super) fn need(
        &self,
        catalog: &mut Catalog,
        due: &DueFile,
        left: u64,
    ) -> Result<(u64, u64)> {
        let StoredRow::Sound(row) = &due.stored else { return Ok((0, 0)) };
        if due.was_unreachable {
            // A stat costs nothing, and must not wait for a larger budget.
            return Ok((0, 0));
        }
        let size = row.record.entry.size;
        let Some((row, blake3)) = splittable(Some(&due.stored)).filter(|_| size > left) else {
            return Ok((size, size.min(if row.has_blocks() { BLOCK } else { size })));
        };
        let entry = &row.record.entry;
        let missing = missing(&self.still_good(catalog, row, &blake3, entry, due.is_again)?, size);
        let needed = if missing.is_empty() { size } else { bytes_of(&missing, size) };
        Ok((needed, needed.min(BLOCK)))
    }

    /// Returns the parts of a file that is to be read by its blocks, with `left` bytes to
    /// spend; `None` if it is to be read as a whole. `is_timed` is true if the run has an end.
    pub(super) fn candidate<'p>(
        &self,
        catalog: &mut Catalog,
        pending: &'p PendingRead,
        left: u64,
        is_timed: bool,
    ) -> Result<Option<PartCandidate<'p>>> {
        let Some((row, blake3)) = splittable(pending.file.stored.as_ref()) else { return Ok(None) };
        let size = pending.file.stat.size;
        if size != row.record.entry.size {
            return Ok(None);
        }
        let is_again = pending.is_again;
        let verified = self.still_good(catalog, row, &blake3, &pending.file.entry, is_again)?;
        let has_names = pending.file.stat.links > 1;
        let is_quick = has_names || size < PARTS_MIN;
        let is_timed = is_timed && !(has_names && size < PARTS_MIN);
        if verified.is_empty() && size <= left && is_quick && !is_timed {
            return Ok(None);
        }
        Ok(Some(PartCandidate { row, blake3, verified }))
    }

    /// The parts that still count: not from before the file was last verified
    /// as a whole, not from the future, and of a file that is not well none
    /// that is old. Nor one that was read within two ticks of the file's last
    /// change: another change in the same tick would not show in its stat.
    fn still_good(
        &self,
        catalog: &mut Catalog,
        row: &Row,
        blake3: &[u8; 32],
        entry: &Entry,
        is_again: bool,
    ) -> Result<Vec<VerifiedRange>> {
        let (record, now_s) = (&row.record, self.now_s);
        let mut parts = catalog.verified_ranges().of(&record.path, entry, blake3)?;
        let oldest_s = if is_again { now_s.saturating_sub(self.good_for_s) } else { i64::MIN };
        let is_dated = record.verified_s <= now_s;
        let oldest_s = oldest_s.max(if is_dated { record.verified_s } else { i64::MIN });
        let granularity_ns = catalog.granularity_ns(entry.file_system);
        let is_racy = |part: &VerifiedRange| {
            let hashed_ns = part.verified_s.saturating_mul(1_000_000_000);
            Record { entry: entry.clone(), hashed_ns, ..record.clone() }.is_racy(granularity_ns)
        };
        parts.retain(|part| (oldest_s..=now_s).contains(&part.verified_s) && !is_racy(part));
        Ok(parts)
    }
}
