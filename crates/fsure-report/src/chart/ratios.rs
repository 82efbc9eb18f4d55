//! Ratios beside the line of "no difference": a group of bars for each thing that was tried, from
//! the line to the left if it is slower, and to the right if it is faster, with the interval of
//! each. The axis is one of factors, so that half and twice are equally far from the line.

use super::Chart;
use super::axis::{Axis, round_step};
use super::folders::BAR;
use super::legend::{Glyph, legend, note, whisker};
use super::number_format::figure;
use super::svg::{COLUMN, Canvas, clipped};

const LEFT: f64 = 8.0;
/// Ends of the axis. Before it is the room for the name of a bar, and behind it that for the
/// figures: a ratio, and its interval.
const AXIS: (f64, f64) = (156.0, COLUMN - 164.0);
const LABEL: f64 = AXIS.0 - 8.0;
const LABEL_CHARACTERS_MAX: usize = 16;
const FIGURE: f64 = AXIS.1 + 12.0;
const INTERVAL: f64 = FIGURE + 46.0;
const HEAD: f64 = 24.0;
const NAME: f64 = 22.0;
const ROW: f64 = 20.0;
const GAP: f64 = 8.0;
const TICKS: f64 = 20.0;
/// A ratio up to which, and down to its inverse, the axis is as long as its bars need.
const SMALL_RATIO: f64 = 2.0;
/// The share by which an interval may go beyond the end of the axis.
const OVERHANG: f64 = 0.05;

/// A thing that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct RatioGroup {
    /// The name of the thing.
    pub name: String,
    /// Its bars, in the order of the classes, or the word that stands in place of one.
    pub ratios: Vec<Result<RatioBar, &'static str>>,
}

/// The bars of all groups that are of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioClass<'a> {
    /// Their colour.
    pub class: &'static str,
    /// Their name, as it stands before each.
    pub name: &'a str,
    /// The meaning of the name; empty if it needs none.
    pub meaning: &'a str,
}

/// A ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioBar {
    /// The ratio: above 1 is faster.
    pub ratio: f64,
    /// Ends of its interval; `None` if not recorded.
    pub interval: Option<(f64, f64)>,
}

impl RatioBar {
    /// The ends of its interval; empty if not recorded.
    fn interval_words(&self) -> String {
        let words = |(low, high)| format!("{} to {}", two_digits(low), two_digits(high));
        self.interval.map_or_else(String::new, words)
    }

    fn words(&self) -> String {
        let ratio = two_digits(self.ratio);
        match self.interval_words() {
            interval if interval.is_empty() => ratio,
            interval => format!("{ratio} ({interval})"),
        }
    }

    fn draw(&self, canvas: &mut Canvas, top: f64, axis: &Axis, class: &str) {
        let (one, at) = (axis.at(1.0), axis.at(self.ratio));
        canvas.rect(class, (at.min(one), top), ((at - one).abs().max(1.0), BAR));
        if let Some((low, high)) = self.interval {
            whisker(canvas, (axis.at(low), axis.at(high)), top + BAR / 2.0);
        }
        canvas.text(FIGURE, top + BAR - 2.0, "strong", &two_digits(self.ratio));
        canvas.text(INTERVAL, top + BAR - 2.0, "soft", &self.interval_words());
    }

    fn ends(&self) -> [f64; 2] {
        let (low, high) = self.interval.unwrap_or((self.ratio, self.ratio));
        [low.min(self.ratio), high.max(self.ratio)]
    }
}

impl RatioGroup {
    fn height(&self) -> f64 {
        NAME + self.ratios.len() as f64 * ROW + GAP
    }

    /// Draws its name, and below that the lines of the axis with its bars on them.
    fn draw(
        &self,
        canvas: &mut Canvas,
        top: f64,
        (axis, ticks): (&Axis, &[f64]),
        classes: &[RatioClass<'_>],
    ) {
        canvas.text(LEFT, top + 16.0, "strong", &clipped(&self.name, 56));
        let mut top = top + NAME;
        let bottom = top + self.ratios.len() as f64 * ROW;
        for tick in ticks {
            canvas.line("grid", (axis.at(*tick), top), (axis.at(*tick), bottom));
        }
        canvas.line("axis", (axis.at(1.0), top), (axis.at(1.0), bottom));
        for (bar, class) in self.ratios.iter().zip(classes) {
            let name = clipped(class.name, LABEL_CHARACTERS_MAX);
            canvas.text(LABEL, top + BAR - 2.0, "end", &name);
            match bar {
                Ok(bar) => bar.draw(canvas, top, axis, class.class),
                Err(missing) => canvas.text(FIGURE, top + BAR - 2.0, "soft", missing),
            }
            top += ROW;
        }
    }
}

/// A group of bars for each thing. `classes` are the bars of a group, `interval` is the meaning of
/// the intervals, and `conditions` are sentences on what was measured.
pub fn ratios(
    title: &str,
    groups: &[RatioGroup],
    classes: &[RatioClass<'_>],
    (interval, conditions): (&str, &str),
) -> Chart {
    let bars = groups.iter().flat_map(|group| group.ratios.iter().flatten());
    let has_intervals = bars.clone().any(|bar| bar.interval.is_some());
    let axis = axis(&bars.copied().collect::<Vec<_>>());
    let one = axis.at(1.0);
    let ticks = ticks(&axis);
    let mut canvas = Canvas::default();
    // The key comes first: the last groups of a long chart are far from its end.
    let explained = classes.iter().filter(|one| !one.meaning.is_empty());
    let mut entries: Vec<_> = explained.map(|one| (Glyph::Bar(one.class), one.meaning)).collect();
    entries.extend(has_intervals.then_some((Glyph::Whisker, interval)));
    let head = legend(&mut canvas, 0.0, &entries) + GAP;
    canvas.text(one - 8.0, head + 14.0, "soft end", "slower \u{2190}");
    canvas.text(one + 8.0, head + 14.0, "soft", "\u{2192} faster");
    canvas.text(FIGURE, head + 14.0, "soft", "times");
    canvas.text(INTERVAL, head + 14.0, "soft", "interval");
    let mut bottom = head + HEAD;
    for group in groups {
        group.draw(&mut canvas, bottom, (&axis, &ticks), classes);
        bottom += group.height();
    }
    for tick in ticks {
        canvas.tick((axis.at(tick), bottom + 16.0), &figure(tick));
    }
    let height = note(&mut canvas, bottom + TICKS + GAP, conditions) + 6.0;
    let description = description(groups, classes);
    Chart { title: title.to_owned(), description, width: COLUMN, height, body: canvas.body }
}

/// The axis, up to a value that has a tick, so that the longest bar can be read. If a ratio is not
/// a small one, the axis begins at 0.5, 0.1, 0.05 and so on, and ends at 2, 5, 10, 20 and so on, so
/// that two pictures are likely to have one, which leaves room for gains.
/// An interval that goes further, by more than can be seen, makes it longer by no more than that.
fn axis(bars: &[RatioBar]) -> Axis {
    let ends = || bars.iter().flat_map(RatioBar::ends).filter(|end| end.is_finite() && *end > 0.0);
    let (least, most) = (ends().fold(1.0, f64::min), ends().fold(1.0, f64::max));
    if least >= 1.0 / SMALL_RATIO && most <= SMALL_RATIO {
        return Axis::logarithmic(ends().chain([1.0, round_step(most)]), 0.95, AXIS);
    }
    let ratios = || bars.iter().map(|bar| bar.ratio).filter(|ratio| *ratio > 0.0);
    let slowest = 1.0 / ratios().fold(1.0, f64::min);
    let fastest = ratios().fold(1.0, f64::max);
    let lowest = 1.0 / round_up(slowest, &[5.0]);
    let highest = round_up(fastest, &[5.0, 2.0]);
    let lowest = if least < lowest * (1.0 - OVERHANG) { least } else { lowest };
    let highest = if most > highest * (1.0 + OVERHANG) { most } else { highest };
    Axis::logarithmic([lowest, highest].into_iter(), 1.0, AXIS)
}

/// The least power of ten, from ten on, or one divided by a part, that is not below a value.
fn round_up(value: f64, parts: &[f64]) -> f64 {
    let ten = 10_f64.powf(value.log10().ceil().max(1.0));
    parts.iter().map(|part| ten / part).find(|step| value <= *step).unwrap_or(ten)
}

/// The ticks of the axis, which are those of small differences if it has no room for large ones.
fn ticks(axis: &Axis) -> Vec<f64> {
    const LARGE_MIN: usize = 3;
    const SMALL: [f64; 7] = [0.6, 0.7, 0.8, 1.0, 1.2, 1.5, 2.0];
    let large = axis.ticks();
    let on_it = |tick: &f64| (axis.low..=axis.high).contains(tick);
    match large.len() >= LARGE_MIN {
        true => large,
        false => SMALL.into_iter().filter(on_it).collect(),
    }
}

/// A ratio with two digits behind its point, if it is not a large one: columns of them are read
/// beside each other.
fn two_digits(ratio: f64) -> String {
    if ratio < 10.0 { format!("{ratio:.2}") } else { figure(ratio) }
}

fn description(groups: &[RatioGroup], classes: &[RatioClass<'_>]) -> String {
    let groups = groups.iter().map(|group| {
        let bars = group.ratios.iter().zip(classes);
        let figures = bars.filter_map(|(bar, class)| {
            Some(format!("{}: {} times as fast", class.name, bar.as_ref().ok()?.words()))
        });
        format!("{}, {}", group.name, figures.collect::<Vec<_>>().join(", "))
    });
    format!("{}.", groups.collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_ends_at_a_tick_or_has_fixed_ends() {
        let bar = |ratio: &f64| RatioBar { ratio: *ratio, interval: None };
        let ends = |values: &[f64]| {
            let axis = axis(&values.iter().map(bar).collect::<Vec<_>>());
            (axis.low, axis.high)
        };
        assert_eq!(ends(&[0.97, 1.3]), (0.9, 2.0));
        let assert_near = |found: (f64, f64), (low, high): (f64, f64)| {
            let is_near = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-9;
            assert!(is_near(found.0, low) && is_near(found.1, high), "{found:?}");
        };
        assert_near(ends(&[1.0, 2.3]), (0.5, 5.0));
        assert_near(ends(&[1.0, 5.3]), (0.5, 10.0));
        assert_near(ends(&[0.11, 1.5]), (0.1, 2.0));
        assert_near(ends(&[0.04, 12.0]), (0.01, 20.0));
        let wide = axis(&[RatioBar { ratio: 0.12, interval: Some((0.09, 0.14)) }]);
        assert_near((wide.low, wide.high), (0.09, 2.0));
    }
}
