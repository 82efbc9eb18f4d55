//! The progress of a run, in numbers and in one line; apart from the screen so that
//! it can be tested without a clock and without a terminal.

use std::collections::VecDeque;
use std::time::Instant;

use fsure_core::{RelPath, units};
use fsure_core::{count, safe};
use fsure_integrity::model::Progress;

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

    /// Returns true if the next line is due, one every three seconds as in icj.
    pub(super) fn is_line_due(&mut self, seconds: f64) -> bool {
        const EVERY_S: f64 = 3.0;
        let is_due = seconds - self.last_line_at >= EVERY_S;
        if is_due {
            self.last_line_at = seconds;
        }
        is_due
    }
}

/// `12%: 19939 files 904.0 GiB @ 4109 MiB/sec, 03:45`, as icj prints it, for
/// scripts that read it: no separators in numbers, the elapsed time last.
pub(super) fn plain_line(progress: &Progress, seconds: f64) -> String {
    let Progress { files, bytes_hashed, .. } = *progress;
    let rate = units::mib_per_second(bytes_hashed, seconds);
    let (size, time) = (units::size(bytes_hashed), units::span(seconds));
    format!("{}: {files} files {size} @ {rate:.0} MiB/sec, {time}", percent(progress))
}

/// Returns the line of progress for a terminal, which cuts it to its width: the most
/// important comes first.
pub(super) fn live_line(
    progress: &Progress,
    seconds: f64,
    recent_rate: Option<f64>,
    current: Option<&RelPath>,
) -> String {
    let rate = units::mib_per_second(progress.bytes_hashed, seconds);
    let (files, size) = (count(progress.files), units::size(progress.bytes_hashed));
    let mut line = format!("{} {files} files {size} @ {rate:.0} MiB/s", percent(progress));
    if let (true, Some(recent_rate)) = (progress.total_is_known, recent_rate) {
        let left = progress.bytes_total.saturating_sub(progress.bytes_judged);
        let left = left as f64 / recent_rate;
        let time_left = progress.time_left.map_or(left, |time| time.as_secs_f64());
        line += &format!(", ETA {}", units::span(left.min(time_left)));
    }
    if let Some(path) = current {
        line += &format!("  {}", path.display());
    }
    line
}

/// Returns the share that is done, in percent; never 100 before the end, and no
/// number at all while the total still grows.
fn percent(progress: &Progress) -> String {
    let (done, total) = (u128::from(progress.bytes_judged), u128::from(progress.bytes_total));
    match (progress.total_is_known, total) {
        (false, _) => "--%".to_owned(),
        (true, 0) => "100%".to_owned(),
        (true, _) => format!("{}%", (done * 100 / total).min(100)),
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
    use std::time::Duration;

    const RUN: Progress = Progress {
        files: 19_939,
        bytes_judged: 120,
        bytes_hashed: 904 << 30,
        bytes_total: 999,
        total_is_known: true,
        time_left: None,
    };

    #[test]
    fn lines_of_progress() {
        let unknown = Progress { total_is_known: false, ..RUN };
        let ends_soon = Progress { time_left: Some(Duration::from_secs(9)), ..RUN };
        assert_eq!(plain_line(&RUN, 225.0), "12%: 19939 files 904.0 GiB @ 4114 MiB/sec, 03:45");
        assert!(plain_line(&unknown, 225.0).starts_with("--%: 19939 files "));
        let path = RelPath::from_bytes(*b"a\x1b[31mb");
        for (progress, rate, end) in [
            (&RUN, Some(2.0), ", ETA 07:20  a\\x1b[31mb"),
            (&RUN, None, "  a\\x1b[31mb"),
            (&unknown, Some(2.0), "  a\\x1b[31mb"),
            (&ends_soon, Some(2.0), ", ETA 00:09  a\\x1b[31mb"),
        ] {
            let start = format!("{} 19,939 files 904.0 GiB @ 4114 MiB/s", percent(progress));
            let line = live_line(progress, 225.0, rate, Some(&path));
            assert_eq!(line, start + end);
        }
        for (judged, total, text) in [(0, 0, "100%"), (998, 999, "99%"), (9, 3, "100%")] {
            let progress = Progress { bytes_judged: judged, bytes_total: total, ..RUN };
            assert_eq!(percent(&progress), text);
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
    fn a_line_every_three_seconds() {
        let mut meter = Meter::new();
        let due: Vec<_> = [0.1, 2.9, 3.0, 5.9, 6.1, 20.0, 21.0]
            .into_iter()
            .filter(|at| meter.is_line_due(*at))
            .collect();
        assert_eq!(due, [3.0, 6.1, 20.0]);
    }
}
