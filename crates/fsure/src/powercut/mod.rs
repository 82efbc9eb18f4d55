//! The test of real hardware: one machine writes and has its power cut, another, the
//! witness, remembers what was acknowledged. Everything that is written identifies
//! itself, so that after the cut lost, old, torn, misdirected and reordered writes are
//! told apart. `docs/powercut.md` is the contract.

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
pub use device::Device;
pub use judge::{Acknowledged, Fault, Found, Judge, Judged};
pub use messages::{
    CheckState, DriveHistory, Message, Method, PowercutMonitor, RunBegins, Summary,
};
pub use protocol_records::{Opened, Run, run_name, run_of};
pub use result_store::kept;
pub use stamp::{BLOCK, Stamp, Unstamped};
pub use test_plan::{Pattern, Way};
pub use wire::{Secret, VERSION};
pub use witness::{WitnessOptions, witness};
pub use write::{WriteOptions, write};
