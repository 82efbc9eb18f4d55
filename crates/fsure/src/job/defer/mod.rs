//! `defer`: runs a program whose flushes go to the medium after a bounded delay.

mod defer;
mod write_ordering;

pub use defer::{DeferOptions, defer};
