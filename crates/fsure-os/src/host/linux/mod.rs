//! Linux.

pub mod ring;
pub mod volume;
