//! `crash`: what a power cut takes of the acknowledged writes of a program.

mod acks;
mod backend;
mod causes;
mod check_image;
mod crash;
mod every_flush;
mod expect;
mod matrix;
mod program;
mod run;
mod write_error;

pub use backend::AccessMode;
pub use crash::{CrashMonitor, CrashOptions, Crashed, crash};
pub use expect::{CrashWorkload, Expect};
pub use matrix::{MatrixOptions, matrix};
pub use write_error::{ask_again_and_again, fail_a_write};
