//! The test of real hardware: one machine writes and has its power cut, another, the
//! witness, remembers what was acknowledged. Everything that is written identifies
//! itself, so that after the cut lost, old, torn, misdirected and reordered writes are
//! told apart. `docs/powercut.md` is the contract.

mod check;
mod device;
mod files;
mod frame;
mod judge;
mod kept;
mod line;
mod link;
mod log;
mod plan;
mod record;
mod stamp;
mod witness;
mod write;

pub use check::{CheckOptions, check};
pub use device::Device;
pub use frame::{Secret, VERSION};
pub use judge::{Acknowledged, Fault, Found, Judge, Judged};
pub use kept::kept;
pub use line::{CheckState, DriveHistory, Listener, Message, Method, RunBegins, Summary};
pub use plan::{Pattern, Way};
pub use record::{Opened, Run, run_name, run_of};
pub use stamp::{BLOCK, Stamp, Unstamped};
pub use witness::{WitnessOptions, witness};
pub use write::{WriteOptions, write};

use crate::words::Clock;

/// Now, to the millisecond.
fn timestamp(clock: &Clock) -> String {
    let now = jiff::Timestamp::from_millisecond(clock.now_ns() / 1_000_000);
    format!("{:.3}", now.unwrap_or_default())
}
