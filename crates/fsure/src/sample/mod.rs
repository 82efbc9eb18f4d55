//! Measuring on machines that are never quiet: repeat, look at the spread, and
//! say how sure the answer is. The median comes first; a mean on a shared machine
//! says more of its neighbours than of what was measured.

mod latency;
mod statistics;

pub use latency::Latency;
pub use statistics::{Difference, Spread, difference};
