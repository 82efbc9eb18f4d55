//! The spread of a handful of runs, and a test for a difference between two handfuls.
//!
//! Nothing here supposes a normal distribution: times have a floor and a long
//! tail. The confidence interval of the median is that of order statistics
//! (Conover, "Practical Nonparametric Statistics", 3rd ed., 3.2), outliers are
//! by the modified Z-score (Iglewicz and Hoaglin, "How to Detect and Handle
//! Outliers", 1993), and two sets differ by the Mann-Whitney U test.

/// A handful of runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// Lower end of the confidence interval of the median: 95 % from
    /// [`SURE_RUNS`] on, what order statistics give for fewer, which is the whole range.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Places of runs far from the others, in ascending order; none below 6 runs.
    pub outliers: Vec<usize>,
}

/// Runs from which on the interval of a median is one of 95 %.
pub const SURE_RUNS: usize = 6;

/// Above this a run is an outlier: Iglewicz and Hoaglin's own figure.
const OUTLIER_SCORE: f64 = 3.5;
/// Of three runs, two are mostly close together, and the third is "far" by their
/// distance: so it was for 13 of 38 handfuls of three and four that were measured.
const OUTLIER_RUNS: usize = 6;

impl Spread {
    /// Returns the spread of the runs; `None` if there are none.
    ///
    /// # Panics
    /// If a run is not a finite number.
    pub fn of(runs: &[f64]) -> Option<Self> {
        assert!(runs.iter().all(|run| run.is_finite()), "a run is a number");
        if runs.is_empty() {
            return None;
        }
        let mut sorted = runs.to_vec();
        sorted.sort_by(f64::total_cmp);
        let median = median_of_sorted(&sorted);
        let skip = ranks_outside(runs.len());
        let (low, high) = (sorted[skip], sorted[runs.len() - 1 - skip]);
        Some(Self { median, low, high, outliers: outliers(runs, median) })
    }

    /// Half the width of the interval over the median: the relative uncertainty.
    pub fn relative_error(&self) -> f64 {
        if self.median > 0.0 { (self.high - self.low) / 2.0 / self.median } else { f64::INFINITY }
    }

    /// Returns true if the intervals have a value in common, so that neither can
    /// be called the larger.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// Returns the median of values in any order; 0 without values.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    if sorted.is_empty() { 0.0 } else { median_of_sorted(&sorted) }
}

/// Returns the median of sorted values, of which there is one at least.
fn median_of_sorted(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    } else {
        sorted[middle]
    }
}

/// Returns the number of values that can be left out at each end so that the
/// rest still contains the median with 95 %: the largest number of heads that
/// `n` coins show or fall short of with a probability of at most 2.5 %.
fn ranks_outside(n: usize) -> usize {
    let mut probability = 0.5_f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let (mut tail, mut heads) = (probability, 0);
    loop {
        probability *= (n - heads) as f64 / (heads + 1) as f64;
        tail += probability;
        if tail > 0.025 {
            return heads;
        }
        heads += 1;
    }
}

fn outliers(runs: &[f64], median: f64) -> Vec<usize> {
    let distances: Vec<_> = runs.iter().map(|run| (run - median).abs()).collect();
    let spread = self::median(&distances);
    if runs.len() < OUTLIER_RUNS || spread == 0.0 {
        return Vec::new();
    }
    let score = |run: f64| 0.6745 * (run - median).abs() / spread;
    (0..runs.len()).filter(|place| score(runs[*place]) > OUTLIER_SCORE).collect()
}

/// The difference between two handfuls of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Median of the second over median of the first.
    pub ratio: f64,
    /// Two-sided probability of such ranks if both were the same.
    pub p: f64,
}

/// Compares two handfuls by the Mann-Whitney U test: exact for small sets
/// without ties, else by the normal approximation with ties corrected. `None`
/// if one is empty.
pub fn difference(before: &[f64], after: &[f64]) -> Option<Difference> {
    let (first, second) = (Spread::of(before)?, Spread::of(after)?);
    let ratio = second.median / first.median;
    Some(Difference { ratio, p: mann_whitney(before, after) })
}

fn mann_whitney(before: &[f64], after: &[f64]) -> f64 {
    let (m, n) = (before.len(), after.len());
    let (u, ties) = rank_statistic(before, after);
    let smaller = u.min((m * n) as f64 - u);
    if ties == 0.0 && m <= 20 && n <= 20 {
        return exact_p(m, n, smaller.round() as usize).min(1.0);
    }
    let (all, product) = ((m + n) as f64, (m * n) as f64);
    let variance = product / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    // Half a step of continuity.
    let z = ((product / 2.0 - smaller) - 0.5).max(0.0) / variance.sqrt();
    erfc(z / std::f64::consts::SQRT_2)
}

/// U of the second set, and the sum over all ties of t^3 - t.
fn rank_statistic(before: &[f64], after: &[f64]) -> (f64, f64) {
    let mut all: Vec<(f64, bool)> = before.iter().map(|value| (*value, false)).collect();
    all.extend(after.iter().map(|value| (*value, true)));
    all.sort_by(|one, two| one.0.total_cmp(&two.0));
    let (mut ranks, mut ties, mut done) = (0.0, 0.0, 0);
    for equal in all.chunk_by(|one, two| one.0 == two.0) {
        let count = equal.len() as f64;
        let rank = done as f64 + (count + 1.0) / 2.0;
        ranks += rank * equal.iter().filter(|(_, is_after)| *is_after).count() as f64;
        ties += count.powi(3) - count;
        done += equal.len();
    }
    let n = after.len() as f64;
    (ranks - n * (n + 1.0) / 2.0, ties)
}

/// Two-sided probability of a U of at most `u`, by counting arrangements.
fn exact_p(m: usize, n: usize, u: usize) -> f64 {
    // ways[j][k]: arrangements of the values so far with j of the first set
    // and a U of k.
    let largest = m * n;
    let mut ways = vec![vec![0.0_f64; largest + 1]; m + 1];
    ways[0][0] = 1.0;
    for taken in 0..m + n {
        for j in (1..=m.min(taken + 1)).rev() {
            // The next value is of the first set: all of the second set so far
            // lie below it.
            let below = taken + 1 - j;
            if below > n {
                continue;
            }
            for k in (below..=largest).rev() {
                ways[j][k] += ways[j - 1][k - below];
            }
        }
    }
    let total: f64 = ways[m].iter().sum();
    2.0 * ways[m][..=u].iter().sum::<f64>() / total
}

/// The complementary error function for x >= 0, to 1.2e-7 (Press et al.,
/// "Numerical Recipes", 6.2).
fn erfc(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.5 * x);
    let series = [
        0.170_872_77,
        -0.822_152_23,
        1.488_515_87,
        -1.135_203_98,
        0.278_868_07,
        -0.186_288_06,
        0.096_784_18,
        0.374_091_96,
        1.000_023_68,
        -1.265_512_23,
    ];
    let sum = series.iter().fold(0.0, |sum, factor| sum * t + factor);
    t * (-x * x + sum).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_the_one_of_the_tables() {
        // Conover, table A3 for p = 0.5: ranks of the 95 % interval.
        for (n, skip) in
            [(1, 0), (5, 0), (6, 0), (8, 0), (9, 1), (10, 1), (12, 2), (20, 5), (25, 7)]
        {
            assert_eq!(ranks_outside(n), skip, "{n} runs");
        }
    }

    #[test]
    fn of_a_few_runs_the_whole_range_is_the_interval() {
        let spread = Spread::of(&[3.0, 1.0, 2.0]).unwrap();
        assert_eq!((spread.low, spread.median, spread.high), (1.0, 2.0, 3.0));
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn a_run_far_off_is_named_and_does_not_move_the_median() {
        let runs = [10.0, 10.1, 9.9, 90.0, 10.2, 9.8];
        let spread = Spread::of(&runs).unwrap();
        assert_eq!(spread.outliers, [3]);
        assert!((spread.median - 10.05).abs() < 1e-9);
        assert!(Spread::of(&[5.0; 9]).unwrap().outliers.is_empty());
        assert!(Spread::of(&[10.0, 10.01, 10.9]).unwrap().outliers.is_empty());
    }

    /// Against scipy 1.16, `mannwhitneyu`.
    #[test]
    fn sets_differ_as_in_the_textbook() {
        let low = [1.0, 2.0, 3.0, 4.0, 5.0];
        let high = [6.0, 7.0, 8.0, 9.0, 10.0];
        assert!((difference(&low, &high).unwrap().p - 2.0 / 252.0).abs() < 1e-12);
        let mixed = [1.5, 2.5, 3.5, 4.5, 5.5];
        let p = difference(&low, &mixed).unwrap().p;
        assert!((p - 0.690_476_19).abs() < 1e-6, "{p}");
        assert_eq!(difference(&[5.0; 8], &[5.0; 8]).unwrap().p, 1.0);
        let tied = difference(&[1.0, 2.0, 2.0, 3.0], &[2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((tied.p - 0.136_658_248).abs() < 1e-6, "{}", tied.p);
        assert!((tied.ratio - 1.75).abs() < 1e-12);
    }

    #[test]
    fn erfc_is_erfc() {
        for (x, expected) in
            [(0.0, 1.0), (0.5, 0.479_500_12), (1.0, 0.157_299_21), (2.0, 0.004_677_73)]
        {
            assert!((erfc(x) - expected).abs() < 2e-7, "{x}");
        }
    }
}
