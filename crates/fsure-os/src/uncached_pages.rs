//! Finds the parts of a file that are not in the page cache before the file is
//! read through it, so that they can be dropped again when the file is closed.

use std::ops::Range;

use crate::host::Handle;

/// Bytes that are checked, and dropped, as one piece: no fewer than the largest
/// folio has, since a part of one is not dropped (measured by the MiB: 99 %
/// stayed).
const RANGE_GRANULE_BYTES: u64 = 4 << 20;

/// The parts of a file of which nothing was in the page cache.
pub(crate) enum NonResident {
    /// All of it.
    All,
    /// Some of it, or none.
    Parts(Vec<Range<u64>>),
}

impl NonResident {
    /// Checks a file: with one query if nothing of it is cached or the system
    /// does not report that, otherwise piece by piece.
    pub(crate) fn of<H: Handle>(file: &H) -> Self {
        match file.resident_bytes(file.reports_residency(), 0..u64::MAX) {
            None => Self::Parts(Vec::new()),
            Some(0) => Self::All,
            Some(_) => Self::Parts(absent_pieces(file)),
        }
    }

    /// Drops from the page cache what has come into these parts since.
    pub(crate) fn restore<H: Handle>(&self, file: &H) {
        match self {
            Self::All => file.drop_cached(0..u64::MAX),
            Self::Parts(parts) => parts.iter().for_each(|part| file.drop_cached(part.clone())),
        }
    }
}

fn absent_pieces<H: Handle>(file: &H) -> Vec<Range<u64>> {
    let size = file.stat().map_or(0, |stat| stat.size);
    let mut absent: Vec<Range<u64>> = Vec::new();
    for start in (0..size).step_by(RANGE_GRANULE_BYTES as usize) {
        let piece = start..start + RANGE_GRANULE_BYTES;
        if file.resident_bytes(true, piece.clone()) != Some(0) {
            continue;
        }
        match absent.last_mut() {
            Some(last) if last.end == start => last.end = piece.end,
            _ => absent.push(piece),
        }
    }
    absent
}
