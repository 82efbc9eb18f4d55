//! A simulated drive: the losses of a power cut can be tried on it as often as needed,
//! and reproduced by a seed. `Drive` is one of blocks, [`files`] one of files and names;
//! `LiveDrive` and `LiveFolder` serve them to programs of this machine.
#![forbid(unsafe_code)]

mod behavior;
mod drive;
#[cfg(test)]
mod drive_tests;
mod event_log;
pub mod files;
mod image;
mod latency;
mod live_drive;
mod live_folder;
mod pending_writes;
mod power_cut;
#[cfg(test)]
mod reference_model_tests;

pub use behavior::{Behavior, UnknownDrive};
pub use drive::{CACHE, Drive, DriveError, RequestCounts, Traits};
pub use event_log::{Boundary, History, LogEvent};
pub use image::{Image, PAGE};
pub use latency::Latency;
pub use live_drive::LiveDrive;
pub use live_folder::{LiveFolder, MountedFolder, SYNCFS};
pub use pending_writes::{DriveChange, WriteEffect};
pub use power_cut::{CutVariant, UnknownCut};

/// Compiles and runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
