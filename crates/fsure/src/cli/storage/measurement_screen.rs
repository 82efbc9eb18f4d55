//! A measurement on the terminal, for all commands that measure: each line of the
//! result goes to the requested outputs as soon as it is known, so that a run that is
//! killed has printed and saved what it measured.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fsure_core::{ExitCode, Monitor, Result, Step, StepMonitor};
use fsure_measure::results::{MeasurementMonitor, ResultLine, ResultWriter};
use fsure_os::output::Destination;

use super::screen::progress::step_line;
use super::screen::{Live, Screen, create_saved};

/// A listener that keeps, prints and saves lines.
pub(crate) struct Measuring<'a> {
    screen: &'a Screen,
    /// True if standard output gets the lines, and not the report.
    pub(crate) prints_lines: bool,
    live: Option<Live<'a>>,
    saved: Mutex<Option<SavedLines>>,
    /// The file that was made for the lines.
    made: Option<PathBuf>,
    kept: Mutex<Kept>,
}

/// The lines that were measured, and an exit code, which is clean if all of them
/// could be saved.
struct Kept {
    lines: Vec<ResultLine>,
    code: ExitCode,
}

impl<'a> Measuring<'a> {
    /// A measurement that begins now, with its lines saved in a file that must not
    /// exist yet: a user who measures again wants to compare with what was measured
    /// before.
    pub(crate) fn begin(screen: &'a Screen, json: bool, save: Option<&Path>) -> Result<Self> {
        let file = save.filter(|path| !Destination::is_standard_output(path));
        let (saved, made) = match file.map(|path| create_saved(path, screen)).transpose()? {
            Some((saved, made)) => (Some(ResultWriter::new(saved)), made),
            None => (None, None),
        };
        let kept = Mutex::new(Kept { lines: Vec::new(), code: ExitCode::Clean });
        let prints_lines = json || save.is_some() && file.is_none();
        let (live, saved) = (screen.live_line(), Mutex::new(saved));
        Ok(Self { screen, prints_lines, live, saved, made, kept })
    }

    /// All lines, and the exit code of the run, which was to end with `code`.
    pub(crate) fn end(self, code: ExitCode) -> (Vec<ResultLine>, ExitCode) {
        let kept = self.kept.into_inner().unwrap_or_else(PoisonError::into_inner);
        // Empty, it would only be in the way of the next attempt.
        if let Some(path) = self.made.filter(|_| kept.lines.is_empty()) {
            fsure_os::path::remove(&path, false);
        }
        (kept.lines, code.worse(kept.code))
    }
}

type SavedLines = ResultWriter<Box<dyn Write + Send>>;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Monitor for Measuring<'_> {
    fn warn(&self, message: &str) {
        self.screen.warn(message);
    }

    fn stop_requested(&self) -> Option<ExitCode> {
        self.screen.stop_requested()
    }
}

impl StepMonitor for Measuring<'_> {
    fn under_way(&self, step: &Step<'_>) {
        if let Some(live) = &self.live {
            live.set_text(step_line(step.what, step.share));
        }
    }
}

impl MeasurementMonitor for Measuring<'_> {
    fn measured(&self, line: &ResultLine) {
        if self.prints_lines {
            self.screen.print_now(&line.to_json());
        }
        let mut saved = locked(&self.saved);
        let mut kept = locked(&self.kept);
        if let Some(Err(error)) = saved.as_mut().map(|saved| saved.line(line)) {
            *saved = None;
            kept.code = ExitCode::Incomplete;
            self.screen.warn(&format!("the result is no longer saved: {error}"));
        }
        kept.lines.push(line.clone());
    }
}
