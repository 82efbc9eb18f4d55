//! The reasons to call a flush free, each with a sentence that has its figures. The sentence
//! must not claim that a flush costs nothing if it takes seven times as long as a write.

use super::thresholds::{CONSUMER_MIN_US, FLASH_MIN_US, IMPOSSIBLE_RATE};
use fsure_core::units::microseconds;

/// The way in which a flush is quicker than a drive with a volatile cache can be.
pub(super) enum FreeFlush {
    /// A write with it takes as long as one without.
    AddsNothing,
    /// The quickest took less than flash takes to be programmed.
    QuickerThanFlash { fastest_us: f64 },
    /// More bytes a second than any drive takes.
    TooMuchAtOnce { rate: f64 },
    /// It adds less than the fastest drive with a volatile cache was measured at.
    QuickerThanDrives { added_us: f64 },
}

impl FreeFlush {
    /// Returns the sentence; `time` states the time of a write with the flush and without.
    pub(super) fn words(&self, time: &str) -> String {
        match *self {
            Self::AddsNothing => format!("A flush costs next to nothing ({time})."),
            Self::QuickerThanFlash { fastest_us } => {
                let [fastest, least] = [fastest_us, FLASH_MIN_US].map(microseconds);
                format!(
                    "A write and its flush take {time}, and the quickest tenth took at most \
                     {fastest}, which is too short to program flash (at least {least})."
                )
            }
            Self::TooMuchAtOnce { rate } => {
                let [rate, most] = [rate, IMPOSSIBLE_RATE].map(|rate| rate / 1e9);
                format!(
                    "A write and its flush take {time}, and {rate:.0} GB/s were flushed at once, \
                     but no drive takes more than {most:.0}: most of it was written, or counted as \
                     written, before the flush."
                )
            }
            Self::QuickerThanDrives { added_us } => {
                let [added, least] = [added_us, CONSUMER_MIN_US].map(microseconds);
                format!(
                    "A write and its flush take {time}. The flush costs something ({added}), but \
                     less than on any measured drive with a volatile cache (at least {least}): it \
                     may be only the way to the host."
                )
            }
        }
    }
}
