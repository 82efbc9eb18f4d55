//! Outcomes of the commands that measure storage, test it, or keep folders in RAM.

pub mod crash;
pub mod defer;
pub mod disk;
pub mod doctor;
pub mod flush;
pub mod hot;
pub mod matrix;
pub mod pin;
pub mod powercut;
pub mod ram;
pub mod speed;
pub mod uncached;

use super::{figure, json, number, timestamp};
