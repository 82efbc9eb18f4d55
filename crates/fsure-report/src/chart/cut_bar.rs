//! Bars that would take the whole axis from all others. The axis begins at zero and ends where
//! the others can be read; what is longer is cut off, is marked as such, and has its figure.

use super::svg::Canvas;

/// A value beyond so many times the middle one is cut off.
const MIDDLES_MAX: f64 = 4.0;

/// Number of values from which on one may be cut off: each of fewer can be read beside the others.
const VALUES_MIN: usize = 4;

/// Meaning of the mark, for the key of a chart.
pub(super) const MEANING: &str = "cut off: longer than the axis, read its figure";

/// Words for a reader who does not see the mark.
pub(super) const WORDS: &str = "bar cut off";

/// The largest value that is drawn to its length.
pub(super) fn longest(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.filter(|value| value.is_finite() && *value > 0.0).collect();
    values.sort_by(f64::total_cmp);
    if values.len() < VALUES_MIN {
        return f64::MAX;
    }
    (values[(values.len() - 1) / 2] * MIDDLES_MAX).min(f64::MAX)
}

/// Two slanting gaps before the end of a bar, whose upper right corner is given.
pub(super) fn cut(canvas: &mut Canvas, (x, top): (f64, f64), height: f64) {
    let (above, slant) = (top - 1.0, height + 2.0);
    let gap = |at: f64| format!("M{at:.1} {:.1}l5 -{slant:.1}", above + slant);
    canvas.path("gap", "", &(gap(x - 14.0) + &gap(x - 8.0)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_far_values_are_cut_off_and_none_else() {
        let ladder = [105_277.0, 28_553.0, 14_695.0, 4_706.0, 3_509.0, 2_966.0, 2_847.0, 1_213.0];
        let most = longest(ladder.into_iter());
        assert_eq!(ladder.iter().filter(|value| **value > most).count(), 3, "{most}");
        for all in [&[5.0, 1.0][..], &[9.0], &[], &[f64::NAN, 0.0], &[3.0, 3.0, 90.0]] {
            let most = longest(all.iter().copied());
            assert!(all.iter().all(|value| value.is_nan() || *value <= most), "{all:?}: {most}");
        }
    }
}
