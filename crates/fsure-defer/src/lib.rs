//! Runs a program whose flushes are answered at once and reach the medium after a
//! bounded delay, in their order. `docs/defer.md` says what may be lost.
#![forbid(unsafe_code)]

mod defer;
mod write_ordering;

pub use defer::{DeferOptions, defer};
