//! The page that shows stored results: [`chart`] draws, [`page`] fills the HTML.
#![forbid(unsafe_code)]

mod any_result;
#[cfg(test)]
mod any_result_tests;
pub mod chart;
pub mod page;
pub mod rank;
mod verify_output;

pub use any_result::{ResultContent, read_any};
pub use verify_output::{
    Age, Bar, FindingRow, Oldest, OutputTotals, Reason, RunError, StatFields, VerifyOutput,
};

/// Compiles and runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
