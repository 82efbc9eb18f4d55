//! Finds the folders that programs wait for, and those that deserve to live in memory:
//! [`placement_advice`] holds the rules.
#![forbid(unsafe_code)]

mod call_filter;
mod command_refusal;
mod flush_cost;
mod flush_trace;
mod folder_contents;
mod folder_tree;
mod history;
mod hot;
mod monitor;
mod options;
pub mod placement_advice;
mod watch;

pub use call_filter::CallFilter;
pub use flush_cost::FlushCost;
pub use flush_trace::{FlushTrace, FlushedFile, flush_trace};
pub use folder_tree::{FolderNode, durable_ns, waited_ns, written_bytes};
pub use history::{
    Gap, History, HistoryOptions, RecordMonitor, RecordOptions, Recorded, RecordedFolder,
    RecordedInterval, RecordedRest, StoreLimits, hot_history, record, stored_line,
};
pub use hot::{Advised, Hot, hot};
pub use monitor::{HotMonitor, Interval};
pub use options::HotOptions;

/// Compiles and runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
