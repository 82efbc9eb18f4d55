//! The test of real hardware: one machine writes and has its power cut, another,
//! the witness, remembers what was acknowledged. What is written says by itself
//! what it is, so that after the cut lost, old, torn, misdirected and reordered
//! writes are told apart.
//!
//! This module holds what both machines share and what needs no network: the
//! stamps in the data, and the judgement.

mod judge;
mod stamp;

pub use judge::{Acknowledged, Fault, Found, Judged, judge};
pub use stamp::{BLOCK, Stamp, Unstamped};
