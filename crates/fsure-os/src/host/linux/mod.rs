//! Linux.

pub(crate) mod batch_read;
pub(crate) mod block_stats;
mod change_time;
pub(crate) mod change_watch;
#[cfg(feature = "defer")]
pub(crate) mod defer;
pub(crate) mod detached_process;
pub(crate) mod device;
pub(crate) mod durable_write;
mod extent;
mod fanotify;
mod file;
pub(crate) mod file_attributes;
pub(crate) mod filesystem_id;
pub(crate) mod foreground;
pub(crate) mod freeze;
#[cfg(feature = "fuse")]
pub(crate) mod fuse_disk;
#[cfg(feature = "fuse")]
pub(crate) mod fuse_files;
#[cfg(feature = "fuse")]
mod fuse_reply;
#[cfg(feature = "io-trace")]
pub(crate) mod io_trace;
pub(crate) mod kernel_features;
pub(crate) mod loop_device;
pub(crate) mod machine;
pub(crate) mod mapped_write;
mod memory_cgroup;
pub(crate) mod memory_info;
pub(crate) mod mlock;
pub(crate) mod mount_sandbox;
mod mounter;
mod mountinfo;
#[cfg(test)]
mod old_kernel_tests;
mod overlay_options;
pub(crate) mod overmount;
#[cfg(feature = "fuse")]
pub(crate) mod passthrough;
pub(crate) mod physical_order;
mod poll;
mod power_supply;
pub(crate) mod priority;
pub(crate) mod private_mounts;
mod process_tree;
pub(crate) mod ramdisk;
pub(crate) mod repair_write;
pub(crate) mod request_queue;
pub(crate) mod root_dir;
mod rotational;
pub(crate) mod scratch_dir;
mod signal_forward;
pub(crate) mod storage_stack;
pub(crate) mod tree_copy;
pub(crate) mod uncached;
mod write_cache;
pub(crate) mod zram;

pub(crate) use file::File;
#[cfg(test)]
pub(crate) use file::did_not_run;
