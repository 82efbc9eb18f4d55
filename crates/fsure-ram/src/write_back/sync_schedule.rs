//! Computes when the next generation begins and how much can be lost now, from the
//! durations of the last generations.

use std::time::{Duration, Instant};

use super::engine::Generation;

/// Room for what a generation may take longer than the ones before it.
const MARGIN: u32 = 2;

/// The pace of one RAM folder.
#[derive(Clone, Debug)]
pub struct SyncSchedule {
    max_loss: Duration,
    /// All changes before this moment are on the disk.
    safe_until: Instant,
    /// Recent duration until a generation counted. It falls slowly and rises at once.
    cost: Duration,
    /// Failures in a row.
    failures: u32,
}

impl SyncSchedule {
    /// One that begins with both sides equal.
    pub fn new(max_loss: Duration, now: Instant) -> Self {
        Self { max_loss, safe_until: now, cost: Duration::ZERO, failures: 0 }
    }

    /// Returns the time at which the next generation is to begin: early enough that all
    /// that was changed since the last one began is on the disk before it is `max_loss`
    /// old, and at the latest half of `max_loss` after that one began.
    pub fn next(&self) -> Instant {
        let wait = self.max_loss.saturating_sub(self.cost * MARGIN).min(self.max_loss / 2);
        self.safe_until + wait
    }

    /// A generation that counts, or that had nothing to do.
    pub fn done(&mut self, generation: &Generation) {
        self.safe_until = generation.began;
        self.cost = generation.committed.max(self.cost * 7 / 8);
        self.failures = 0;
    }

    /// One that failed.
    pub fn failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    /// Failures since the last one that counted.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Returns the greatest possible age of a change that is not on the disk.
    pub fn worst_loss(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.safe_until)
    }

    /// Returns true if that is more than the agreed loss.
    pub fn is_broken(&self, now: Instant) -> bool {
        self.worst_loss(now) > self.max_loss
    }

    /// Returns true if the disk is too slow for the agreed loss. A change made right
    /// after a generation began waits for that one and for the next.
    pub fn is_too_slow(&self) -> bool {
        self.cost * MARGIN > self.max_loss
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generation(began: Instant, committed: Duration) -> Generation {
        Generation {
            number: 1,
            began,
            took: committed,
            committed,
            written: 0,
            changed: 0,
            removed: 0,
            unsettled: Vec::new(),
            spread: None,
            trash: None,
            kept: Vec::new(),
            changed_outside: Vec::new(),
        }
    }

    #[test]
    fn no_change_waits_longer_than_agreed_while_the_disk_keeps_up() {
        let start = Instant::now();
        let max = Duration::from_secs(1);
        for cost_ms in [0, 1, 50, 200, 400, 500] {
            let cost = Duration::from_millis(cost_ms);
            let mut pace = SyncSchedule::new(max, start);
            let mut began = start;
            for _ in 0..20 {
                pace.done(&generation(began, cost));
                // One generation at a time.
                let next = pace.next().max(began + cost);
                // The oldest change that `next` brings was made right after `began`.
                assert!(next + cost - began <= max, "{cost_ms} ms");
                began = next;
            }
            assert!(!pace.is_too_slow());
        }
        let mut pace = SyncSchedule::new(max, start);
        pace.done(&generation(start, Duration::from_millis(501)));
        assert!(pace.is_too_slow());
    }

    #[test]
    fn the_loss_grows_until_a_generation_counts() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut pace = SyncSchedule::new(Duration::from_secs(1), start);
        pace.failed();
        assert_eq!(pace.worst_loss(at(700)), Duration::from_millis(700));
        assert!(!pace.is_broken(at(1000)) && pace.is_broken(at(1001)));
        assert_eq!(pace.failures(), 1);
        pace.done(&generation(at(900), Duration::from_millis(150)));
        assert!(!pace.is_broken(at(1050)));
        assert_eq!((pace.worst_loss(at(1050)), pace.failures()), (Duration::from_millis(150), 0));
    }
}
