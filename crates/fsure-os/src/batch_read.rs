//! Many reads with one call.

pub use crate::host::batch_read::{RING_READS_MAX, Ring};
