//! The command `fsure`: its command line, outcomes as text and JSON, the built-in workloads
//! of `crash`, and `verify` as a rung of `speed`. Everything else is in a crate per product
//! (`docs/architecture.md`).
#![forbid(unsafe_code)]

pub mod cli;
pub mod report;
pub mod verify_rung;
pub mod workload;
