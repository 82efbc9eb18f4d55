//! Tests a real drive by a real power cut: `write` runs on the machine under test,
//! `witness` records on another one what was acknowledged, and `check` compares them after
//! the cut. `docs/powercut.md` describes the method.
#![forbid(unsafe_code)]

mod check;
mod device;
mod judge;
mod messages;
mod protocol_records;
mod result_store;
mod run_files;
mod stamp;
mod test_plan;
mod wire;
mod witness;
mod witness_link;
mod witness_log;
mod write;

pub use check::{CheckOptions, check};
pub use device::TestedDevice;
pub use judge::{Acknowledged, Fault, FoundBlock, Judge, Judged};
pub use messages::{
    CheckState, CheckSummary, DriveHistory, Message, MethodResult, PowercutMonitor, RunBegins,
};
pub use protocol_records::{RunDescription, RunId, run_name, run_of};
pub use result_store::kept;
pub use stamp::{BLOCK, Stamp, Unstamped};
pub use test_plan::{Pattern, Way};
pub use wire::{Secret, VERSION};
pub use witness::{WitnessOptions, witness};
pub use write::{WriteOptions, write};

/// Compiles and runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
