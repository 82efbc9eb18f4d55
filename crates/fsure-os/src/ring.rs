//! Many reads with one call.

pub use crate::host::ring::{RING_READS_MAX, Ring};
