//! Floor 0 of `fsure`: the one package that asks the operating system, and
//! the only one with `unsafe`.
//!
//! | module | question |
//! |---|---|
//! | [`append`] | files that only grow, durably |
//! | [`attribute`] | mode, owner, access lists and extended attributes of a name |
//! | [`block`] | a disk made of a program, for file systems to be mounted from |
//! | [`buffer`] | memory that direct reads can use at full speed |
//! | [`control`] | a socket by which other programs ask this one |
//! | [`counters`] | what a device was really asked to do |
//! | [`daemon`] | processes that go on when the one that started them ends |
//! | [`defer`] | a command whose `fsync` returns at once, and a flush that follows |
//! | [`device`] | which disks a file system is on, and how they want to be read |
//! | [`durable`] | the ways of making a write durable |
//! | [`files`] | a file system made of a program, for other programs to use |
//! | [`folder`] | which names are below a root, and what they are |
//! | [`input`] | inputs that can be read only once, standard input among them |
//! | [`inside`] | a command that sees folders in memory in the place of others |
//! | [`net`] | TCP, with an end to every wait |
//! | [`opener`] | how a file can be read, before it is |
//! | [`output`] | outputs to a path that the user names, streams among them |
//! | [`pin`] | the files of a folder held in memory |
//! | [`place`] | where files begin on the disk |
//! | [`read`] | what a file holds on its medium, and which way it was really read |
//! | [`ring`] | many reads with one call |
//! | [`shell`] | a command of the user's own |
//! | [`stack`] | what a folder lies on, layer by layer |
//! | [`still`] | a file system made to hold still |
//! | [`stream`] | what of a file is in memory, and the way to nowhere |
//! | [`tracing`] | which folders all programs use, and how |
//! | [`user`] | the user that this process runs as |
//! | [`volume`] | which file system this is |
//! | [`pv`] | the experiment that all this began with |
//! | [`mapped_write`] | stores into a file that move no date |
//! | [`memory`] | how much memory there is, who may have it, and how short it is |
//! | [`mirror`] | a folder of which another is kept a copy |
//! | [`mounts`] | mounts of this process, which are gone with it |
//! | [`passthrough`] | a folder seen through FUSE |
//! | [`stand`] | a real file system on a disk made of a program |
//! | [`family`] | a program and all that it starts, which end together |
//! | [`watch`] | which folders of a file system have changed |
//! | [`zram`] | a compressed disk in memory |
//! | [`ramdisk`] | a plain RAM disk |
//! | [`spill`] | files without a name, for what is too much for memory |
//! | [`ramfs`] | a folder in memory over one on a disk, and who holds either |
//! | [`cgroup`] | a machine with less memory |
//! | [`scratch`] | folders of fsure, of which nothing is left behind |
//! | [`kernel`] | what this kernel can do of that which RAM folders need |
//! | [`limit`] | how many files may be open at once |
//! | [`loop_device`] | a file as a block device, and proof that it still is one |
//! | [`machine`] | what machine this is, and what else it is doing |
//! | [`lock`] | whether another process is at work on the same record |
//! | [`plain`] | plain files that the user names: lists read and written |
//! | [`mod@write`] | repairs below a root: drafts, patches, lost links and folders |
//! | [`priority`] | whether others go first |
//! | [`path`] | bytes to paths and back, and the few plain questions about a path |
//!
//! A question that the system cannot answer is `None` or an error, never an
//! invented value. What is the same everywhere stands here; what only one
//! system knows stands in `host`, in a folder of its name.

mod absent;
pub mod append;
pub mod attribute;
#[cfg(feature = "fuse")]
pub mod block;
pub mod buffer;
pub mod cgroup;
pub mod control;
pub mod counters;
pub mod daemon;
#[cfg(feature = "defer")]
pub mod defer;
pub mod device;
pub mod durable;
pub mod family;
#[cfg(feature = "fuse")]
pub mod files;
pub mod folder;
mod host;
pub mod input;
pub mod inside;
pub mod kernel;
pub mod limit;
pub mod lock;
pub mod loop_device;
pub mod machine;
pub mod mapped_write;
pub mod memory;
pub mod mirror;
pub mod mounts;
pub mod net;
pub mod opener;
pub mod output;
#[cfg(feature = "fuse")]
pub mod passthrough;
pub mod path;
pub mod pin;
pub mod place;
pub mod plain;
pub mod priority;
pub mod pv;
pub mod ramdisk;
pub mod ramfs;
pub mod read;
pub mod ring;
pub mod scratch;
pub mod shell;
pub mod spill;
pub mod stack;
#[cfg(feature = "fuse")]
pub mod stand;
mod stat;
pub mod still;
pub mod stream;
#[cfg(feature = "tracing")]
pub mod tracing;
pub mod user;
pub mod volume;
pub mod watch;
#[cfg(any(windows, test))]
mod wide;
pub mod write;
pub mod zram;

pub use stat::{DATE_NS_MAX, Kind, Stat};

/// Compiles and runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
