//! From values to places on the paper. The axis of bars, and that of time, is straight and
//! begins at zero, so that a length is a figure. One of points may be logarithmic: if they
//! are further apart than a factor of thirty, equal steps are equal factors.

/// The factor between the smallest and the largest value from which on an axis
/// is logarithmic.
const LOG_FROM: f64 = 30.0;

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    /// The values at its ends.
    pub(super) low: f64,
    pub(super) high: f64,
    /// True if equal steps on the axis are equal factors.
    pub(super) is_log: bool,
    from: f64,
    to: f64,
}

impl Axis {
    /// One that shows these values, drawn from one place to the other. A
    /// straight one begins at 0, a logarithmic one at a power of ten.
    pub(super) fn of(values: impl Iterator<Item = f64> + Clone, (from, to): (f64, f64)) -> Self {
        let finite = values.filter(|value| value.is_finite() && *value >= 0.0);
        let high = finite.clone().fold(0.0, f64::max);
        let positive = finite.filter(|value| *value > 0.0);
        let low = positive.fold(f64::INFINITY, f64::min);
        // A step of float so that the largest itself does not lie beyond.
        if high > 0.0 && high / low > LOG_FROM {
            let low = 10_f64.powf((low * 0.8).log10().floor()).max(f64::MIN_POSITIVE);
            return Self { low, high: (high * 1.15).min(f64::MAX), is_log: true, from, to };
        }
        Self::straight(std::iter::once(high), (from, to))
    }

    /// One on which equal steps are equal amounts, as of time, however far apart
    /// the values are.
    pub(super) fn straight(values: impl Iterator<Item = f64>, (from, to): (f64, f64)) -> Self {
        let high = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let high = if high > 0.0 { (high * 1.08).min(f64::MAX) } else { 1.0 };
        Self { low: 0.0, high, is_log: false, from, to }
    }

    /// One that shows these values close to its ends, if logarithmic.
    pub(super) fn tight(values: impl Iterator<Item = f64> + Clone, ends: (f64, f64)) -> Self {
        let mut axis = Self::of(values.clone(), ends);
        if axis.is_log {
            let positive = values.filter(|value| value.is_finite() && *value > 0.0);
            axis.low = positive.fold(f64::INFINITY, f64::min) * 0.8;
        }
        axis
    }

    /// One that, if logarithmic, ends in figures of one digit and zeros. Its foot is at most this
    /// share of the least value.
    pub(super) fn ended(
        values: impl Iterator<Item = f64> + Clone,
        share: f64,
        ends: (f64, f64),
    ) -> Self {
        let axis = Self::of(values.clone(), ends);
        if axis.is_log { Self::logarithmic(values, share, ends) } else { axis }
    }

    /// One on which equal steps are equal factors, however near the values are, with the ends of
    /// [`Axis::ended`]. A straight one if no value is above zero.
    pub(super) fn logarithmic(
        values: impl Iterator<Item = f64> + Clone,
        share: f64,
        (from, to): (f64, f64),
    ) -> Self {
        let positive = values.filter(|value| value.is_finite() && *value > 0.0);
        let least = positive.clone().fold(f64::INFINITY, f64::min) * share;
        let most = positive.fold(0.0, f64::max);
        if most <= 0.0 {
            return Self::straight(std::iter::empty(), (from, to));
        }
        let low = one_digit(least, |digit, value| digit <= value).max(f64::MIN_POSITIVE);
        let high = one_digit(most / 10.0, |digit, value| digit >= value) * 10.0;
        Self { low, high: high.min(f64::MAX), is_log: true, from, to }
    }

    /// The length of a bar from zero to a value, on an axis that is straight.
    pub(super) fn length(&self, value: f64) -> f64 {
        self.at(value) - self.at(0.0)
    }

    /// Returns true for a value that is not beyond the end of the axis.
    pub(super) fn holds(&self, value: f64) -> bool {
        value <= self.high
    }

    /// The place of a value; what lies outside is put at the end.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = if self.is_log {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            value / self.high
        };
        let share = on_paper(share);
        self.from + share * (self.to - self.from)
    }

    /// Values for lines across: powers of ten, with 2 and 5 where these are
    /// few; on a straight axis four to eight round ones.
    pub(super) fn ticks(&self) -> Vec<f64> {
        if !self.is_log {
            let step = round_step(self.high / 5.0);
            return (0..).map(|n| f64::from(n) * step).take_while(|v| *v <= self.high).collect();
        }
        let decades = (self.high / self.low).log10();
        let factors: &[f64] = match decades {
            few if few < 1.7 => &[1.0, 2.0, 5.0],
            few if few < 2.5 => &[1.0, 3.0],
            _ => &[1.0],
        };
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let every = usize::try_from((last - first) / 8).unwrap_or_default().max(1);
        let powers = (first..=last).step_by(every).map(|power| 10_f64.powi(power));
        powers
            .flat_map(|power| factors.iter().map(move |factor| factor * power))
            .filter(|value| *value >= self.low * 0.999 && *value <= self.high)
            .collect()
    }
}

/// A share as far as it can be drawn: from 0 to 1, and 0 for what is not a number.
pub(super) fn on_paper(share: f64) -> f64 {
    if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
}

/// The figure of one digit that is nearest to a value on one side of it.
pub(super) fn one_digit(value: f64, is_on_side: impl Fn(f64, f64) -> bool) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let figures = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0].map(|digit| digit * power);
    let nearest = figures.into_iter().filter(|figure| is_on_side(*figure, value));
    nearest.min_by(|one, two| (one - value).abs().total_cmp(&(two - value).abs())).unwrap_or(value)
}

/// 1, 2 or 5 times a power of ten, not below this.
pub(super) fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= least);
    factor.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(values: &[f64]) -> Axis {
        Axis::of(values.iter().copied(), (100.0, 500.0))
    }

    #[test]
    fn thirty_times_is_where_factors_begin() {
        assert!(!axis(&[10.0, 300.0]).is_log);
        assert!(axis(&[10.0, 301.0]).is_log);
        assert!(!axis(&[0.0, 5.0]).is_log, "zero is no small value");
    }

    #[test]
    fn places_are_on_the_paper_whatever_comes() {
        let odd = [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e-300, 1e308, f64::MIN_POSITIVE];
        for values in [&[][..], &[0.0], &[5.0], &[1.0, 1e6], &odd, &[1e308], &[1e-300]] {
            let axis = axis(values);
            for value in odd {
                let place = axis.at(value);
                assert!((100.0..=500.0).contains(&place), "{values:?} {value}: {place}");
            }
            assert!(axis.ticks().len() <= 12, "{values:?}: {:?}", axis.ticks());
            assert!(axis.ticks().iter().all(|tick| tick.is_finite()));
        }
    }

    #[test]
    fn time_runs_evenly() {
        let axis = Axis::straight([0.05, 60.0].into_iter(), (0.0, 100.0));
        assert!(!axis.is_log);
        assert_eq!((axis.at(0.0), axis.at(30.0) * 2.0), (0.0, axis.at(60.0)));
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(axis(&[3.0, 290.0]).ticks(), [1.0, 10.0, 100.0]);
        assert_eq!(axis(&[223.0]).ticks(), [0.0, 50.0, 100.0, 150.0, 200.0]);
        assert_eq!(axis(&[40.0, 20.0]).ticks(), [0.0, 10.0, 20.0, 30.0, 40.0]);
    }
}
