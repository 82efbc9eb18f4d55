//! The operating system: the one crate of the workspace that calls it, and the only one
//! with `unsafe`.
//!
//! | Reading | |
//! |---|---|
//! | [`root_dir`] | the names below a root folder, never through a link, and their stat |
//! | [`opener`] | opening a file by the best of the ways to read it |
//! | [`read`] | reads, and the way each was really done |
//! | [`batch_read`] | many reads with one call (io_uring) |
//! | [`buffer`] | memory that direct reads can use |
//! | [`page_cache`] | the pages of a file that are in memory; eviction |
//! | [`physical_order`] | where files begin on the disk |
//! | [`input`] | inputs that can be read only once, standard input among them |
//!
//! | Writing | |
//! |---|---|
//! | [`append_file`] | files that only grow, durably |
//! | [`durable_write`] | the ways of making a write durable |
//! | [`mapped_write`] | stores into a mapped file, which move no date |
//! | [`output`] | outputs to a path that the user names, streams among them |
//! | [`repair_write`] | repairs below a root: drafts, patches, lost links and folders |
//! | [`unnamed_file`] | files without a name, for what is too much for memory |
//! | [`user_file`] | whole files that the user names, read and replaced |
//! | [`file_attributes`] | mode, owner, access lists and extended attributes |
//!
//! | Storage | |
//! |---|---|
//! | [`device`] | the disks below a file system, and how they want to be read |
//! | [`storage_stack`] | the layers of storage below a path |
//! | [`filesystem_id`] | the identity of a file system |
//! | [`request_queue`] | direct requests, so many of them at a time |
//! | [`block_stats`] | the requests that a device really got |
//! | [`loop_device`] | a file as a block device, and proof that it still is one |
//! | [`loop_mount`] | a real file system on a disk that this process serves |
//! | [`fuse_disk`] | a disk that this process serves through FUSE |
//! | [`fuse_files`] | a file system that this process serves through FUSE |
//! | [`passthrough`] | a folder seen through FUSE |
//! | [`freeze`] | a file system that is frozen |
//! | [`ramdisk`] | a plain RAM disk |
//! | [`zram`] | a compressed RAM disk |
//!
//! | Folders in memory | |
//! |---|---|
//! | [`overmount`] | a folder in memory mounted over one on a disk, and the processes in either |
//! | [`tree_copy`] | one side of a folder and its copy |
//! | [`change_watch`] | the folders of a file system that have changed |
//! | [`io_trace`] | the operations of all programs on folders |
//! | [`flush_trace`] | each flush of a command and of all that it starts |
//! | [`mlock`] | files locked in memory |
//! | [`memory_info`] | memory, its pressure and its limits |
//!
//! | Processes | |
//! |---|---|
//! | [`private_mounts`] | mounts of this process, which end with it |
//! | [`mount_sandbox`] | a command that sees folders in memory in the place of others |
//! | [`process_tree`] | a program and all its descendants, which end together |
//! | [`foreground`] | a command in the place of this process |
//! | [`detached_process`] | a process that outlives the one that started it |
//! | [`defer`] | a command whose `fsync` returns at once, and the flush that follows |
//! | [`control_socket`] | a socket on which other processes send requests |
//! | [`tcp`] | TCP with an end to every wait |
//! | [`shell_command`] | a command line of the user |
//! | [`scratch_dir`] | a folder that is gone after a kill, too |
//! | [`memory_cgroup`] | a group of processes with less memory |
//! | [`uncached`] | a command whose page cache is bounded, and given back |
//!
//! | Machine | |
//! |---|---|
//! | [`machine`] | the machine, and the other work on it |
//! | [`kernel_features`] | the features of this kernel |
//! | [`rlimit`] | the limit of open files |
//! | [`lock`] | a lock between processes |
//! | [`priority`] | precedence for other processes |
//! | [`user`] | the user that this process runs as |
//! | [`path`] | bytes to paths and back |
//! | [`pv`] | the founders' experiment with `pv` |
//!
//! A question that the system cannot answer is `None` or an error, never an
//! invented value. What is the same everywhere stands here; what only one
//! system knows stands in `host`, in a folder of its name.

pub mod append_file;
mod attributes_copied;
pub mod batch_read;
pub mod block_stats;
pub mod buffer;
pub mod change_watch;
pub mod control_socket;
#[cfg(feature = "defer")]
pub mod defer;
pub mod detached_process;
pub mod device;
pub mod durable_write;
pub mod file_attributes;
pub mod filesystem_id;
#[cfg(feature = "io-trace")]
pub mod flush_trace;
pub mod foreground;
pub mod freeze;
#[cfg(feature = "fuse")]
pub mod fuse_disk;
#[cfg(feature = "fuse")]
pub mod fuse_files;
mod host;
pub mod input;
#[cfg(feature = "io-trace")]
pub mod io_trace;
pub mod kernel_features;
pub mod lock;
pub mod loop_device;
#[cfg(feature = "fuse")]
pub mod loop_mount;
pub mod machine;
pub mod mapped_write;
pub mod memory_cgroup;
pub mod memory_info;
pub mod mlock;
pub mod mount_sandbox;
pub mod opener;
pub mod output;
mod output_destination;
pub mod overmount;
pub mod page_cache;
#[cfg(feature = "fuse")]
pub mod passthrough;
pub mod path;
pub mod physical_order;
pub mod priority;
pub mod private_mounts;
pub mod process_tree;
pub mod pv;
pub mod ramdisk;
pub mod read;
mod read_mode;
pub mod repair_write;
pub mod request_queue;
pub mod rlimit;
pub mod root_dir;
pub mod scratch_dir;
mod scratch_registry;
pub mod shell_command;
mod stat;
pub mod storage_stack;
pub mod tcp;
pub mod tree_copy;
pub mod uncached;
mod uncached_pages;
pub mod unnamed_file;
pub mod user;
pub mod user_file;
#[cfg(any(windows, test))]
mod wtf8;
pub mod zram;

pub use stat::{DATE_NS_MAX, Kind, Stat};

/// Compiles and runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
