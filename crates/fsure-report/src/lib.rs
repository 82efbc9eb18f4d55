//! The page that shows stored results: [`chart`] draws, [`page`] fills the HTML.
#![forbid(unsafe_code)]

mod anonymous;
#[cfg(test)]
mod any_result_tests;
pub mod cache_words;
pub mod chart;
pub mod disk_factor;
pub mod interval_words;
pub mod io_sentences;
mod outputs;
pub mod page;
pub mod rank;

pub use anonymous::Anonymous;
pub use outputs::{AnyResult, read_any};

/// Compiles and runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
