//! Measures how fast storage is and what a durable write costs: `speed` climbs the
//! ladder from memory to the disk, `flush` measures the ways to make a write durable,
//! [`flush_verdict`] judges whether to believe them. [`results`] is the stored format and
//! [`stats`] the statistics.
#![forbid(unsafe_code)]

pub mod comparison;
mod environment;
mod flush;
pub mod flush_verdict;
mod guest_memory;
pub mod results;
mod speed;
mod speed_run;
pub mod stats;
mod tree;

pub use flush::{DATABASE_FLUSHES, FlushOptions, Measured, Pattern, flush};
pub use speed::{
    Data, IoExperiment, IoOptions, RANDOM_BYTES, SpeedOptions, Verified, Verifier, speed, speed_io,
};
pub use tree::{
    ReadableTree, TREE_MEMORY_MIN, TREE_ROUNDS_MIN, TREE_RUN_SECONDS_MIN, TreeOptions, TreePart,
    TreeRead, TreeReader, TreeRequest, are_read_in_batches, losses_percent, tree,
};

/// Compiles and runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
