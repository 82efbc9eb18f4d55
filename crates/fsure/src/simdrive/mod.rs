//! A simulated drive whose power can be cut, as often as needed and by a seed.

mod behavior;
mod drive;
#[cfg(test)]
mod drive_tests;
mod event_log;
pub mod files;
mod image;
mod latency;
mod pending_writes;
mod power_cut;
#[cfg(test)]
mod reference_model_tests;

pub use behavior::{Behavior, UnknownDrive};
pub use drive::{CACHE, Counts, Drive, DriveError, Traits};
pub use event_log::{Boundary, Event, History};
pub use image::{Image, PAGE};
pub use latency::Latency;
pub use pending_writes::{Change, WriteEffect};
pub use power_cut::{CutVariant, UnknownCut};
