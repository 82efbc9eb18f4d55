//! Linux.

mod file;
pub(crate) mod folder;
pub(crate) mod place;
pub(crate) mod ring;
pub(crate) mod volume;

pub(crate) use file::File;
