//! Linux.

pub(crate) mod attribute;
pub(crate) mod counters;
pub(crate) mod device;
pub(crate) mod durable;
mod extent;
mod file;
pub(crate) mod folder;
mod mount;
pub(crate) mod place;
pub(crate) mod priority;
pub(crate) mod ring;
mod seek;
pub(crate) mod stack;
pub(crate) mod volume;
pub(crate) mod write;

pub(crate) use file::File;
