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
pub mod uncached;

use fsure_core::ExitCode;
use fsure_os::process_tree::Ended;

use super::{figure, json, number, timestamp};

/// The exit code of a command that was run, as a shell has it: 128 and the number of the
/// signal that ended it.
pub fn command_code(ended: Ended) -> ExitCode {
    let code = match ended {
        Ended::Code(code) => code,
        Ended::Signal(signal) => 128 + signal,
    };
    ExitCode::Program(u8::try_from(code).unwrap_or(u8::MAX))
}
