//! Finds the moment at which a drive's fast cache was used up, in its rate over time. A pure
//! function of the points, so that it can be tested with the curves of drives.

use crate::stats::median;

/// Points before a drop, at least: fewer are the beginning of a file.
const BEFORE_MIN: usize = 4;
/// Points behind a drop, and seconds: a pause for the drive's own work is over by then.
const AFTER_MIN: usize = 10;
const AFTER_MIN_S: f64 = 3.0;
/// Behind a drop, the median is at most this share of the one before.
const DROP: f64 = 0.6;
/// So many of the points behind a drop are below the middle between both medians, and so many
/// of those before are above it.
const CLEAR: f64 = 0.8;

/// A drop of the rate that lasted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Drop {
    /// Points before it.
    pub(super) point: usize,
    /// Median of the points before, in MiB/s.
    pub(super) before: f64,
    /// Median of the points behind.
    pub(super) after: f64,
}

/// Returns the drop that explains most of the points (seconds since the beginning, and MiB/s
/// since the point before); `None` if the rate did not drop, or not for long.
pub(super) fn find_drop(points: &[(f64, f64)]) -> Option<Drop> {
    let point = split(points)?;
    let rates = |points: &[(f64, f64)]| points.iter().map(|point| point.1).collect::<Vec<_>>();
    let (before, after) = (rates(&points[..point]), rates(&points[point..]));
    let lasted = points.last()?.0 - points[point - 1].0;
    let found = Drop { point, before: median(&before), after: median(&after) };
    let middle = f64::midpoint(found.before, found.after);
    let share = |rates: &[f64], is_clear: &dyn Fn(f64) -> bool| {
        rates.iter().filter(|rate| is_clear(**rate)).count() as f64 / rates.len() as f64
    };
    let is_clear = share(&before, &|rate| rate > middle) >= CLEAR
        && share(&after, &|rate| rate < middle) >= CLEAR;
    (lasted >= AFTER_MIN_S && found.after <= DROP * found.before && is_clear).then_some(found)
}

/// Returns the number of points before the step that leaves the least of the squares.
fn split(points: &[(f64, f64)]) -> Option<usize> {
    let count = points.len();
    let last = count.checked_sub(AFTER_MIN).filter(|last| *last >= BEFORE_MIN)?;
    let total: f64 = points.iter().map(|point| point.1).sum();
    let (mut sum, mut best) = (0.0, None::<(f64, usize)>);
    for (place, point) in points.iter().enumerate().take(last) {
        sum += point.1;
        let before = place + 1;
        if before < BEFORE_MIN {
            continue;
        }
        // The squares that a step explains, which is all that differs between the places.
        let explained =
            sum * sum / before as f64 + (total - sum) * (total - sum) / (count - before) as f64;
        if best.is_none_or(|(most, _)| explained > most) {
            best = Some((explained, before));
        }
    }
    best.map(|(_, before)| before)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points of a quarter of a second each.
    fn points(rates: impl IntoIterator<Item = f64>) -> Vec<(f64, f64)> {
        rates.into_iter().enumerate().map(|(n, rate)| ((n + 1) as f64 / 4.0, rate)).collect()
    }

    fn noisy(rate: f64, count: usize) -> impl Iterator<Item = f64> {
        (0..count).map(move |n| rate * (1.0 + [0.1, -0.08, 0.02, -0.12, 0.05][n % 5]))
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        let drive = points(noisy(2000.0, 40).chain(noisy(500.0, 20)));
        let drop = find_drop(&drive).unwrap();
        assert_eq!(drop.point, 40);
        assert!((1900.0..2100.0).contains(&drop.before), "{drop:?}");
        assert!((480.0..520.0).contains(&drop.after), "{drop:?}");
    }

    #[test]
    fn an_even_rate_a_slope_and_a_pause_are_no_drop() {
        assert_eq!(find_drop(&points(noisy(500.0, 200))), None);
        let slope = (0..100).map(|n| 1000.0 - 2.0 * f64::from(n));
        assert_eq!(find_drop(&points(slope)), None);
        let pause = noisy(500.0, 30).chain(noisy(5.0, 8)).chain(noisy(500.0, 30));
        assert_eq!(find_drop(&points(pause)), None);
        assert_eq!(find_drop(&[]), None);
        assert_eq!(find_drop(&points(noisy(500.0, 3))), None);
    }

    #[test]
    fn a_drop_counts_once_it_has_lasted() {
        let short = points(noisy(2000.0, 40).chain(noisy(500.0, 11)));
        assert_eq!(find_drop(&short), None, "2.75 s");
        let long = points(noisy(2000.0, 40).chain(noisy(500.0, 12)));
        assert!(find_drop(&long).is_some());
    }

    #[test]
    fn a_rate_that_swings_is_no_drop() {
        let swings = (0..120).map(|n| if n / 6 % 2 == 0 { 2000.0 } else { 300.0 });
        assert_eq!(find_drop(&points(swings)), None);
    }

    #[test]
    fn the_middle_of_two_is_between_them() {
        assert_eq!((median(&[]), median(&[3.0]), median(&[4.0, 1.0])), (0.0, 3.0, 2.5));
    }
}
