//! The table of workloads, file systems and drives: for each cell the expected result is
//! known beforehand, and compared with what the cuts show.
//!
//! A workload that loses nothing counts only beside a twin on a lying drive. [`crash()`]
//! provides that for each cell by itself, whatever the columns are.

use std::ffi::OsString;
use std::sync::{Mutex, PoisonError};

use super::{AccessMode, CrashMonitor, CrashOptions, CrashWorkload, Expect, crash};
use crate::{CrashCell, CrashLine, CrashSummary, DriveTried};
use fsure_core::{ExitCode, Monitor, Result};
use fsure_simdrive::Behavior;

/// The cells to fill.
#[derive(Clone, Debug)]
pub struct MatrixOptions {
    /// Workloads, which are the rows.
    pub workloads: Vec<&'static dyn CrashWorkload>,
    /// File systems on which each workload runs.
    pub fronts: Vec<AccessMode>,
    /// Options with which each cell is filled; their drives are the columns.
    pub each: CrashOptions,
}

impl CrashOptions {
    /// Returns the options with the program of a built-in workload, and its check.
    #[must_use]
    pub fn with_workload(self, name: &str) -> Self {
        let words = |words: &[&str]| {
            let words = words.iter().map(OsString::from);
            std::iter::once(self.program.clone().into()).chain(words).collect()
        };
        let command = words(&["workload", "run", name, "."]);
        let check = words(&["workload", "check", name, "."]);
        Self { workload: Some(name.to_owned()), command, check, ..self }
    }
}

/// Fills the table, and reports each cell when it is full. If the run is asked to end,
/// the cells that are full by then are the result.
pub fn matrix(options: &MatrixOptions, listener: &dyn CrashMonitor) -> Result<ExitCode> {
    let began = options.each.clock.watch();
    let rows: Vec<_> = options
        .workloads
        .iter()
        .flat_map(|workload| options.fronts.iter().map(move |front| (*workload, front)))
        .collect();
    let mut summary = CrashSummary {
        seed: options.each.seed,
        cells: Some(0),
        unexpected: Some(0),
        ..CrashSummary::default()
    };
    let (mut made, mut is_disturbed) = (0.0, false);
    for (place, (workload, front)) in rows.iter().enumerate() {
        let each = CrashOptions { front: (*front).clone(), ..options.each.clone() };
        let row = MatrixRow {
            workload: *workload,
            drives: &options.each.drives,
            listener,
            from: place as f64 / rows.len() as f64,
            width: 1.0 / rows.len() as f64,
            cells: Mutex::default(),
        };
        let crashed = crash(&each.with_workload(workload.name()), &row)?;
        let one = &crashed.summary;
        made += one.cuts_per_minute * one.seconds / 60.0;
        summary.cuts += one.cuts;
        summary.losses += one.losses;
        summary.harness_broken += one.harness_broken;
        let cells = row.cells.into_inner().unwrap_or_else(PoisonError::into_inner);
        let unexpected = cells.iter().filter(|cell| !cell.as_expected).count() as u64;
        summary.cells = summary.cells.map(|all| all + cells.len() as u64);
        summary.unexpected = summary.unexpected.map(|all| all + unexpected);
        is_disturbed = crashed.drives.iter().any(|drive| drive.disturbed.is_some());
        if is_disturbed || listener.stop_requested().is_some() {
            break;
        }
    }
    let exit_code = listener.stop_requested().unwrap_or_else(|| match is_disturbed {
        true => ExitCode::Internal,
        false => code(&summary),
    });
    summary.seconds = began.elapsed().as_secs_f64();
    summary.cuts_per_minute = made / summary.seconds * 60.0;
    summary.exit_code = exit_code.number();
    listener.report(&CrashLine::Summary(summary));
    Ok(exit_code)
}

fn code(summary: &CrashSummary) -> ExitCode {
    match (summary.unexpected, summary.harness_broken) {
        (Some(0), _) if summary.cells > Some(0) => ExitCode::Clean,
        (Some(1..), 0) => ExitCode::Damage,
        _ => ExitCode::Incomplete,
    }
}

/// One workload on one file system: it listens to the run, and reports the drives as
/// cells.
struct MatrixRow<'a> {
    workload: &'static dyn CrashWorkload,
    drives: &'a [Behavior],
    listener: &'a dyn CrashMonitor,
    from: f64,
    width: f64,
    cells: Mutex<Vec<CrashCell>>,
}

impl MatrixRow<'_> {
    fn cell(&self, tried: &DriveTried, drive: Behavior) -> CrashCell {
        let expected = self.workload.expect(drive, &tried.fs);
        CrashCell {
            workload: self.workload.name().to_owned(),
            expected: expected.to_string(),
            as_expected: is_as_expected(expected, tried),
            tried: tried.clone(),
        }
    }
}

/// Returns true if the cuts of a cell have shown what was expected of them. Cuts that
/// show nothing are never as expected.
fn is_as_expected(expected: Expect, tried: &DriveTried) -> bool {
    let is_consistent = tried.corrupt + tried.unmountable == 0;
    let is_shown = tried.cuts > 0 && tried.harness_broken == 0 && tried.acked > 0;
    is_shown
        && match expected {
            Expect::NeverLoses => tried.losses() == 0,
            Expect::MayLoseLast => is_consistent && tried.most_lost <= 1,
            Expect::MayLoseUpTo(time) => {
                let oldest = u128::from(tried.oldest_lost_ms.unwrap_or(0));
                is_consistent && oldest <= time.as_millis()
            }
            Expect::MayLose => is_consistent,
            Expect::Fails => tried.losses() > 0,
        }
}

impl Monitor for MatrixRow<'_> {
    fn warn(&self, message: &str) {
        self.listener.warn(message);
    }

    fn stop_requested(&self) -> Option<ExitCode> {
        self.listener.stop_requested()
    }
}

impl CrashMonitor for MatrixRow<'_> {
    fn report(&self, line: &CrashLine) {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        match line {
            CrashLine::Drive(tried) => {
                // One for each drive, in their order.
                let Some(drive) = self.drives.get(cells.len()) else { return };
                // A run that was ended early has not filled its cell.
                if self.listener.stop_requested().is_none() {
                    let cell = self.cell(tried, *drive);
                    self.listener.report(&CrashLine::Cell(cell.clone()));
                    cells.push(cell);
                }
            }
            CrashLine::Summary(_) => {}
            other => self.listener.report(other),
        }
    }

    fn under_way(&self, what: &str, share: f64) {
        let what = format!("{}: {what}", self.workload.name());
        self.listener.under_way(&what, self.from + share * self.width);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn tried(lost: u64, corrupt: u64, most_lost: u64, oldest: u64) -> DriveTried {
        let losses = lost + corrupt;
        DriveTried {
            cuts: 12,
            survived: 12 - losses,
            lost,
            corrupt,
            most_lost,
            oldest_lost_ms: (losses > 0).then_some(oldest),
            acked: 100,
            ..DriveTried::default()
        }
    }

    #[test]
    fn a_cell_is_held_against_its_row() {
        let up_to = Expect::MayLoseUpTo(Duration::from_secs(1));
        let all = [Expect::NeverLoses, Expect::MayLoseLast, up_to, Expect::MayLose, Expect::Fails];
        for (tried, expected) in [
            (tried(0, 0, 0, 0), [true, true, true, true, false]),
            (tried(3, 0, 1, 900), [false, true, true, true, true]),
            (tried(3, 0, 2, 1000), [false, false, true, true, true]),
            (tried(3, 0, 2, 1001), [false, false, false, true, true]),
            (tried(0, 1, 0, 0), [false, false, false, false, true]),
            (
                DriveTried { unmountable: 1, ..tried(0, 0, 0, 0) },
                [false, false, false, false, true],
            ),
            (DriveTried { harness_broken: 1, ..tried(3, 0, 1, 0) }, [false; 5]),
            (DriveTried { acked: 0, ..tried(0, 0, 0, 0) }, [false; 5]),
            (DriveTried::default(), [false; 5]),
        ] {
            let found = all.map(|expect| is_as_expected(expect, &tried));
            assert_eq!(found, expected, "{tried:?}");
        }
    }

    #[test]
    fn only_a_table_that_is_as_expected_is_a_success() {
        let code = |cells, unexpected, harness_broken| {
            code(&CrashSummary {
                cells: Some(cells),
                unexpected: Some(unexpected),
                harness_broken,
                ..CrashSummary::default()
            })
        };
        assert_eq!(code(3, 0, 0), ExitCode::Clean);
        assert_eq!(code(3, 1, 0), ExitCode::Damage);
        assert_eq!(code(3, 1, 7), ExitCode::Incomplete);
        assert_eq!(code(0, 0, 0), ExitCode::Incomplete);
    }
}
