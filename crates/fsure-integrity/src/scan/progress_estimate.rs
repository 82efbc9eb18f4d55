//! Estimates the bytes to judge, for the percentage and the time left.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::reader_context::ReadCounters;
use super::{Purpose, ScanPlan};
use crate::catalog::{Catalog, StoredRow};
use crate::tree::each_file_size;

/// A run that is over before this is not slowed down by counting what there
/// is to do; from then on, knowing what is left is worth a second walk.
const COUNT_AFTER: Duration = Duration::from_secs(5);

/// Bytes to judge, as far as is known by now.
#[derive(Debug, Default)]
pub(super) struct Estimate {
    bytes: AtomicU64,
    is_final: AtomicBool,
}

impl Estimate {
    /// Takes the recorded bytes for a run that judges the whole record. A part
    /// of the record, and what `update` will come across, has to be counted.
    pub(super) fn new(plan: &ScanPlan, catalog: &Catalog) -> Self {
        let estimate = Self::default();
        if judges_all(plan) {
            estimate.add(catalog.bytes());
            estimate.finish();
        }
        estimate
    }

    pub(super) fn add(&self, bytes: u64) {
        let add = |sum: u64| Some(sum.saturating_add(bytes));
        let _ = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    pub(super) fn finish(&self) {
        self.is_final.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_final(&self) -> bool {
        self.is_final.load(Ordering::Relaxed)
    }

    pub(super) fn total(&self) -> (u64, bool) {
        (self.bytes.load(Ordering::Relaxed), self.is_final())
    }
}

/// Bytes of recorded files that are still to be judged, in a run that judges all
/// of a record. What is gone is taken off as soon as that shows, or the share of
/// what is done would stand still at the end, and never be all.
#[derive(Debug, Default)]
pub(super) struct Remaining {
    /// Of the files that were not come by.
    record: u64,
    /// Of those whose names are gone, and of those that came: as far as one makes
    /// up for the other they will have moved, and are judged then.
    departed: u64,
    arrived: u64,
    /// Of those that are known to have moved.
    moved: u64,
}

impl Remaining {
    /// Creates the count of a run that has come by nothing of so many bytes yet.
    pub(super) fn of(record: u64) -> Self {
        Self { record, ..Self::default() }
    }

    pub(super) fn bytes(&self) -> u64 {
        let may_have_moved = self.departed.min(self.arrived);
        self.record.saturating_add(self.moved).saturating_add(may_have_moved)
    }

    /// A recorded file is come by.
    pub(super) fn pass(&mut self, stored: Option<&StoredRow>) {
        if let Some(StoredRow::Sound(row)) = stored
            && row.is_live_file()
        {
            self.record = self.record.saturating_sub(row.record.entry.size);
        }
    }

    /// A file waits whose name came.
    pub(super) fn add_arrived(&mut self, size: u64) {
        self.arrived = self.arrived.saturating_add(size);
    }

    /// A recorded file waits whose name is gone.
    pub(super) fn add_departed(&mut self, size: u64) {
        self.departed = self.departed.saturating_add(size);
    }

    /// All names are known, and so is how much of them has moved.
    pub(super) fn end_names(&mut self, moved: u64) {
        *self = Self { moved, ..Self::default() };
    }

    /// A file that has moved is come by.
    pub(super) fn pass_moved(&mut self, size: u64) {
        self.moved = self.moved.saturating_sub(size);
    }
}

/// Returns true if a run judges a whole record, which then gives the bytes to judge.
pub(super) fn judges_all(plan: &ScanPlan) -> bool {
    plan.scopes.is_root() && plan.purpose == Purpose::Verify && plan.scrub.is_none()
}

/// Counts the bytes to judge while reading has begun, if no record gives them.
pub(super) fn count_ahead(
    plan: &ScanPlan,
    run_is_over: &Receiver<()>,
    estimate: &Estimate,
    meter: &ReadCounters,
) {
    if run_is_over.recv_timeout(COUNT_AFTER) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    let mut take = |size| {
        estimate.add(size);
        !meter.is_stopped()
    };
    if plan.walks().all(|walk| each_file_size(&plan.root, &walk, &mut take)) {
        estimate.finish();
    }
}
