//! Changes that are acknowledged and not on the medium, in their order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::Image;

/// A change of what a drive holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveChange {
    /// Offset on the drive at which it begins, in bytes.
    pub offset: u64,
    /// Content from that offset on.
    pub what: WriteEffect,
}

/// Content that a change leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteEffect {
    /// Bytes that were written.
    Data(Arc<[u8]>),
    /// So many zero bytes, after a trim.
    Zeroes(u64),
}

impl DriveChange {
    /// Returns its length in bytes.
    pub fn length(&self) -> u64 {
        match &self.what {
            WriteEffect::Data(data) => data.len() as u64,
            WriteEffect::Zeroes(length) => *length,
        }
    }

    /// Applies the change to an image; `None` if it goes beyond the end.
    #[must_use]
    pub(super) fn make(&self, image: &mut Image) -> Option<()> {
        match &self.what {
            WriteEffect::Data(data) => image.write(self.offset, data),
            WriteEffect::Zeroes(length) => image.zero(self.offset, *length),
        }
    }

    /// Its bytes from one offset on the drive to another, as a change of its own.
    pub(super) fn part(&self, from: u64, to: u64) -> Self {
        let what = match &self.what {
            // Within what is in memory.
            WriteEffect::Data(data) => {
                let range = (from - self.offset) as usize..(to - self.offset) as usize;
                WriteEffect::Data(data[range].into())
            }
            WriteEffect::Zeroes(_) => WriteEffect::Zeroes(to - from),
        };
        Self { offset: from, what }
    }
}

/// A change that is not on the medium.
#[derive(Clone, Debug)]
pub(super) struct PendingWrite {
    /// Time of its acknowledgement.
    pub(super) at: Duration,
    /// Number of flushes before it.
    pub(super) epoch: u64,
    /// Time from which it survives every cut, since the flush that covers it has ended by then;
    /// `None` if no flush covers it. From then on it waits only for its turn, since older changes
    /// of the same place must not come after it.
    pub(super) durable_at: Option<Duration>,
    pub(super) change: DriveChange,
}

impl PendingWrite {
    /// Returns true if it survives a cut at this time.
    pub(super) fn is_durable(&self, now: Duration) -> bool {
        self.durable_at.is_some_and(|at| at <= now)
    }

    fn held(&self) -> usize {
        let data = match &self.change.what {
            WriteEffect::Data(data) => data.len(),
            WriteEffect::Zeroes(_) => 0,
        };
        size_of::<Self>() + data
    }
}

/// All changes that are not on the medium, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingWrites {
    changes: VecDeque<PendingWrite>,
    /// Bytes that no flush covers.
    uncovered_bytes: u64,
    /// Bytes of memory that they take.
    held: usize,
}

impl PendingWrites {
    pub(super) fn push(&mut self, waiting: PendingWrite) {
        if waiting.durable_at.is_none() {
            self.uncovered_bytes += waiting.change.length();
        }
        self.held += waiting.held();
        self.changes.push_back(waiting);
    }

    /// Brings the oldest changes to the medium until the rest takes at most `most` bytes
    /// of memory.
    pub(super) fn apply_beyond(&mut self, most: usize, medium: &mut Image) {
        while self.held > most && self.apply_first(medium) {}
    }

    /// Lets all that no flush covers survive from a time on: that at which a flush ends.
    pub(super) fn cover(&mut self, durable_at: Duration) {
        let uncovered = self.changes.iter_mut().filter(|waiting| waiting.durable_at.is_none());
        uncovered.for_each(|waiting| waiting.durable_at = Some(durable_at));
        self.uncovered_bytes = 0;
    }

    /// Returns the bytes that no flush covers.
    pub(super) fn uncovered_bytes(&self) -> u64 {
        self.uncovered_bytes
    }

    /// Returns the bytes that a cut at this time may lose.
    pub(super) fn volatile_bytes(&self, now: Duration) -> u64 {
        let volatile = self.changes.iter().filter(|waiting| !waiting.is_durable(now));
        volatile.map(|waiting| waiting.change.length()).sum()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &PendingWrite> {
        self.changes.iter()
    }

    /// Brings all to the medium.
    pub(super) fn apply_all(&mut self, medium: &mut Image) {
        while self.apply_first(medium) {}
    }

    /// Brings what was acknowledged until then to the medium.
    pub(super) fn apply_until(&mut self, until: Duration, medium: &mut Image) {
        self.apply_while(|waiting| waiting.at <= until, medium);
    }

    /// Brings what is durable by now and has nothing before it to the medium.
    pub(super) fn apply_durable(&mut self, now: Duration, medium: &mut Image) {
        self.apply_while(|waiting| waiting.is_durable(now), medium);
    }

    fn apply_while(&mut self, is_due: impl Fn(&PendingWrite) -> bool, medium: &mut Image) {
        while self.changes.front().is_some_and(&is_due) {
            self.apply_first(medium);
        }
    }

    /// Brings the oldest change to the medium; false if there was none.
    fn apply_first(&mut self, medium: &mut Image) -> bool {
        let Some(waiting) = self.changes.pop_front() else { return false };
        if waiting.durable_at.is_none() {
            self.uncovered_bytes -= waiting.change.length();
        }
        self.held -= waiting.held();
        waiting.change.make(medium).expect("the drive has taken it");
        true
    }
}
