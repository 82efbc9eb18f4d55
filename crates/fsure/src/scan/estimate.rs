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
    /// What the record says of the whole root; nothing for a part of it, and
    /// for a root of which there is no record yet.
    pub(super) fn new(plan: &Plan, catalog: &Catalog) -> Self {
        let estimate = Self::default();
        if plan.walk.scope.is_root() && (catalog.bytes() > 0 || plan.purpose == Purpose::Verify) {
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
