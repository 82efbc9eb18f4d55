//! The price of the page cache, and the answer to the question if it matters: a pure function
//! of the rates. The two ways are compared round by round, so that what the machine does in the
//! meantime hits both.

use crate::results::CacheVerdict;
use crate::stats::Spread;

/// A loss that is smaller than this is no difference seen, in percent: that of
/// `speed compare`.
const LOSS_MIN_PERCENT: f64 = 5.0;
/// Rounds below which there is no answer: of two, the median is as likely outside as inside.
pub const TREE_ROUNDS_MIN: usize = 3;
/// Seconds of a run below which there is no answer: its beginning and end count for too much
/// (`docs/method.md`, verify and the device).
pub const TREE_RUN_SECONDS_MIN: f64 = 0.25;
/// If the loss might be as large as this, in percent, it cannot be said that there is none.
const LOSS_UNCLEAR_PERCENT: f64 = 2.0 * LOSS_MIN_PERCENT;

/// The loss of the rate, in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Loss {
    /// Median of the rounds; negative if the page cache is faster.
    pub(super) percent: f64,
    /// Lower end of its interval.
    pub(super) low: f64,
    /// Upper end.
    pub(super) high: f64,
    /// Rounds.
    pub(super) rounds: usize,
    /// The answer.
    pub(super) verdict: CacheVerdict,
}

/// Returns the loss of each round, in percent, of rates against those past the page cache in the
/// same rounds; negative for a rate that is higher.
pub fn losses_percent(past: &[f64], own: &[f64]) -> Vec<f64> {
    let rounds = past.iter().zip(own).filter(|(past, _)| **past > 0.0);
    let losses = rounds.map(|(past, own)| 100.0 * (1.0 - own / past));
    losses.filter(|loss| loss.is_finite()).collect()
}

/// Compares the rates past the page cache with those through it, each pair of one round.
/// `None` without a round. `run_seconds` is the time of a run.
pub(super) fn loss(past: &[f64], through: &[f64], run_seconds: f64) -> Option<Loss> {
    let rounds = losses_percent(past, through);
    let spread = Spread::of(&rounds)?;
    let is_enough = rounds.len() >= TREE_ROUNDS_MIN && run_seconds >= TREE_RUN_SECONDS_MIN;
    let verdict = match () {
        () if !is_enough => CacheVerdict::Unsure,
        () if spread.low > 0.0 && spread.median >= LOSS_MIN_PERCENT => CacheVerdict::Matters,
        () if spread.high < 0.0 && spread.median <= -LOSS_MIN_PERCENT => CacheVerdict::Faster,
        () if spread.high < LOSS_UNCLEAR_PERCENT => CacheVerdict::NoDifference,
        () => CacheVerdict::Unsure,
    };
    let Spread { median: percent, low, high, .. } = spread;
    Some(Loss { percent, low, high, rounds: rounds.len(), verdict })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_that_of_all_rounds() {
        let verdict = |past: &[f64], through: &[f64]| loss(past, through, 1.0).unwrap().verdict;
        let past = [100.0, 110.0, 90.0];
        assert_eq!(verdict(&past, &[60.0, 60.0, 60.0]), CacheVerdict::Matters);
        assert_eq!(verdict(&past, &[60.0, 60.0, 91.0]), CacheVerdict::Unsure);
        assert_eq!(verdict(&past, &[98.0, 108.0, 88.0]), CacheVerdict::NoDifference);
        assert_eq!(verdict(&past, &[130.0, 130.0, 130.0]), CacheVerdict::Faster);
        assert_eq!(verdict(&past[..2], &[10.0, 10.0]), CacheVerdict::Unsure);
        assert_eq!(loss(&past, &[], 1.0), None);
        let lost = loss(&past, &[75.0, 55.0, 54.0], 0.1).unwrap();
        assert!((lost.percent - 40.0).abs() < 1e-9, "{lost:?}");
        assert!(lost.low < 26.0 && lost.high > 49.0 && lost.rounds == 3, "{lost:?}");
        assert_eq!(lost.verdict, CacheVerdict::Unsure, "a run of 0.1 s");
    }
}
