//! `fsure crash --matrix`: rows as they are filled.

use std::sync::{Mutex, PoisonError};

use crate::report::storage::matrix as report;
use crate::workload::workload;
use fsure_core::{ExitCode, Monitor, Result};
use fsure_crash::{CrashCell, CrashLine};
use fsure_crash::{CrashMonitor, CrashWorkload as _, MatrixOptions, matrix};
use fsure_simdrive::Behavior;

use super::OutputArgs;
use super::screen::progress::step_line;
use super::screen::{Live, Screen};

/// Fills the table and prints it.
pub(crate) fn run(
    options: &MatrixOptions,
    output: &OutputArgs,
    screen: &Screen,
) -> Result<ExitCode> {
    let drives: Vec<_> = options.each.drives.iter().map(ToString::to_string).collect();
    let filling = Filling {
        screen,
        json: output.json,
        quiet: output.quiet,
        live: screen.live_line(),
        columns: drives.len(),
        row: Mutex::default(),
    };
    if !output.json && !output.quiet {
        screen.print_now(&report::head(&drives));
    }
    matrix(options, &filling)
}

/// A listener that prints each row when it is full.
struct Filling<'a> {
    screen: &'a Screen,
    json: bool,
    quiet: bool,
    live: Option<Live<'a>>,
    columns: usize,
    row: Mutex<Vec<CrashCell>>,
}

impl Filling<'_> {
    /// Adds a cell, and prints the row if that was its last; quietly only a row
    /// that is not as it should be.
    fn add(&self, cell: &CrashCell) {
        let mut row = self.row.lock().unwrap_or_else(PoisonError::into_inner);
        row.push(cell.clone());
        if row.len() < self.columns {
            return;
        }
        if !self.quiet || row.iter().any(|cell| !cell.as_expected) {
            let honest = workload(&cell.workload)
                .map(|workload| workload.expect(Behavior::Honest, &cell.tried.fs).to_string());
            self.screen.print_now(&report::row(&honest.unwrap_or_default(), &row));
        }
        row.clear();
    }
}

impl Monitor for Filling<'_> {
    fn warn(&self, message: &str) {
        self.screen.warn(message);
    }

    fn stop_requested(&self) -> Option<ExitCode> {
        self.screen.stop_requested()
    }
}

impl CrashMonitor for Filling<'_> {
    fn report(&self, line: &CrashLine) {
        self.screen.result_line(&line.to_json());
        match line {
            _ if self.json => {}
            CrashLine::Cell(cell) => self.add(cell),
            CrashLine::Summary(summary) if !self.quiet => {
                self.screen.print_now(&report::closing(summary));
            }
            _ => {}
        }
    }

    fn under_way(&self, what: &str, share: f64) {
        if let Some(live) = &self.live {
            live.set_text(step_line(what, share));
        }
    }
}
