//! Stubs for the systems that lack what only Linux has: every call fails with `Unsupported`,
//! or finds nothing, as the docs of each say.

pub(crate) mod batch_read;
pub(crate) mod block_stats;
pub(crate) mod change_watch;
#[cfg(feature = "defer")]
pub(crate) mod defer;
pub(crate) mod detached_process;
pub(crate) mod foreground;
pub(crate) mod freeze;
#[cfg(feature = "fuse")]
pub(crate) mod fuse_disk;
#[cfg(feature = "fuse")]
pub(crate) mod fuse_files;
#[cfg(feature = "io-trace")]
pub(crate) mod io_trace;
pub(crate) mod kernel_features;
pub(crate) mod loop_device;
pub(crate) mod mapped_write;
pub(crate) mod memory_info;
pub(crate) mod mlock;
pub(crate) mod mount_sandbox;
pub(crate) mod overmount;
#[cfg(feature = "fuse")]
pub(crate) mod passthrough;
pub(crate) mod private_mounts;
pub(crate) mod request_queue;
pub(crate) mod storage_stack;
pub(crate) mod tree_copy;
pub(crate) mod uncached;
pub(crate) mod zram;
