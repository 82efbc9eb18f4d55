//! macOS, from 11 on. Only what libSystem has; nothing here has run on a Mac.

pub(crate) mod attribute;
pub(crate) mod device;
pub(crate) mod durable;
mod file;
pub(crate) mod folder;
pub(crate) mod machine;
pub(crate) mod place;
pub(crate) mod priority;
pub(crate) mod ramdisk;
pub(crate) mod scratch;
pub(crate) mod volume;
pub(crate) mod write;

pub(crate) use file::File;
