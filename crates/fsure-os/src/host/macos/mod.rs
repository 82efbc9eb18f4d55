//! macOS, from 11 on. Only what libSystem has; nothing here has run on a Mac.

pub(crate) mod device;
pub(crate) mod durable_write;
mod file;
pub(crate) mod file_attributes;
pub(crate) mod filesystem_id;
pub(crate) mod machine;
pub(crate) mod physical_order;
pub(crate) mod priority;
pub(crate) mod ramdisk;
pub(crate) mod repair_write;
pub(crate) mod root_dir;
pub(crate) mod scratch_dir;

pub(crate) use file::File;
