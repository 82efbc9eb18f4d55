//! The command `fsure`: its command line, outcomes as text and JSON, the built-in workloads
//! of `crash`, and `verify` as a rung of `speed`. Everything else is in a crate per product
//! (`docs/architecture.md`).
#![forbid(unsafe_code)]
// The screen also serves the storage commands; a build that has them looks for dead code.
#![cfg_attr(not(feature = "storage"), allow(dead_code))]

pub mod cli;
#[cfg(feature = "storage")]
pub mod ram_trial;
pub mod report;
#[cfg(feature = "storage")]
pub mod tree_reader;
#[cfg(feature = "storage")]
pub mod verify_rung;
#[cfg(feature = "storage")]
pub mod workload;
