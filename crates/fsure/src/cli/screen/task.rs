//! The run over one root as a listener of the screen.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::report::fold::Folding;
use crate::report::{RootPaths, heal, json, text};
use fsure_core::{ExitCode, Monitor};
use fsure_integrity::model::{CurrentFile, Finding, HealResult, Progress, ScanMonitor};

use super::progress::{Meter, ProgressReport};
use super::{Live, ProgressMode, Screen, locked};

/// One root on the screen: a listener for its run.
pub(crate) struct Task<'a> {
    screen: &'a Screen,
    root: String,
    paths: RootPaths,
    /// True if the command has other roots, too.
    is_one_of_several: bool,
    meter: Mutex<Meter>,
    line: Option<Live<'a>>,
    /// Lines of what is gone, until all below a folder that is gone is known.
    findings: Mutex<Folding>,
    remedies: Mutex<Folding>,
    /// Findings that were shown.
    shown: AtomicU64,
    /// Lines that the screen had printed before the first grave finding, plus one; 0 without
    /// one.
    first_grave: AtomicU64,
}

impl<'a> Task<'a> {
    pub(super) fn new(screen: &'a Screen, paths: RootPaths, is_one_of_several: bool) -> Self {
        Self {
            screen,
            root: paths.root().to_string_lossy().into_owned(),
            paths,
            is_one_of_several,
            meter: Mutex::new(Meter::new()),
            line: screen.live_line(),
            findings: Mutex::default(),
            remedies: Mutex::default(),
            shown: AtomicU64::new(0),
            first_grave: AtomicU64::new(0),
        }
    }

    /// Returns true if the first grave finding cannot be seen any more when the report is
    /// printed.
    pub(crate) fn has_lost_findings(&self) -> bool {
        match self.first_grave.load(Ordering::Relaxed) {
            0 => false,
            first => self.screen.has_scrolled_away(first - 1),
        }
    }

    fn put_all(&self, lines: &[String]) {
        lines.iter().for_each(|line| self.screen.put(line));
    }
}

impl Drop for Task<'_> {
    fn drop(&mut self) {
        for folding in [&self.findings, &self.remedies] {
            self.put_all(&locked(folding).end(&self.paths));
        }
    }
}

impl Monitor for Task<'_> {
    fn warn(&self, message: &str) {
        match self.is_one_of_several {
            true => self.screen.warn(&format!("{}: {message}", self.root)),
            false => self.screen.warn(message),
        }
    }

    fn stop_requested(&self) -> Option<ExitCode> {
        self.screen.stop_requested()
    }
}

impl ScanMonitor for Task<'_> {
    fn progress(&self, progress: &Progress, current: Option<CurrentFile<'_>>) {
        // A listing in a file or a pipe is never far behind the run.
        locked(&self.screen.output).flush();
        let mut meter = locked(&self.meter);
        let seconds = meter.elapsed();
        let recent_rate = meter.recent_rate(seconds, progress.bytes_judged);
        let is_json = self.screen.settings.progress == ProgressMode::Json;
        let is_due = match (is_json, &self.line) {
            (true, _) => meter.is_json_due(seconds),
            (false, Some(_)) => true,
            (false, None) => meter.is_line_due(seconds),
        };
        drop(meter);
        if !is_due {
            return;
        }
        let findings = self.shown.load(Ordering::Relaxed);
        let report = ProgressReport { progress, seconds, recent_rate, findings, current };
        if is_json {
            return self.screen.put(&json::progress_line(&report.json(&self.root)));
        }
        let root = self.is_one_of_several.then(|| self.paths.shown_scope() + ": ");
        let text = root.unwrap_or_default() + &report.line();
        match &self.line {
            Some(line) => line.set_text(text),
            None => self.screen.progress_line(&text),
        }
    }

    fn finding(&self, finding: &Finding) {
        let screen = self.screen;
        screen.list(&self.paths, finding);
        if !screen.is_shown(finding) {
            return;
        }
        self.shown.fetch_add(1, Ordering::Relaxed);
        if finding.verdict.is_grave() || finding.known_damage.is_some() {
            let mark = screen.lines_printed() + 1;
            let _ =
                self.first_grave.compare_exchange(0, mark, Ordering::Relaxed, Ordering::Relaxed);
        }
        if screen.settings.json {
            screen.put(&json::finding_line(&self.root, finding));
        } else {
            let line = screen.paint(text::finding_line(&self.paths, finding), finding.verdict);
            match screen.settings.all {
                true => screen.put(&line),
                false => self.put_all(&locked(&self.findings).finding(&self.paths, finding, line)),
            }
        }
    }

    fn remedy(&self, remedy: &HealResult) {
        if self.screen.settings.json {
            return self.screen.put(&heal::json_line(&self.root, remedy));
        }
        // What was found comes before what was done about it.
        self.put_all(&locked(&self.findings).end(&self.paths));
        let line = heal::text_line(&self.paths, remedy);
        self.put_all(&locked(&self.remedies).remedy(remedy, line));
    }
}
