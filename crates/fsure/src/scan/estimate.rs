//! How much there is to judge, for the percentage and the time left.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{Plan, Purpose};
use crate::catalog::Catalog;

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
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
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
