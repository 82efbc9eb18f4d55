//! Folders that live in memory and lose no more than agreed.
//!
//! [`write_back`] brings a folder in memory to its disk side, one whole generation after
//! the other; it starts no process. [`service`] is the life of such a folder: binding,
//! the worker that writes back, its supervisor, the protocol between them and `ram run`.
//! Beside them are pinned files, plain RAM disks, and [`doctor`], which says what this
//! machine allows.
#![forbid(unsafe_code)]

pub mod doctor;
mod pin;
mod preset;
mod ram_disk;
pub mod service;
pub mod write_back;

pub use pin::{Pinned, ReleaseReason, pin, pinned, unpin, word};
pub use preset::Preset;
pub use ram_disk::{DestroyOutcome, create_disk, destroy_disk, disks};

/// Compiles and runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
