//! Linux.

pub(crate) mod attribute;
pub(crate) mod block;
pub(crate) mod device;
mod extent;
mod file;
pub(crate) mod folder;
pub(crate) mod place;
pub(crate) mod priority;
pub(crate) mod ring;
mod seek;
pub(crate) mod volume;
pub(crate) mod write;

pub(crate) use file::File;
