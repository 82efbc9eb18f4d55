//! Orders that are due some time later: a file that changed while it was read
//! is read again when its writer has had time to finish. No reader waits for
//! that, so that any number of busy files costs one wait and not one each.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::read_request::ReadRequest;

/// Time that a writer gets to finish before the second attempt; before the
/// third it gets twice as much.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Orders by the time at which they are due. They are among those under way,
/// and so no more than these.
#[derive(Default)]
pub(super) struct Retries(BTreeMap<(Instant, u64), ReadRequest>);

impl Retries {
    /// Keeps an order of a file that so many attempts have failed for.
    pub(super) fn put(&mut self, order: ReadRequest, attempt: u32) {
        self.0.insert((Instant::now() + RETRY_DELAY * attempt, order.id), order);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Moves what is due now to the orders that are sent.
    pub(super) fn release(&mut self, orders: &mut Vec<ReadRequest>) {
        let now = Instant::now();
        while let Some(first) = self.0.first_entry().filter(|first| first.key().0 <= now) {
            orders.push(first.remove());
        }
    }

    /// The time until the next order is due, if that is less than `most`.
    pub(super) fn wait(&self, most: Duration) -> Duration {
        let next = self.0.first_key_value().map(|((due, _), _)| *due);
        next.map_or(most, |due| due.saturating_duration_since(Instant::now()).min(most))
    }
}
