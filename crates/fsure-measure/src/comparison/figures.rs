//! The figures of all results beside each other, and the ratio of each to that of the first:
//! by ranks, with the probability corrected for how many ratios there are (Holm, "A Simple
//! Sequentially Rejective Multiple Test Procedure", 1979); otherwise one of twenty would be a
//! difference of nothing.

use std::borrow::Cow;

use super::contenders::Case;
use crate::results::{MethodLine, RandomLine, ResultLine, Rung, TreeWay};
use crate::stats::{Spread, difference};

/// Probability of any false difference over all ratios together.
const CHANCE: f64 = 0.05;
/// Smallest relative difference that counts: a smaller one goes unnoticed, however sure it is.
const EFFECT: f64 = 0.05;
/// The target of a rung that measures no folder.
const MEMORY: &str = "memory";
/// The unit of a figure of which less is better.
const MICROSECONDS: &str = "us";
/// The unit of random requests.
const REQUESTS_PER_S: &str = "requests/s";

/// A figure of several results.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The rung, or the way to make a write durable.
    pub name: String,
    /// The folder in the first result, or `memory`.
    pub target: String,
    /// Its unit: `MiB/s`, `files/s`, `requests/s`, `us`.
    pub unit: String,
    /// The value of each contender; `None` if it has none.
    pub values: Vec<Option<FigureValue>>,
    /// The ratio of each to the first; `None` for the first and for those without a value.
    pub ratios: Vec<Option<Ratio>>,
}

impl Figure {
    /// Returns true if less of it is better: a time.
    pub fn is_time(&self) -> bool {
        self.unit == MICROSECONDS
    }
}

/// The value of one contender.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureValue {
    /// Median of the runs; of a flush, that of the mean times of its turns.
    pub median: f64,
    /// 95 % confidence interval of the median; `None` if the result does not have its turns.
    pub interval: Option<(f64, f64)>,
    /// Number of runs or turns.
    pub runs: usize,
    /// The costs of a flush beside its time.
    pub flush: Option<FlushCost>,
    samples: Vec<f64>,
}

/// The other costs of one way to make a write durable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlushCost {
    /// Operations per second.
    pub per_second: f64,
    /// 99th percentile of the time, in microseconds.
    pub p99_us: f64,
    /// KiB that the device was written for each.
    pub device_kib_per_op: Option<f64>,
    /// Flushes that the device was sent for each.
    pub flushes_per_op: Option<f64>,
}

/// The result of a comparison of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The second is faster.
    Faster,
    /// The second is slower.
    Slower,
    /// No difference was seen: the intervals have a value in common, or the difference may be
    /// by chance, or it is under 5 %.
    NoDifference,
    /// There are too few runs to see any difference.
    TooFewRuns,
    /// One of the results was stored without its turns.
    NoInterval,
}

impl Seen {
    /// Returns true if a difference was seen.
    pub fn is_difference(self) -> bool {
        matches!(self, Self::Faster | Self::Slower)
    }

    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::NoDifference => "no difference",
            Self::TooFewRuns => "too few runs",
            Self::NoInterval => "no interval",
        }
    }
}

/// The ratio of a value to that of the first contender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The second over the first; `None` if the first is zero.
    pub ratio: Option<f64>,
    /// Interval of the ratio, from the ends of both 95 % intervals: it holds the true ratio with
    /// 90 % at least.
    pub interval: Option<(f64, f64)>,
    /// Probability of such runs if there were no difference, corrected for the number of
    /// ratios; `None` if there are too few runs for any result.
    pub p: Option<f64>,
    /// The result.
    pub seen: Seen,
    is_time: bool,
}

impl Ratio {
    /// Returns the ratio in words: `3.1 times slower (2.9 to 3.3)`.
    pub fn words(&self) -> String {
        self.phrase("")
    }

    /// Returns a sentence without its end: `B is 3.1 times slower than A (2.9 to 3.3)`.
    pub fn sentence(&self, second: &str, first: &str) -> String {
        match self.seen {
            Seen::Faster | Seen::Slower => {
                format!("{second} is {}", self.phrase(&format!("than {first} ")))
            }
            Seen::NoDifference => self.phrase(&format!("between {second} and {first} ")),
            _ => format!("{second} and {first}: {}", self.phrase("")),
        }
    }

    /// The ratio with `between` (`than A `) before its interval.
    fn phrase(&self, between: &str) -> String {
        // How many times slower; a speed is turned over.
        let inverse = |(low, high): (f64, f64)| (1.0 / high, 1.0 / low);
        let (ratio, interval) = (self.ratio.unwrap_or(1.0), self.interval);
        let slower = interval.map(|interval| match self.is_time {
            true => (ratio, interval),
            false => (1.0 / ratio, inverse(interval)),
        });
        let words = |times: f64, (low, high): (f64, f64), word: &str| {
            let [times, low, high] = [times, low, high].map(factor);
            format!("{times} times {word} {between}({low} to {high})")
        };
        match (self.seen, slower) {
            (Seen::Slower, Some((times, interval))) => words(times, interval, "slower"),
            (Seen::Faster, Some((times, interval))) => {
                words(1.0 / times, inverse(interval), "faster")
            }
            (Seen::NoDifference, _) => {
                let (low, high) = interval.unwrap_or((ratio, ratio));
                format!("no difference seen {between}({} to {})", factor(low), factor(high))
            }
            (Seen::TooFewRuns, _) => "too few runs to compare".to_owned(),
            _ => "interval not stored".to_owned(),
        }
    }
}

/// Two digits that count, and no more.
fn factor(times: f64) -> String {
    match times {
        ..0.0995 => format!("{times:.3}"),
        ..1.95 => format!("{times:.2}"),
        ..9.95 => format!("{times:.1}"),
        _ => fsure_core::count(times.round() as u64),
    }
}

/// Returns the figures that can be compared, and the names of those of some contenders only.
pub(super) fn figures(cases: &[Case<'_>]) -> (Vec<Figure>, Vec<String>) {
    let all: Vec<Vec<Measured>> = cases.iter().map(measured).collect();
    let (mut figures, mut only) = (Vec::new(), Vec::new());
    for (place, own) in all.iter().enumerate() {
        for one in own {
            let is_known = all[..place].iter().any(|other| one.twin(other).is_some());
            if is_known {
                continue;
            }
            let values: Vec<_> =
                all.iter().map(|other| one.twin(other).map(|twin| twin.value.clone())).collect();
            let has = |(case, value): (&Case<'_>, &Option<FigureValue>)| {
                value.as_ref().map(|_| case.contender.name.clone())
            };
            let having: Vec<_> = cases.iter().zip(&values).filter_map(has).collect();
            if having.len() < cases.len() {
                only.push(format!("{}, {}: {}", one.name, one.target, having.join(", ")));
            }
            if place == 0 && having.len() > 1 {
                let (name, target) = (one.name.clone().into_owned(), one.target.to_owned());
                let unit = one.unit.to_owned();
                figures.push(Figure { name, target, unit, values, ratios: Vec::new() });
            }
        }
    }
    judge(&mut figures);
    (figures, only)
}

/// A value in a result.
struct Measured<'a> {
    name: Cow<'a, str>,
    target: &'a str,
    unit: &'a str,
    /// Place of the folder among those of the contender; `None` for memory.
    place: Option<usize>,
    value: FigureValue,
}

impl Measured<'_> {
    /// Returns the same figure of another contender.
    fn twin<'b, 'c>(&self, others: &'b [Measured<'c>]) -> Option<&'b Measured<'c>> {
        others.iter().find(|other| {
            (&other.name, other.unit, other.place) == (&self.name, self.unit, self.place)
        })
    }
}

fn measured<'a>(case: &Case<'a>) -> Vec<Measured<'a>> {
    // The folders of one result share what is measured in memory.
    let has_memory = case.targets.len() == case.stored.header.targets.len();
    let place = |target: &str| match target {
        MEMORY => has_memory.then_some(None),
        _ => case.targets.iter().position(|own| *own == target).map(Some),
    };
    let each = |line: &'a ResultLine| {
        let (name, target, unit, value) = match line {
            ResultLine::Rung(rung) => {
                (Cow::from(&rung.name), &rung.target, &*rung.unit, of_rung(rung))
            }
            ResultLine::Random(line) => {
                let name = format!("{}, {} at a time", line.name, line.queue_depth);
                (Cow::from(name), &line.target, REQUESTS_PER_S, of_random(line))
            }
            ResultLine::Method(method) => {
                (Cow::from(&method.name), &method.target, MICROSECONDS, of_method(method))
            }
            ResultLine::TreeWay(way) if is_comparable(case, way) => {
                (Cow::from(&way.name), &way.volumes[0].target, "MiB/s", of_tree_way(way))
            }
            _ => return None,
        };
        Some(Measured { name, target, unit, place: place(target)?, value })
    };
    case.stored.lines.iter().filter_map(each).collect()
}

fn of_rung(rung: &Rung) -> FigureValue {
    let interval = Some((rung.low, rung.high));
    let samples = rung.samples.clone();
    FigureValue { median: rung.median, interval, runs: rung.runs, flush: None, samples }
}

fn of_random(line: &RandomLine) -> FigureValue {
    let (interval, samples) = (Some((line.low, line.high)), line.samples.clone());
    FigureValue { median: line.iops, interval, runs: samples.len(), flush: None, samples }
}

/// Returns true if a way of reading is the first of its name, as of a sweep, and of all folders
/// of the contender: its rate is that of all volumes together.
fn is_comparable(case: &Case<'_>, way: &TreeWay) -> bool {
    let is_first = |line: &&ResultLine| match line {
        ResultLine::TreeWay(other) => other.name == way.name,
        _ => false,
    };
    let first = case.stored.lines.iter().find(is_first);
    let is_it = first.is_some_and(|line| matches!(line, ResultLine::TreeWay(one) if one == way));
    is_it && !way.volumes.is_empty() && way.volumes.len() == case.targets.len()
}

fn of_tree_way(way: &TreeWay) -> FigureValue {
    let (interval, runs) = (Some((way.low, way.high)), way.samples.len());
    let samples = way.samples.clone();
    FigureValue { median: way.median, interval, runs, flush: None, samples }
}

fn of_method(method: &MethodLine) -> FigureValue {
    let spread = Spread::of(&method.turns_us);
    let mean_us = if method.ops > 0.0 { 1e6 / method.ops } else { method.p50_us };
    FigureValue {
        median: spread.as_ref().map_or(mean_us, |spread| spread.median),
        interval: spread.map(|spread| (spread.low, spread.high)),
        runs: method.turns_us.len(),
        flush: Some(FlushCost {
            per_second: method.ops,
            p99_us: method.p99_us,
            device_kib_per_op: method.device_kib_per_op,
            flushes_per_op: method.flushes_per_op,
        }),
        samples: method.turns_us.clone(),
    }
}

/// Two values whose ratio is sought, by the places of the figure and the contender.
struct Pair {
    figure: usize,
    contender: usize,
    p: Option<f64>,
    least_p: f64,
}

fn judge(figures: &mut [Figure]) {
    let mut pairs = Vec::new();
    for (place, figure) in figures.iter().enumerate() {
        let Some(first) = &figure.values[0] else { continue };
        for (contender, value) in figure.values.iter().enumerate().skip(1) {
            let Some(value) = value else { continue };
            let p = difference(&first.samples, &value.samples).map(|difference| difference.p);
            let least_p = least_p(first.samples.len(), value.samples.len());
            pairs.push(Pair { figure: place, contender, p, least_p });
        }
    }
    let corrected = holm(&pairs);
    for figure in &mut *figures {
        figure.ratios = vec![None; figure.values.len()];
    }
    for (pair, corrected) in pairs.iter().zip(corrected) {
        let figure = &mut figures[pair.figure];
        let [first, second] = [0, pair.contender].map(|place| figure.values[place].clone());
        let (Some(first), Some(second)) = (first, second) else { continue };
        let has_enough_runs = pair.least_p * (pairs.len() as f64) < CHANCE;
        let p = corrected.filter(|_| has_enough_runs);
        let ratio = ratio(&first, &second, p, figure.is_time());
        figure.ratios[pair.contender] = Some(ratio);
    }
}

/// Holm's steps: the smallest probability is compared with the number of all pairs, the next
/// with one less.
fn holm(pairs: &[Pair]) -> Vec<Option<f64>> {
    let p_of = |place: &usize| pairs[*place].p.unwrap_or(1.0);
    let mut order: Vec<usize> =
        (0..pairs.len()).filter(|place| pairs[*place].p.is_some()).collect();
    order.sort_by(|one, other| p_of(one).total_cmp(&p_of(other)));
    let mut corrected = vec![None; pairs.len()];
    let mut largest = 0.0_f64;
    for (step, place) in order.iter().enumerate() {
        let left = (order.len() - step) as f64;
        largest = largest.max((p_of(place) * left).min(1.0));
        corrected[*place] = Some(largest);
    }
    corrected
}

/// The smallest probability that so many runs can have: all of the one before all of the other.
fn least_p(before: usize, after: usize) -> f64 {
    let ways = (1..=after).fold(1.0, |ways, n| ways * (before + n) as f64 / n as f64);
    (2.0 / ways).min(1.0)
}

fn ratio(first: &FigureValue, second: &FigureValue, p: Option<f64>, is_time: bool) -> Ratio {
    let over = |one: f64, other: f64| Some(one / other).filter(|ratio| ratio.is_finite());
    let ratio = over(second.median, first.median);
    let interval = first.interval.zip(second.interval).and_then(|(one, two)| {
        Some((over(two.0, one.1)?, over(two.1, one.0)?)).filter(|(low, _)| *low > 0.0)
    });
    let seen = match (ratio, interval) {
        (Some(ratio), Some((low, high))) => match p {
            None => Seen::TooFewRuns,
            Some(p) if p >= CHANCE || (ratio - 1.0).abs() < EFFECT => Seen::NoDifference,
            // The intervals have a value in common.
            Some(_) if low <= 1.0 && high >= 1.0 => Seen::NoDifference,
            Some(_) if (ratio > 1.0) == is_time => Seen::Slower,
            Some(_) => Seen::Faster,
        },
        _ => Seen::NoInterval,
    };
    Ratio { ratio, interval, p, seen, is_time }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_runs_prove_nothing() {
        assert!((least_p(5, 5) - 2.0 / 252.0).abs() < 1e-12);
        assert!((least_p(6, 6) - 2.0 / 924.0).abs() < 1e-12);
        assert!(least_p(1, 1) >= 1.0);
    }

    #[test]
    fn a_factor_has_the_digits_that_count() {
        for (times, text) in
            [(0.0123, "0.012"), (0.97, "0.97"), (1.05, "1.05"), (3.12, "3.1"), (12_345.6, "12,346")]
        {
            assert_eq!(factor(times), text);
        }
    }
}
