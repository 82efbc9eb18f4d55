//! `fsure`: is my data intact? This library records the digests of whole trees
//! and verifies them later, from the medium. The command `fsure` is a thin
//! front end to it.
//!
//! The modules are arranged in floors. A module uses only lower ones;
//! `tests/tidy.rs` reads the list below and fails on an upward `use`. Floor 0 is
//! the package `fsure-os`, the only one that calls the operating system; floor 6
//! is the command in `src/bin/fsure/`. `docs/architecture.md` describes them.
#![forbid(unsafe_code)]

// Floor 1: the domain model
pub mod model;

// Floor 2: machines
pub mod catalog;
pub mod manifest;
pub mod parity;
pub mod results;
pub mod simdrive;
pub mod stats;
pub mod tree;

// Floor 3: the pipeline, drives in use, what a cut shows, RAM folders, whom a record believes
pub mod crash;
pub mod powercut;
pub mod ram;
pub mod scan;
pub mod trust;

// Floor 4: jobs
pub mod job;

// Floor 5: report
pub mod report;
pub mod verify_rung;
