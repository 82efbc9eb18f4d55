//! The progress of a run, in numbers and in one line; apart from the screen so that
//! it can be tested without a clock and without a terminal.

use std::collections::VecDeque;
use std::time::Instant;

use crate::report::json::ProgressLine;
use fsure_core::units;
use fsure_core::{count, safe};
use fsure_integrity::model::{CurrentFile, Progress, percent};

/// Seconds between two lines of progress that no terminal shows.
const LINE_INTERVAL_S: f64 = 60.0;
/// Seconds between two lines of progress for a program.
const JSON_INTERVAL_S: f64 = 1.0;

/// The state that the progress of one root is measured by.
pub(super) struct Meter {
    started: Instant,
    last_line_at: f64,
    /// Seconds since the start, and bytes judged until then, of the last half
    /// minute: a run that leaps over unchanged files first must not promise
    /// that the rest goes as fast.
    samples: VecDeque<(f64, u64)>,
}

impl Meter {
    /// Starts the clock.
    pub(super) fn new() -> Self {
        Self { started: Instant::now(), last_line_at: 0.0, samples: VecDeque::new() }
    }

    /// Seconds since the start.
    pub(super) fn elapsed(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// Bytes judged per second in the last half minute; `None` in the first second
    /// and if nothing moves.
    pub(super) fn recent_rate(&mut self, seconds: f64, bytes_judged: u64) -> Option<f64> {
        const WINDOW_S: f64 = 30.0;
        const STEP_S: f64 = 0.5;
        if self.samples.back().is_none_or(|(at, _)| seconds - at >= STEP_S) {
            self.samples.push_back((seconds, bytes_judged));
        }
        while self.samples.len() > 1 && seconds - self.samples[0].0 > WINDOW_S {
            self.samples.pop_front();
        }
        let (since, before) = *self.samples.front()?;
        let moved = bytes_judged.saturating_sub(before);
        (seconds - since >= 1.0 && moved > 0).then(|| moved as f64 / (seconds - since))
    }

    /// Returns true if the next line for a reader of a log is due.
    pub(super) fn is_line_due(&mut self, seconds: f64) -> bool {
        self.is_due(seconds, LINE_INTERVAL_S)
    }

    /// Returns true if the next line for a program is due.
    pub(super) fn is_json_due(&mut self, seconds: f64) -> bool {
        self.is_due(seconds, JSON_INTERVAL_S)
    }

    fn is_due(&mut self, seconds: f64, interval_s: f64) -> bool {
        let is_due = seconds - self.last_line_at >= interval_s;
        if is_due {
            self.last_line_at = seconds;
        }
        is_due
    }
}

/// The progress of one root at a moment.
pub(super) struct ProgressReport<'a> {
    pub(super) progress: &'a Progress,
    /// Seconds since the start.
    pub(super) seconds: f64,
    /// Bytes judged per second in the last half minute.
    pub(super) recent_rate: Option<f64>,
    /// Findings shown so far.
    pub(super) findings: u64,
    pub(super) current: Option<CurrentFile<'a>>,
}

impl ProgressReport<'_> {
    /// Returns the share that is done, in percent; `None` while the total still grows.
    pub(super) fn percent(&self) -> Option<u8> {
        let Progress { bytes_judged, bytes_total, total_is_known, .. } = *self.progress;
        total_is_known.then(|| percent(bytes_judged, bytes_total))
    }

    /// Returns the seconds that are left at the recent rate, or until the time of the run is
    /// over.
    pub(super) fn seconds_left(&self) -> Option<f64> {
        let rate = self.recent_rate.filter(|_| self.progress.total_is_known)?;
        let left = self.progress.bytes_total.saturating_sub(self.progress.bytes_judged);
        let limit = self.progress.time_left.map_or(f64::INFINITY, |time| time.as_secs_f64());
        Some((left as f64 / rate).min(limit))
    }

    /// Returns the line for a program.
    pub(super) fn json(&self, root: &str) -> ProgressLine {
        let Progress { files, bytes_judged, bytes_hashed, bytes_total, total_is_known, .. } =
            *self.progress;
        let path = self.current.map(|file| String::from_utf8_lossy(file.path.as_bytes()).into());
        ProgressLine {
            root: root.to_owned(),
            files,
            findings: self.findings,
            bytes: bytes_judged,
            bytes_total: total_is_known.then_some(bytes_total),
            bytes_hashed,
            seconds: self.seconds,
            seconds_left: self.seconds_left(),
            path,
            path_percent: self.current.and_then(|file| file.percent),
        }
    }

    /// Returns the line for a person. A terminal cuts it to its width: the most important comes
    /// first.
    pub(super) fn line(&self) -> String {
        let Progress { files, bytes_judged, bytes_hashed, bytes_total, .. } = *self.progress;
        let rate = units::mib_per_second(bytes_hashed, self.seconds);
        let done = units::size(bytes_judged);
        let mut parts = vec![match self.percent() {
            Some(percent) => format!("{percent}%"),
            None => "counting".to_owned(),
        }];
        parts.extend(self.seconds_left().map(|left| format!("ETA {}", units::span(left))));
        parts.push(match self.percent() {
            Some(_) => format!("{done} of {}", units::size(bytes_total)),
            None => done,
        });
        if self.findings > 0 {
            let noun = if self.findings == 1 { "finding" } else { "findings" };
            parts.push(format!("{} {noun}", count(self.findings)));
        }
        parts.push(format!("{rate:.0} MiB/s"));
        parts.push(format!("{} {}", count(files), if files == 1 { "file" } else { "files" }));
        let mut line = parts.join(", ");
        if let Some(current) = self.current {
            line += &format!("  {}", current.path.display());
            if let Some(percent) = current.percent {
                line += &format!(" {percent}%");
            }
        }
        line
    }
}

/// Returns a line with the step that is under way and the `share` of everything that
/// is done, 0 to 1.
pub(crate) fn step_line(what: &str, share: f64) -> String {
    let percent = (share.clamp(0.0, 1.0) * 100.0).floor();
    format!("{percent}%: {}", safe(what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fsure_core::RelPath;
    use std::time::Duration;

    const RUN: Progress = Progress {
        files: 19_939,
        bytes_judged: 120 << 20,
        bytes_hashed: 904 << 30,
        bytes_total: 999 << 20,
        total_is_known: true,
        time_left: None,
    };

    fn line(progress: &Progress, recent_rate: Option<f64>, findings: u64) -> String {
        let path = RelPath::from_bytes(*b"a\x1b[31mb");
        let current = Some(CurrentFile { path: &path, percent: Some(7) });
        ProgressReport { progress, seconds: 225.0, recent_rate, findings, current }.line()
    }

    #[test]
    fn what_a_narrow_terminal_must_not_cut_comes_first() {
        let unknown = Progress { total_is_known: false, ..RUN };
        let ends_soon = Progress { time_left: Some(Duration::from_secs(9)), ..RUN };
        let rate = Some(2.0 * 1_048_576.0);
        let end = "4114 MiB/s, 19,939 files  a\\x1b[31mb 7%";
        for (progress, rate, findings, expected) in [
            (&RUN, rate, 0, "12%, ETA 07:20, 120.0 MiB of 999.0 MiB, "),
            (&RUN, None, 1, "12%, 120.0 MiB of 999.0 MiB, 1 finding, "),
            (&unknown, rate, 1_234, "counting, 120.0 MiB, 1,234 findings, "),
            (&ends_soon, rate, 0, "12%, ETA 00:09, 120.0 MiB of 999.0 MiB, "),
        ] {
            assert_eq!(line(progress, rate, findings), format!("{expected}{end}"));
        }
    }

    #[test]
    fn the_rate_for_the_eta_forgets_the_leap_at_the_start() {
        let mut meter = Meter::new();
        assert_eq!(meter.recent_rate(0.0, 0), None);
        assert_eq!(meter.recent_rate(0.6, 1_000_000), None, "too early");
        assert_eq!(meter.recent_rate(2.0, 1_000_000), Some(500_000.0));
        for second in 3..=60 {
            meter.recent_rate(f64::from(second), 1_000_000 + 10 * second as u64);
        }
        assert_eq!(meter.recent_rate(60.0, 1_000_600), Some(10.0));
        assert!(meter.samples.len() < 70);
    }

    #[test]
    fn a_line_a_minute() {
        let mut meter = Meter::new();
        let due: Vec<_> = [0.1, 59.9, 60.0, 119.0, 121.0, 400.0, 401.0]
            .into_iter()
            .filter(|at| meter.is_line_due(*at))
            .collect();
        assert_eq!(due, [60.0, 121.0, 400.0]);
    }
}
