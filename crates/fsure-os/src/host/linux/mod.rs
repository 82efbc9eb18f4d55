//! Linux.

pub(crate) mod attribute;
#[cfg(feature = "fuse")]
pub(crate) mod block;
mod cgroup;
mod change_time;
pub(crate) mod counters;
pub(crate) mod daemon;
#[cfg(feature = "defer")]
pub(crate) mod defer;
pub(crate) mod device;
pub(crate) mod durable;
mod extent;
mod family;
mod fanotify;
mod file;
#[cfg(feature = "fuse")]
pub(crate) mod files;
pub(crate) mod folder;
pub(crate) mod inside;
pub(crate) mod kernel;
pub(crate) mod loop_device;
pub(crate) mod machine;
pub(crate) mod mapped_write;
pub(crate) mod memory_use;
pub(crate) mod mirror;
mod mounter;
mod mountinfo;
pub(crate) mod mounts;
#[cfg(feature = "fuse")]
pub(crate) mod passthrough;
pub(crate) mod pin;
pub(crate) mod place;
mod poll;
pub(crate) mod priority;
pub(crate) mod ramdisk;
pub(crate) mod ramfs;
pub(crate) mod ring;
mod rotational;
pub(crate) mod scratch;
mod signal_forward;
pub(crate) mod stack;
pub(crate) mod still;
#[cfg(feature = "tracing")]
pub(crate) mod tracing;
pub(crate) mod volume;
pub(crate) mod watch;
pub(crate) mod write;
mod write_cache;
mod zram;

pub(crate) use file::File;
#[cfg(test)]
pub(crate) use file::did_not_run;
