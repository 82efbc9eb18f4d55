//! How much there is to judge, for the percentage and the time left.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::hands::Meter;
use super::{Plan, Purpose};
use crate::catalog::Catalog;
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
    /// What the record says, for a run that judges all of it. A part of it, and
    /// what `update` will come across, has to be counted.
    pub(super) fn new(plan: &Plan, catalog: &Catalog) -> Self {
        let estimate = Self::default();
        if plan.walk.scope.is_root() && plan.purpose == Purpose::Verify && plan.scrub.is_none() {
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

/// Counts what there is to judge while the reading has begun, where no record
/// tells.
pub(super) fn count_ahead(
    plan: &Plan,
    run_is_over: &Receiver<()>,
    estimate: &Estimate,
    meter: &Meter,
) {
    if run_is_over.recv_timeout(COUNT_AFTER) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    let mut take = |size| {
        estimate.add(size);
        !meter.is_stopped()
    };
    if !each_file_size(&plan.root, &plan.walk, &mut take) {
        return;
    }
    estimate.finish();
}
