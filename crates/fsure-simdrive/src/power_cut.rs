//! Variants of a power cut: they decide which of the acknowledged writes that are not
//! durable survive.

use std::str::FromStr;
use std::time::Duration;

use super::Image;
use super::pending_writes::{DriveChange, PendingWrites};
use fsure_core::Random;
use fsure_core::units::SECTOR_BYTES;

/// Sector of drives with 4 KiB sectors (4Kn, 512e, and NVMe formatted so).
const SECTOR_4K_BYTES: u64 = 4 << 10;

/// Selection of the pending writes that survive a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutVariant {
    /// None.
    None,
    /// All.
    All,
    /// Those before a moment.
    Prefix,
    /// All before one flush, and some between it and the next: a drive that
    /// keeps the order across flushes and nothing else.
    Epoch,
    /// Some, in any order.
    Random,
    /// Some sectors of 512 bytes of each: a drive that writes no more than that as a whole.
    Torn,
    /// Some sectors of 4 KiB of each.
    Torn4k,
}

impl CutVariant {
    /// All kinds.
    pub const ALL: [Self; 7] =
        [Self::None, Self::All, Self::Prefix, Self::Epoch, Self::Random, Self::Torn, Self::Torn4k];

    /// The kinds of a run that names none. What a drive with sectors of 4 KiB leaves, one
    /// with sectors of 512 bytes can leave, too.
    pub const IN_TURN: [Self; 6] =
        [Self::None, Self::All, Self::Prefix, Self::Epoch, Self::Random, Self::Torn];

    /// Its name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::All => "all",
            Self::Prefix => "prefix",
            Self::Epoch => "epoch",
            Self::Random => "random",
            Self::Torn => "torn",
            Self::Torn4k => "torn-4k",
        }
    }

    /// Returns the bytes that a write keeps or loses as a whole, if the cut tears writes.
    pub(super) fn torn_sector_bytes(self) -> Option<u64> {
        match self {
            Self::Torn => Some(SECTOR_BYTES as u64),
            Self::Torn4k => Some(SECTOR_4K_BYTES),
            _ => None,
        }
    }

    /// Puts what survives onto the medium. A later write of the same place
    /// stays the later one: a cache holds one version of a sector.
    pub(super) fn leave(
        self,
        now: Duration,
        pending: &PendingWrites,
        medium: &mut Image,
        random: &mut Random,
    ) {
        let count = pending.iter().count() as u64;
        // One of the moments before, between and after all writes.
        let moment = random.below(count + 1);
        let epoch = Self::epoch(pending, random);
        for (place, waiting) in (0..).zip(pending.iter()) {
            let survives = match self {
                Self::None => false,
                Self::All | Self::Torn | Self::Torn4k => true,
                Self::Prefix => place < moment,
                Self::Epoch => waiting.epoch < epoch || waiting.epoch == epoch && random.coin(),
                Self::Random => random.coin(),
            };
            match self.torn_sector_bytes() {
                Some(sector) if !waiting.is_durable(now) => {
                    tear(&waiting.change, sector, medium, random);
                }
                _ if survives || waiting.is_durable(now) => {
                    waiting.change.make(medium).expect("the drive has taken it");
                }
                _ => {}
            }
        }
    }

    /// The epoch in which the order ends.
    fn epoch(pending: &PendingWrites, random: &mut Random) -> u64 {
        let first = pending.iter().map(|waiting| waiting.epoch).min().unwrap_or(0);
        let last = pending.iter().map(|waiting| waiting.epoch).max().unwrap_or(0);
        first + random.below(last - first + 1)
    }
}

/// Leaves each sector of a change to chance.
fn tear(change: &DriveChange, sector: u64, medium: &mut Image, random: &mut Random) {
    let end = change.offset + change.length();
    let mut from = change.offset;
    while from < end {
        let to = (from / sector * sector + sector).min(end);
        if random.coin() {
            change.part(from, to).make(medium).expect("the drive has taken it");
        }
        from = to;
    }
}

/// The error for a name that no variant has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no variant is called {0:?}: choose none, all, prefix, epoch, random, torn or torn-4k")]
pub struct UnknownCut(String);

impl FromStr for CutVariant {
    type Err = UnknownCut;

    /// The inverse of [`CutVariant::name`].
    fn from_str(text: &str) -> Result<Self, UnknownCut> {
        let found = Self::ALL.into_iter().find(|cut| cut.name() == text);
        found.ok_or_else(|| UnknownCut(text.to_owned()))
    }
}
