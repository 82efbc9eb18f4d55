//! What Linux and macOS have in common.

pub mod folder;
pub mod place;
