//! Finds the acknowledged writes that a program loses in a power cut: `crash` runs it on
//! simulated drives and cuts their power, `matrix` does so for workloads, file systems and
//! drives, `serve` leaves the drive to another program. `docs/crash.md` is the contract.
#![forbid(unsafe_code)]

mod acks;
mod backend;
mod causes;
mod check_image;
mod context;
mod crash;
mod disturbed;
mod every_flush;
mod expect;
mod matrix;
mod options;
mod prepare;
mod program;
mod result_lines;
mod run;
mod serve;
mod write_error;

pub use backend::AccessMode;
pub use crash::{Crashed, crash};
pub use expect::{CrashWorkload, Expect};
pub use matrix::{MatrixOptions, matrix};
pub use options::{CrashMonitor, CrashOptions};
pub use result_lines::{
    Call, ContentSeen, CrashCell, CrashLine, CrashSummary, CutMade, CutState, DriveTried,
    FlushAfterError, MissingSync,
};
pub use serve::{ServeFront, ServeOptions, serve};
pub use write_error::{ask_again_and_again, fail_a_write};
