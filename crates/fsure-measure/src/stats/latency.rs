//! Latencies of many operations, in three significant digits however long the
//! longest is.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Latencies, in nanoseconds inside and microseconds outside.
#[derive(Clone, Debug)]
pub struct Latency {
    histogram: Histogram<u64>,
}

impl Default for Latency {
    fn default() -> Self {
        // Three digits, so that a bucket is at most 0.1 % wide.
        Self { histogram: Histogram::new(3).expect("three digits are allowed") }
    }
}

impl Latency {
    /// Counts one operation.
    pub fn record(&mut self, latency: Duration) {
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX / 4);
        self.histogram.record(nanoseconds.max(1)).expect("the histogram grows by itself");
    }

    /// Adds what another thread has counted.
    pub fn add(&mut self, other: &Self) {
        self.histogram.add(&other.histogram).expect("the histogram grows by itself");
    }

    /// Operations counted.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The latency that a share of the operations, 0 to 1, did not exceed, in
    /// microseconds; 0 if nothing was counted.
    pub fn quantile_us(&self, share: f64) -> f64 {
        self.histogram.value_at_quantile(share) as f64 / 1e3
    }

    /// The mean, in microseconds; 0 if nothing was counted.
    pub fn mean_us(&self) -> f64 {
        self.histogram.mean() / 1e3
    }

    /// The longest, in microseconds.
    pub fn max_us(&self) -> f64 {
        self.histogram.max() as f64 / 1e3
    }

    /// Buckets that grow by a tenth: upper end in microseconds, and operations.
    /// Empty ones are left out.
    pub fn buckets(&self) -> Vec<(f64, u64)> {
        self.histogram
            .iter_log(1_000, 1.1)
            .filter(|step| step.count_since_last_iteration() > 0)
            .map(|step| (step.value_iterated_to() as f64 / 1e3, step.count_since_last_iteration()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_and_buckets_hold_what_was_recorded() {
        let mut latency = Latency::default();
        for microseconds in 1..=1000 {
            latency.record(Duration::from_micros(microseconds));
        }
        let mut other = Latency::default();
        other.record(Duration::from_secs(5));
        latency.add(&other);
        assert_eq!(latency.count(), 1001);
        assert!((latency.quantile_us(0.5) - 501.0).abs() < 2.0);
        assert!((latency.mean_us() - (500_500.0 + 5e6) / 1001.0).abs() < 50.0);
        assert!((latency.max_us() - 5e6).abs() < 5e3);
        let buckets = latency.buckets();
        assert_eq!(buckets.iter().map(|(_, count)| count).sum::<u64>(), 1001);
        assert!(buckets.is_sorted_by(|one, two| one.0 < two.0));
    }
}
