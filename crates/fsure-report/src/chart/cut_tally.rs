//! Many cuts of the power, counted: a bar of those that keep the order of the writes, one of those
//! that break it, in parts by what they took, and a line on which each loss stands at its age.

use super::axis::Axis;
use super::cut_run::{CutCell, CutRun, CutState, VARIANTS};
use super::legend::{Glyph, legend, note};
use super::number_format::microseconds;
use super::svg::{COLUMN, COLUMN_CHARACTER, Canvas};

/// Ends of the bars and of the line. Before them is the room for their names.
const ENDS: (f64, f64) = (118.0, COLUMN - 8.0);
const NAME: f64 = ENDS.0 - 12.0;
const BAR: f64 = 20.0;
const ROW: f64 = BAR + 4.0;
/// Height of the marks of losses, and that of the figures below them.
const LOSS: f64 = 16.0;
const TICKS: f64 = 20.0;
/// Room between the words of a part and its ends.
const MARGIN: f64 = 1.0;

/// Meaning of the other bar.
const BROKEN: &str = "Order broken: later ones, too, without some before them; only such a cut can \
                      show damage.";
/// Class of the mark of a loss, and its meaning.
const MARK: &str = "mark";
const MEANING: &str = "a loss, at the age of its oldest write; damage has none";

/// The runs of a chart that are counted, and the scales that they share.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tally<'a> {
    runs: Vec<&'a CutRun>,
    /// Cuts of the longest bar.
    cuts_max: usize,
    losses: Axis,
}

impl<'a> Tally<'a> {
    /// Takes those of the runs that have too many cuts for a cell each.
    pub(super) fn of(runs: &'a [CutRun]) -> Self {
        let runs: Vec<_> = runs.iter().filter(|run| !run.is_worded()).collect();
        let bars = runs.iter().flat_map(|run| groups(run));
        let cuts_max = bars.map(|(_, cuts)| cuts.len()).max().unwrap_or(1);
        let losses = Axis::straight(runs.iter().flat_map(|run| losses(run)), ENDS);
        Self { runs, cuts_max, losses }
    }

    /// Explains the bars and the marks, and returns the height below.
    pub(super) fn key(&self, canvas: &mut Canvas, top: f64) -> f64 {
        if self.runs.is_empty() {
            return top;
        }
        let has_losses = self.runs.iter().any(|run| losses(run).next().is_some());
        let mark = has_losses.then_some((Glyph::Upright(MARK, ""), MEANING));
        let top = legend(canvas, top, mark.as_slice());
        note(canvas, top, &self.meaning_of_bars())
    }

    fn meaning_of_bars(&self) -> String {
        let cuts = || self.runs.iter().flat_map(|run| &run.cuts);
        let in_order = |rule: &str| cuts().any(|cut| cut.variant == rule && !cut.breaks_order());
        let whole = ["none", "all"].map(|rule| (rule, rule));
        let seen = whole.into_iter().chain(VARIANTS).filter(|(rule, _)| in_order(rule));
        let kept = seen.map(|(_, writes)| writes).collect::<Vec<_>>().join(" or ");
        format!(
            "A cut leaves a part of the writes in the drive's cache. Order kept: {kept}. {BROKEN}"
        )
    }

    /// Returns the states that stand as their sign in a part, which the key then explains.
    pub(super) fn signed(&self) -> Vec<CutState> {
        let bars = self.runs.iter().flat_map(|run| groups(run));
        let parts = bars.flat_map(|(_, cuts)| parts(&cuts));
        let signed = parts.filter(|(state, count)| self.part(*state, *count).is_signed);
        signed.map(|(state, _)| state).collect()
    }

    /// Draws the bars of a run and its losses.
    pub(super) fn draw(&self, canvas: &mut Canvas, mut top: f64, run: &CutRun) {
        for (name, cuts) in groups(run) {
            canvas.text(NAME, top + 15.0, "end soft", name);
            self.draw_bar(canvas, top, &cuts);
            top += ROW;
        }
        if losses(run).next().is_some() {
            draw_losses(canvas, top, run, &self.losses);
        }
    }

    /// Draws a bar in parts by what the cuts took.
    fn draw_bar(&self, canvas: &mut Canvas, top: f64, cuts: &[&CutCell]) {
        let mut left = ENDS.0;
        for (state, count) in parts(cuts) {
            let Part { width, words, .. } = self.part(state, count);
            canvas.rect(state.style(), (left, top), (width, BAR));
            canvas.text(left + width / 2.0, top + 15.0, "mid", &words);
            left += width;
        }
    }

    /// Returns the part of a bar for cuts of one state, with the longest words that have room in
    /// it: the state behind the number, or its sign, or neither, or nothing at all.
    fn part(&self, state: CutState, count: usize) -> Part {
        let width = count as f64 * (ENDS.1 - ENDS.0) / self.cuts_max as f64;
        let signed = format!("{count} {}", state.sign());
        let words = [format!("{count} {}", state.word()), signed.clone(), count.to_string()];
        let length = |words: &str| words.chars().count() as f64 * COLUMN_CHARACTER;
        let mut fitting = words.into_iter().filter(|words| length(words) + 2.0 * MARGIN <= width);
        let words = fitting.next().unwrap_or_default();
        Part { width, is_signed: words == signed, words }
    }
}

/// Returns the height of a run.
pub(super) fn height(run: &CutRun) -> f64 {
    let losses = if losses(run).next().is_some() { LOSS + TICKS } else { 0.0 };
    groups(run).len() as f64 * ROW + losses
}

/// A part of a bar.
struct Part {
    width: f64,
    words: String,
    /// True if the words have the sign of the state in place of its word.
    is_signed: bool,
}

/// Returns the states of some cuts, with the number of cuts in each.
fn parts(cuts: &[&CutCell]) -> Vec<(CutState, usize)> {
    let count = |state| cuts.iter().filter(|cut| cut.state == state).count();
    let parts = CutState::ALL.map(|state| (state, count(state)));
    parts.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// The losses of a run on a line of ages.
fn draw_losses(canvas: &mut Canvas, top: f64, run: &CutRun, axis: &Axis) {
    canvas.text(NAME, top + 13.0, "end soft", "age of losses");
    let bottom = top + LOSS;
    let oldest = losses(run).fold(0.0, f64::max);
    canvas.text(
        NAME,
        bottom + 14.0,
        "end strong",
        &format!("up to {}", microseconds(oldest * 1e3)),
    );
    for tick in axis.ticks() {
        canvas.line("grid", (axis.at(tick), top), (axis.at(tick), bottom));
        let words = if tick > 0.0 { microseconds(tick * 1e3) } else { "0".to_owned() };
        canvas.tick((axis.at(tick), bottom + 14.0), &words);
    }
    canvas.line("axis", (ENDS.0, bottom), (ENDS.1, bottom));
    let marks = losses(run).map(|ms| format!("M{:.1} {:.1}V{bottom:.1}", axis.at(ms), top + 2.0));
    canvas.path(MARK, "", &marks.collect::<String>());
}

/// The cuts that keep the order, and those that break it, with the name of their bar.
fn groups(run: &CutRun) -> Vec<(&'static str, Vec<&CutCell>)> {
    let of = |breaks: bool| run.cuts.iter().filter(move |cut| cut.breaks_order() == breaks);
    let groups = [("order kept", of(false).collect()), ("order broken", of(true).collect())];
    groups.into_iter().filter(|(_, cuts): &(_, Vec<_>)| !cuts.is_empty()).collect()
}

/// Ages of the losses behind which the rest is sound, in milliseconds.
fn losses(run: &CutRun) -> impl Iterator<Item = f64> {
    let lost = run.cuts.iter().filter(|cut| cut.state == CutState::Lost);
    lost.filter_map(|cut| cut.oldest_lost_ms)
}

#[cfg(test)]
mod tests {
    use super::super::cuts;
    use super::super::tests::{assert_readable, deferred_cuts, lengths};
    use super::*;

    #[test]
    fn many_cuts_are_bars_of_counts_and_losses_at_their_age() {
        let chart = cuts("t", &[deferred_cuts(60), deferred_cuts(24)]);
        assert_readable(&chart);
        for words in ["10 lost", "10 safe", "10 damaged", "10 gone", "up to 426 ms"] {
            assert!(chart.body.contains(&format!(">{words}</text>")), "{words}: {}", chart.body);
        }
        for words in ["4 +", "4 -", "4 x", "4 !"] {
            assert!(chart.body.contains(&format!(">{words}</text>")), "{words}: {}", chart.body);
        }
        for class in ["bar", "second"] {
            assert!(lengths(&chart.body, class).is_empty(), "no bar of another scale: {class}");
        }
        let kept = lengths(&chart.body, "tile good");
        assert!((kept[0] * 4.0 - (ENDS.1 - ENDS.0)).abs() < 1.0, "10 of 40 in order: {kept:?}");
        assert!((kept[1] * 10.0 - (ENDS.1 - ENDS.0)).abs() < 1.0, "the same scale: {kept:?}");
        let marks = |body: &str| {
            let paths = body.split("<path class=\"mark\"").skip(2);
            paths.map(|path| path.split("/>").next().unwrap().matches('M').count()).collect()
        };
        let words = chart.body.replace("</text>", " ");
        assert!(words.contains("none or all or"), "{words}");
        let marks: Vec<_> = marks(&chart.body);
        assert_eq!(marks, [20, 8], "a mark for each loss, and none for what is damaged");
    }

    #[test]
    fn a_run_without_losses_has_no_line_of_ages() {
        let mut run = deferred_cuts(60);
        run.cuts.retain(|cut| cut.state == CutState::Kept);
        run.cuts = run.cuts.iter().cycle().take(60).cloned().collect();
        let chart = cuts("t", &[run]);
        assert!(chart.body.contains(">60 safe</text>"), "{}", chart.body);
        assert!(!chart.body.contains("age of losses"), "{}", chart.body);
        assert!(!chart.body.contains("order broken"), "no cut breaks the order here");
    }
}
