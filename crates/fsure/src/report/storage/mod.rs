//! Outcomes of the commands that measure storage, test it, or keep folders in RAM.

pub mod comparison;
pub mod crash;
pub mod defer;
pub mod disk;
pub mod doctor;
pub mod flush;
pub mod flush_trace;
pub mod hot;
pub mod matrix;
pub mod pin;
pub mod powercut;
pub mod ram;
pub mod ram_trial;
pub mod speed;
mod speed_io;
pub mod speed_tree;
pub mod uncached;

use std::time::Duration;

use fsure_core::ExitCode;
use fsure_core::units::microseconds;
use fsure_os::process_tree::Ended;

use super::{figure, json, number, timestamp};

/// The exit code and the signal of a command that was run, as JSON has them.
fn exit_and_signal(ended: Ended) -> (Option<u8>, Option<i32>) {
    match ended {
        Ended::Code(code) => (u8::try_from(code).ok(), None),
        Ended::Signal(signal) => (None, Some(signal)),
    }
}

/// Lines of a table, its columns side by side; those that `is_left` names lie to the left. All
/// rows have as many columns as the first.
fn table(rows: &[Vec<String>], is_left: impl Fn(usize) -> bool) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<_> = (0..columns).filter_map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            if is_left(column) { format!("{cell:width$}") } else { format!("{cell:>width$}") }
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// A duration in milliseconds, as JSON has it.
fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// A duration for a person.
fn duration(time: Duration) -> String {
    microseconds(time.as_secs_f64() * 1e6)
}

/// The exit code of a command that was run, as a shell has it: 128 and the number of the
/// signal that ended it.
pub fn command_code(ended: Ended) -> ExitCode {
    let code = match ended {
        Ended::Code(code) => code,
        Ended::Signal(signal) => 128 + signal,
    };
    ExitCode::Program(u8::try_from(code).unwrap_or(u8::MAX))
}
