//! The ground of all crates of fsure: errors and exit codes, paths as bytes, units,
//! digests, the clock, and the monitor that a run reports to. It knows nothing of
//! catalogs, measurements or RAM folders.
#![forbid(unsafe_code)]

pub mod block_hash;
mod clock;
mod device_readers;
pub mod digest;
mod error;
mod exit_code;
mod input;
mod monitor;
mod output;
mod path;
mod random;
mod shell;
mod similar;
mod stall;
mod text;
pub mod units;

pub use clock::{Clock, ElapsedTimer};
pub use device_readers::DeviceReaders;
pub use digest::{Algorithm, AlgorithmSet, Digests};
pub use error::{
    Error, IoContext, KEEPING_RECOVERY_DATA, ROOM_HINT, Result, own_record_command, timeout_error,
    who_may_read,
};
pub use exit_code::ExitCode;
pub use input::{copy_stream, read_input};
pub use monitor::{Monitor, NullMonitor, Step, StepMonitor};
pub use output::{
    is_reader_gone, may_replace, open_output, unless_reader_left, unless_stopped, write_output,
};
pub use path::{DisplayPath, RelPath, escape, json_path, json_path_and_bytes};
pub use random::Random;
pub use shell::{shell_command, shell_quoted};
pub use similar::similar;
pub use stall::StallDetector;
pub use text::{count, safe};

/// Compiles and runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
