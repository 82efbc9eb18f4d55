//! `ram try` in words and as JSON: the times of each way, and the ratios.

use std::time::Duration;

use fsure_core::ExitCode;
use fsure_core::safe;
use fsure_core::units::microseconds;
use fsure_measure::stats::{SURE_RUNS, Spread};
use serde::Serialize;

use super::{figure, number, table};
use crate::ram_trial::{Trial, Way, WayResult};
use crate::report::json::line;

/// The conditions of a trial.
pub struct Conditions {
    /// Maximum age of the oldest change that a crash loses, in memory and deferred.
    pub max_loss: Duration,
    /// The file system of the folder, on the disk.
    pub file_system: Option<String>,
}

/// The table, and what it means.
pub fn text(trial: &Trial, conditions: &Conditions) -> String {
    let [disk, others @ ..] = &trial.ways;
    let interval = if is_sure(disk) { "95 % interval" } else { "range" };
    let head = ["", "command", interval, "with its copies", "times as fast"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(trial.ways.iter().filter_map(|way| row(disk, way)));
    let mut report = String::from("\n");
    if rows.len() == 1 {
        report += "No turn was whole: nothing was measured.\n";
    } else {
        report += &table(&rows, |column| column == 0);
    }
    for way in others {
        report += &sentence(disk, way);
    }
    if !is_sure(disk) {
        report += &format!("Less than {SURE_RUNS} turns show no difference for sure.\n");
    }
    let turns = number(disk.runs.len() as u64, "turn", "turns");
    let lost = seconds(conditions.max_loss.as_secs_f64());
    let of_disk = conditions.file_system.as_ref().map(|name| format!("; the disk has {name}"));
    let of_disk = of_disk.unwrap_or_default();
    report += &format!(
        "{turns} each, and one to warm up{of_disk}. In memory and deferred, a power cut loses up to {lost} \
         of what was acknowledged.\n"
    );
    if trial.ended_by.is_some() {
        report += "The run was ended early.\n";
    }
    report
}

fn is_sure(disk: &WayResult) -> bool {
    disk.runs.len() >= SURE_RUNS
}

fn words(way: Way) -> &'static str {
    match way {
        Way::Disk => "on the disk",
        Way::Ram => "in memory",
        Way::Deferred => "deferred",
    }
}

fn row(disk: &WayResult, way: &WayResult) -> Option<Vec<String>> {
    let (times, whole) = (way.times()?, way.whole()?);
    let ratio = way.speed_up_over(disk).filter(|_| way.way != Way::Disk);
    let interval = |spread: &Spread, of: fn(f64) -> String| {
        format!("{} to {}", of(spread.low), of(spread.high))
    };
    Some(vec![
        words(way.way).to_owned(),
        seconds(times.median),
        interval(&times, seconds),
        seconds(whole.median),
        ratio.map_or_else(String::new, |ratio| {
            format!("{} ({})", figure(ratio.median), interval(&ratio, figure))
        }),
    ])
}

fn sentence(disk: &WayResult, way: &WayResult) -> String {
    let name = words(way.way);
    if let Some(why) = &way.refused {
        return format!("Not run {name}: {}.\n", safe(why));
    }
    let ratio = way.speed_up_over(disk).filter(|_| is_sure(disk));
    let Some(ratio) = ratio else { return String::new() };
    let own = figure(ratio.median);
    let whole = way.whole_speed_up_over(disk).map_or(0.0, |whole| whole.median);
    match () {
        () if ratio.low <= 1.0 && ratio.high >= 1.0 => {
            format!("No difference is shown {name}: the interval contains 1.\n")
        }
        // A difference that is sure, and too small to be printed.
        () if own == figure(1.0) => format!("The command is as fast {name}, to 0.5 %.\n"),
        () if ratio.low > 1.0 => {
            let whole = figure(whole);
            format!("The command is {own} times as fast {name}; {whole} times with its copies.\n")
        }
        () => format!("The command is slower {name}: {own} times as fast.\n"),
    }
}

fn seconds(seconds: f64) -> String {
    if seconds < 9.995 { microseconds(seconds * 1e6) } else { format!("{} s", figure(seconds)) }
}

#[derive(Serialize)]
struct TrialLine<'a> {
    r#type: &'static str,
    way: &'static str,
    runs: usize,
    median_s: Option<f64>,
    low_s: Option<f64>,
    high_s: Option<f64>,
    /// Median with the copies and flushes before and behind.
    whole_s: Option<f64>,
    whole_low_s: Option<f64>,
    whole_high_s: Option<f64>,
    ratio: Option<f64>,
    ratio_low: Option<f64>,
    ratio_high: Option<f64>,
    whole_ratio: Option<f64>,
    whole_ratio_low: Option<f64>,
    whole_ratio_high: Option<f64>,
    samples_s: Vec<f64>,
    refused: Option<&'a str>,
}

#[derive(Serialize)]
struct TrialSummary<'a> {
    r#type: &'static str,
    command: &'static str,
    file_system: Option<&'a str>,
    max_loss_ms: f64,
    turns: usize,
    ended_early: bool,
    exit_code: u8,
}

/// A line for each way, and the summary; no line ends.
pub fn lines(trial: &Trial, conditions: &Conditions, code: ExitCode) -> Vec<String> {
    let disk = &trial.ways[0];
    let ways = trial.ways.iter().map(|way| {
        let (times, whole) = (way.times(), way.whole());
        let is_other = way.way != Way::Disk;
        let ratio = way.speed_up_over(disk).filter(|_| is_other);
        let whole_ratio = way.whole_speed_up_over(disk).filter(|_| is_other);
        line(&TrialLine {
            r#type: "trial",
            way: way.way.name(),
            runs: way.runs.len(),
            median_s: times.as_ref().map(|times| times.median),
            low_s: times.as_ref().map(|times| times.low),
            high_s: times.as_ref().map(|times| times.high),
            whole_s: whole.as_ref().map(|whole| whole.median),
            whole_low_s: whole.as_ref().map(|whole| whole.low),
            whole_high_s: whole.as_ref().map(|whole| whole.high),
            ratio: ratio.as_ref().map(|ratio| ratio.median),
            ratio_low: ratio.as_ref().map(|ratio| ratio.low),
            ratio_high: ratio.as_ref().map(|ratio| ratio.high),
            whole_ratio: whole_ratio.as_ref().map(|ratio| ratio.median),
            whole_ratio_low: whole_ratio.as_ref().map(|ratio| ratio.low),
            whole_ratio_high: whole_ratio.as_ref().map(|ratio| ratio.high),
            samples_s: way.seconds(),
            refused: way.refused.as_deref(),
        })
    });
    let summary = line(&TrialSummary {
        r#type: "summary",
        command: "ram try",
        file_system: conditions.file_system.as_deref(),
        max_loss_ms: conditions.max_loss.as_secs_f64() * 1e3,
        turns: disk.runs.len(),
        ended_early: trial.ended_by.is_some(),
        exit_code: code.number(),
    });
    ways.chain([summary]).collect()
}
