//! A stored history: the time that it covers, and what a recorder says at its end.

use fsure_core::{ExitCode, count, units};
use fsure_hot::{Gap, History, Hot, Recorded, stored_line};
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::report::json::line;
use crate::report::{number, timestamp};

/// Gaps that the summary has, the longest.
const GAPS_MAX: usize = 100;

fn local(time_ns: i64) -> String {
    timestamp(time_ns).to_zoned(TimeZone::system()).strftime("%F %T").to_string()
}

/// Returns sentences on the time that is covered, and on what is missing of it.
pub(super) fn coverage(hot: &Hot, history: &History) -> String {
    let intervals = number(history.recorded, "interval", "intervals");
    let mut text = format!(
        "Recorded {} from {} to {}, in {intervals}.",
        units::span(hot.seconds),
        local(history.began_ns),
        local(history.ended_ns)
    );
    if history.seconds_missing > 0.0 {
        text += &missing(history);
    }
    if history.set_back > 0 {
        let times = number(history.set_back, "time", "times");
        text += &format!(" The clock was set back meanwhile ({times}): dates are not in order.");
    }
    if history.is_in_future {
        text += " An interval is dated later than now: the clock was wrong then, or is now.";
    }
    if !history.is_recording {
        text += " No recorder is at work";
        if history.age_s >= 0.0 {
            text += &format!("; the last interval ended {} ago", units::span(history.age_s));
        }
        text += ".";
    }
    if history.damaged > 0 {
        let lines = number(history.damaged, "line is damaged", "lines are damaged");
        text += &format!(" DAMAGED: {lines} and passed over.");
    }
    text
}

fn missing(history: &History) -> String {
    let mut text = format!(" Not recorded: {}", units::span(history.seconds_missing));
    let longest = history.gaps.iter().max_by(|a, b| a.seconds().total_cmp(&b.seconds()));
    if let Some(gap) = longest {
        let (from, to) = (local(gap.began_ns), local(gap.ended_ns));
        text += &match history.gaps.len() {
            1 => format!(", from {from} to {to}"),
            gaps => format!(", in {} gaps, the longest from {from} to {to}", count(gaps as u64)),
        };
    }
    let in_gaps: f64 = history.gaps.iter().map(Gap::seconds).sum();
    let inside = history.seconds_missing - in_gaps;
    if inside >= 1.0 {
        let inside = units::span(inside);
        text += &format!("; {inside} of it is inside of intervals, as the machine slept, or ");
        text += "intervals were merged";
    }
    text + "; no figure takes that time for quiet."
}

/// The history of a summary.
#[derive(Serialize)]
pub(super) struct HistoryFacts {
    began: String,
    ended: String,
    intervals: u64,
    seconds_missing: f64,
    /// The longest gaps, in the order of time.
    gaps: Vec<GapFacts>,
    clock_set_back: u64,
    damaged_lines: u64,
    is_recording: bool,
    seconds_since: f64,
}

#[derive(Serialize)]
struct GapFacts {
    began: String,
    ended: String,
    seconds: f64,
}

impl HistoryFacts {
    pub(super) fn of(history: &History) -> Self {
        let mut gaps: Vec<&Gap> = history.gaps.iter().collect();
        gaps.sort_by(|a, b| b.seconds().total_cmp(&a.seconds()));
        gaps.truncate(GAPS_MAX);
        gaps.sort_by_key(|gap| gap.began_ns);
        let time = |time_ns: i64| timestamp(time_ns).to_string();
        let gaps = gaps.into_iter().map(|gap| GapFacts {
            began: time(gap.began_ns),
            ended: time(gap.ended_ns),
            seconds: gap.seconds(),
        });
        Self {
            began: time(history.began_ns),
            ended: time(history.ended_ns),
            intervals: history.recorded,
            seconds_missing: history.seconds_missing,
            gaps: gaps.collect(),
            clock_set_back: history.set_back,
            damaged_lines: history.damaged,
            is_recording: history.is_recording,
            seconds_since: history.age_s,
        }
    }
}

/// Returns the intervals of a history, merged where they are many; none if it was watched now.
pub fn recorded_lines(hot: &Hot) -> impl Iterator<Item = String> + '_ {
    let intervals = hot.history.iter().flat_map(|history| &history.intervals);
    intervals.map(stored_line)
}

#[derive(Serialize)]
struct RecordSummaryLine<'a> {
    r#type: &'static str,
    command: &'static str,
    file: std::borrow::Cow<'a, str>,
    intervals: u64,
    seconds: f64,
    exit_code: u8,
}

/// The last line of a recorder; no line end.
pub fn recorded_summary_line(recorded: &Recorded, exit_code: ExitCode) -> String {
    line(&RecordSummaryLine {
        r#type: "summary",
        command: "hot record",
        file: recorded.file.to_string_lossy(),
        intervals: recorded.intervals,
        seconds: recorded.seconds,
        exit_code: exit_code.number(),
    })
}

/// Returns what a recorder says at its end.
pub fn recorded_text(recorded: &Recorded) -> String {
    let span = units::span(recorded.seconds);
    let intervals = number(recorded.intervals, "interval", "intervals");
    format!("Recorded {span}, in {intervals}.\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: i64 = 1_000_000_000;

    #[test]
    fn time_that_is_missing_is_told_with_its_place() {
        let gap = |from: i64, to: i64| Gap { began_ns: from * SECOND_NS, ended_ns: to * SECOND_NS };
        let of = |gaps: &[Gap], seconds_missing| {
            missing(&History { gaps: gaps.to_vec(), seconds_missing, ..History::default() })
        };
        let one = of(&[gap(0, 60)], 60.0);
        assert!(one.contains("Not recorded: 01:00, from ") && !one.contains("inside"), "{one}");
        let two = of(&[gap(0, 60), gap(600, 7800)], 7260.0);
        assert!(two.contains("2:01:00, in 2 gaps, the longest from "), "{two}");
        let merged = of(&[gap(0, 60)], 660.0);
        assert!(merged.contains("; 10:00 of it is inside of intervals"), "{merged}");
        assert!(!of(&[], 600.0).contains("gap"), "none is known");
    }
}
