//! The run over one root as a listener of the screen.

use std::io::Write as _;
use std::sync::Mutex;

use crate::report::fold::Folding;
use crate::report::{RootPaths, heal, json, text};
use fsure_core::{ExitCode, Monitor, RelPath};
use fsure_integrity::model::{Finding, HealResult, Progress, ScanMonitor};

use super::progress::{Meter, live_line, plain_line};
use super::{Live, Screen, locked};

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
        }
    }

    fn put_all(&self, lines: &[String]) {
        lines.iter().for_each(|line| self.screen.put(line));
    }
}

impl Drop for Task<'_> {
    fn drop(&mut self) {
        for folding in [&self.findings, &self.remedies] {
            self.put_all(&locked(folding).end());
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
    fn progress(&self, progress: &Progress, current: Option<&RelPath>) {
        // A listing in a file or a pipe is never far behind the run.
        locked(&self.screen.output).flush();
        if self.screen.settings.quiet {
            return;
        }
        let mut meter = locked(&self.meter);
        let seconds = meter.elapsed();
        let rate = meter.recent_rate(seconds, progress.bytes_judged);
        let is_due = self.line.is_none() && meter.is_line_due(seconds);
        drop(meter);
        let root = self.is_one_of_several.then(|| self.paths.shown_scope());
        let root = root.map_or(String::new(), |root| root + ": ");
        if let Some(line) = &self.line {
            line.set_text(root + &live_line(progress, seconds, rate, current));
        } else if is_due {
            // If standard error fails, there is no output left to report it on.
            let _ =
                writeln!(locked(&self.screen.errors), "{root}{}", plain_line(progress, seconds));
        }
    }

    fn finding(&self, finding: &Finding) {
        let screen = self.screen;
        if !screen.is_shown(finding) {
            return;
        }
        if screen.settings.json {
            screen.put(&json::finding_line(&self.root, finding));
        } else {
            let line = screen.paint(text::finding_line(&self.paths, finding), finding.verdict);
            match screen.settings.all {
                true => screen.put(&line),
                false => self.put_all(&locked(&self.findings).finding(finding, line)),
            }
        }
    }

    fn remedy(&self, remedy: &HealResult) {
        if self.screen.settings.json {
            return self.screen.put(&heal::json_line(&self.root, remedy));
        }
        // What was found comes before what was done about it.
        self.put_all(&locked(&self.findings).end());
        let line = heal::text_line(&self.paths, remedy);
        self.put_all(&locked(&self.remedies).remedy(remedy, line));
    }
}
