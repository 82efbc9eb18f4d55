//! Writes that are acknowledged and not on the medium, in their order.

use std::collections::VecDeque;
use std::time::Duration;

use super::Image;

/// One of them.
#[derive(Clone, Debug)]
pub(super) struct Write {
    /// When it was acknowledged.
    pub(super) at: Duration,
    /// How many flushes were before it.
    pub(super) epoch: u64,
    pub(super) offset: u64,
    pub(super) data: Box<[u8]>,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Pending {
    writes: VecDeque<Write>,
    bytes: u64,
}

impl Pending {
    pub(super) fn push(&mut self, at: Duration, epoch: u64, offset: u64, data: &[u8]) {
        self.bytes += data.len() as u64;
        self.writes.push_back(Write { at, epoch, offset, data: data.into() });
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Write> {
        self.writes.iter()
    }

    /// Brings all to the medium.
    pub(super) fn settle_all(&mut self, medium: &mut Image) {
        self.settle_until(Duration::MAX, medium);
    }

    /// Brings what was acknowledged until then to the medium.
    pub(super) fn settle_until(&mut self, until: Duration, medium: &mut Image) {
        while self.writes.front().is_some_and(|write| write.at <= until) {
            let write = self.writes.pop_front().expect("just seen");
            self.bytes -= write.data.len() as u64;
            medium.write(write.offset, &write.data).expect("the drive has taken it");
        }
    }
}
