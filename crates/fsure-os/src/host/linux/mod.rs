//! Linux.

pub(crate) mod attribute;
pub(crate) mod counters;
pub(crate) mod device;
pub(crate) mod durable;
mod extent;
mod file;
pub(crate) mod folder;
pub(crate) mod mounts;
pub(crate) mod passthrough;
pub(crate) mod place;
pub(crate) mod priority;
pub(crate) mod ring;
pub(crate) mod scratch;
mod seek;
pub(crate) mod volume;
pub(crate) mod write;

pub(crate) use file::File;
