//! Linux.

pub(crate) mod attribute;
pub(crate) mod block;
mod cgroup;
pub(crate) mod counters;
pub(crate) mod daemon;
pub(crate) mod defer;
pub(crate) mod device;
mod drive_cache;
pub(crate) mod durable;
mod extent;
mod family;
mod fanotify;
mod file;
pub(crate) mod files;
pub(crate) mod folder;
pub(crate) mod inside;
pub(crate) mod kernel;
pub(crate) mod loop_device;
pub(crate) mod machine;
pub(crate) mod mapped_write;
pub(crate) mod memory_use;
pub(crate) mod mirror;
mod mount;
pub(crate) mod mounts;
mod passthrough;
pub(crate) mod pin;
pub(crate) mod place;
pub(crate) mod priority;
pub(crate) mod ramdisk;
pub(crate) mod ramfs;
mod ready;
mod relay;
pub(crate) mod ring;
pub(crate) mod scratch;
mod seek;
pub(crate) mod stack;
pub(crate) mod still;
pub(crate) mod tracing;
pub(crate) mod volume;
pub(crate) mod watch;
pub(crate) mod write;
mod zram;

pub(crate) use file::File;
#[cfg(test)]
pub(crate) use file::did_not_run;
