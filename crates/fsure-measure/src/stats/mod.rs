//! Measuring on machines that are never idle: repeat, check the spread, and
//! report the confidence. The median comes first; a mean on a shared machine
//! shows more of its neighbours than of what was measured.

mod latency;
mod statistics;

pub use latency::Latency;
pub(crate) use statistics::median;
pub use statistics::{Difference, SURE_RUNS, Spread, difference};
