//! Cost of flushes, from calls that come in the order in which they end: how many, how
//! long, and how much of the time one at least was under way. It takes little memory
//! however many there are.

use std::collections::BTreeMap;

use fsure_os::flush_trace::FlushCall;

/// Durations are kept to so many leading bits, to 0.4 %.
const BITS: u32 = 8;

/// Separate spans of time that are kept, at most: 1 MiB. What overlaps older ones than that
/// counts twice.
const SPANS_MAX: usize = 1 << 16;

/// The cost of some calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlushCost {
    /// Number of calls.
    pub count: u64,
    /// Number of calls that failed.
    pub failed: u64,
    /// Sum of the durations, in nanoseconds.
    pub sum_ns: u64,
    /// The longest duration.
    pub max_ns: u64,
    /// Number of calls by their duration, rounded.
    durations: BTreeMap<u64, u64>,
    spans: Spans,
}

impl FlushCost {
    /// Adds a call.
    pub(crate) fn add(&mut self, call: &FlushCall) {
        self.count += 1;
        self.failed += u64::from(call.is_failed);
        self.sum_ns += call.ns;
        self.max_ns = self.max_ns.max(call.ns);
        *self.durations.entry(rounded(call.ns)).or_default() += 1;
        self.spans.add(call.began_ns, call.began_ns + call.ns);
    }

    /// Adds the calls of another.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.failed += other.failed;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        for (ns, count) in &other.durations {
            *self.durations.entry(*ns).or_default() += count;
        }
        self.spans.merge(&other.spans);
    }

    /// Time for which at least one of the calls was under way, in nanoseconds.
    pub fn waited_ns(&self) -> u64 {
        self.spans.total()
    }

    /// The least duration that so many per cent of the calls do not exceed; 0 without calls.
    pub fn percentile_ns(&self, percent: u64) -> u64 {
        let rank = (self.count * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let found = self.durations.iter().find(|(_, count)| {
            seen += **count;
            seen >= rank
        });
        found.map_or(0, |(ns, _)| (*ns).min(self.max_ns))
    }
}

/// A duration without what does not matter of it.
fn rounded(ns: u64) -> u64 {
    let shift = (u64::BITS - ns.leading_zeros()).saturating_sub(BITS);
    (ns >> shift) << shift
}

/// Spans of time, merged where they overlap, the last one last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Spans {
    open: Vec<(u64, u64)>,
    /// Sum of those that are no longer kept.
    past: u64,
}

impl Spans {
    fn add(&mut self, from: u64, to: u64) {
        let (mut from, mut to) = (from, to);
        // Those of two processors might come in the other order.
        let mut later = Vec::new();
        while let Some(&(begin, end)) = self.open.last() {
            if end < from {
                break;
            }
            self.open.pop();
            if begin > to {
                later.push((begin, end));
            } else {
                (from, to) = (from.min(begin), to.max(end));
            }
        }
        self.open.push((from, to));
        self.open.extend(later.into_iter().rev());
        if self.open.len() > SPANS_MAX {
            let old = self.open.drain(..SPANS_MAX / 2);
            self.past += old.map(|(from, to)| to - from).sum::<u64>();
        }
    }

    fn merge(&mut self, other: &Self) {
        self.past += other.past;
        let mut all = std::mem::take(&mut self.open);
        all.extend(&other.open);
        all.sort_by_key(|(_, to)| *to);
        all.into_iter().for_each(|(from, to)| self.add(from, to));
    }

    fn total(&self) -> u64 {
        self.past + self.open.iter().map(|(from, to)| to - from).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fsure_os::flush_trace::FlushKind;

    fn cost(calls: &[(u64, u64)]) -> FlushCost {
        let mut cost = FlushCost::default();
        for &(began_ns, ns) in calls {
            let kind = FlushKind::Fsync;
            cost.add(&FlushCall { kind, file: None, began_ns, ns, is_failed: ns % 2 == 1 });
        }
        cost
    }

    #[test]
    fn calls_at_the_same_time_are_waited_for_once() {
        for (calls, waited) in [
            (&[(0, 10), (20, 10)][..], 20),
            (&[(0, 10), (5, 10)], 15),
            (&[(2, 3), (0, 10)], 10),
            (&[(0, 10), (20, 10), (5, 40)], 45),
            // The second ended before the first, on another processor.
            (&[(20, 10), (0, 10)], 20),
            (&[(20, 10), (40, 2), (0, 25)], 32),
            (&[(0, 10), (10, 10)], 20),
        ] {
            let cost = cost(calls);
            assert_eq!(cost.waited_ns(), waited, "{calls:?}");
            assert_eq!(cost.sum_ns, calls.iter().map(|call| call.1).sum::<u64>());
        }
    }

    #[test]
    fn two_costs_are_as_one_of_all_calls() {
        let (some, others) = ([(0, 10), (30, 5)], [(5, 10), (20, 11), (50, 1)]);
        let mut merged = cost(&some);
        merged.merge(&cost(&others));
        let mut all: Vec<_> = some.into_iter().chain(others).collect();
        all.sort_by_key(|(began, ns)| began + ns);
        assert_eq!(merged, cost(&all));
    }

    #[test]
    fn old_spans_are_counted_though_not_kept() {
        let many = 3 * SPANS_MAX as u64;
        let mut spans = Spans::default();
        (0..many).for_each(|place| spans.add(place * 10, place * 10 + 3));
        assert_eq!(spans.total(), many * 3);
        assert!(spans.open.len() <= SPANS_MAX);
    }

    #[test]
    fn percentiles_are_durations_that_there_were() {
        let calls: Vec<_> = (1..=200).map(|ns| (ns * 1_000, ns)).collect();
        let cost = cost(&calls);
        assert_eq!((cost.count, cost.failed, cost.max_ns), (200, 100, 200));
        assert_eq!((cost.percentile_ns(50), cost.percentile_ns(99)), (100, 198));
        assert_eq!(FlushCost::default().percentile_ns(50), 0);
        for ns in [1, 255, 256, 1_000_003, u64::MAX / 2] {
            assert!(rounded(ns) <= ns && ns - rounded(ns) <= ns / 128, "{ns}");
        }
    }
}
