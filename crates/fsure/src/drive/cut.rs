//! Which of the writes that are acknowledged and not durable survive a cut.

use super::pending::{Pending, Write};
use super::{Image, Random};

/// What a drive writes whole or not at all, in bytes.
pub const SECTOR: usize = 512;

/// Which of them survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// None.
    None,
    /// All.
    All,
    /// Those before a moment.
    Prefix,
    /// All before one flush, and some between it and the next: a drive that
    /// keeps the order across flushes and nothing else.
    Epoch,
    /// Some, in whatever order.
    Random,
    /// Some sectors of some.
    Torn,
}

impl Cut {
    /// All kinds.
    pub const ALL: [Self; 6] =
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
        }
    }

    /// Puts what survives onto the medium. A later write of the same place
    /// stays the later one: a cache holds one version of a sector.
    pub(super) fn leave(self, pending: &Pending, medium: &mut Image, random: &mut Random) {
        let count = pending.iter().count() as u64;
        // One of the moments before, between and after all writes.
        let moment = random.below(count + 1);
        let epoch = Self::epoch(pending, random);
        for (place, write) in (0..).zip(pending.iter()) {
            let survives = match self {
                Self::None => false,
                Self::All | Self::Torn => true,
                Self::Prefix => place < moment,
                Self::Epoch => write.epoch < epoch || write.epoch == epoch && random.coin(),
                Self::Random => random.coin(),
            };
            if survives && self == Self::Torn {
                tear(write, medium, random);
            } else if survives {
                medium.write(write.offset, &write.data).expect("the drive has taken it");
            }
        }
    }

    /// The epoch in which the order ends.
    fn epoch(pending: &Pending, random: &mut Random) -> u64 {
        let first = pending.iter().map(|write| write.epoch).min().unwrap_or(0);
        let last = pending.iter().map(|write| write.epoch).max().unwrap_or(0);
        first + random.below(last - first + 1)
    }
}

/// Leaves each sector of a write to chance.
fn tear(write: &Write, medium: &mut Image, random: &mut Random) {
    let mut done = 0;
    while done < write.data.len() {
        let offset = write.offset + done as u64;
        let to_boundary = SECTOR - offset as usize % SECTOR;
        let end = (done + to_boundary).min(write.data.len());
        if random.coin() {
            medium.write(offset, &write.data[done..end]).expect("the drive has taken it");
        }
        done = end;
    }
}
