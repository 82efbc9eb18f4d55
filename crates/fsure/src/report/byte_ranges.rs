//! Byte ranges of a file, for a person.

use super::number;
use fsure_core::units;
use fsure_integrity::model::{ByteRange, merge_ranges};

/// `damaged bytes 1048576-2097152 (1.0 MiB of 24.0 MiB)`: from the first byte
/// up to, not including, the second.
pub(super) fn ranges(what: &str, ranges: &[ByteRange], size: u64) -> Option<String> {
    const SHOWN_MAX: usize = 8;
    let merged = merge_ranges(ranges);
    let bytes: u64 = merged.iter().map(|range| range.end - range.start).sum();
    let shown = merged.iter().take(SHOWN_MAX).map(|range| format!("{}-{}", range.start, range.end));
    let mut list = shown.collect::<Vec<_>>().join(", ");
    if merged.len() > SHOWN_MAX {
        let more = number((merged.len() - SHOWN_MAX) as u64, "more range", "more ranges");
        list += &format!(" ... and {more}");
    }
    let (bytes, size) = (units::size(bytes), units::size(size));
    (!merged.is_empty()).then(|| format!("{what} bytes {list} ({bytes} of {size})"))
}
