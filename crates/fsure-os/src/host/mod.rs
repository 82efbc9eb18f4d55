//! The functions that floor 0 needs from an operating system. Each system has a folder with
//! the same names in it; Linux and macOS share most of theirs in `unix`.
//!
//! | name | provides |
//! |---|---|
//! | `File` | [`Handle`]: reads of an open file |
//! | `Root` | names below a folder, never through a link |
//! | `block` | a disk made of a program |
//! | `attribute` | the attributes of a name |
//! | `inside` | a command that sees folders in memory in the place of others |
//! | `machine` | the machine, and what else it is doing |
//! | `kernel` | the features of this kernel |
//! | `long_queue` | more callers at once |
//! | `loop_device` | a file as a block device, and what other processes do to it |
//! | `mapped_write` | writes that move no date |
//! | `memory` | room for direct reads |
//! | `memory_use` | memory, and the processes that have it |
//! | `output` | the destination of an output path |
//! | `path` | a path's bytes and back |
//! | `counters` | the requests that a device really got |
//! | `daemon` | processes that go on by themselves |
//! | `defer` | a command whose `fsync` returns at once |
//! | `device` | the storage under a folder |
//! | `durable` | the ways of making a write durable |
//! | `name` | the name of this host |
//! | `pin` | files held in memory |
//! | `priority` | precedence for other processes |
//! | `ramdisk` | a plain RAM disk |
//! | `ramfs` | a folder in memory over one on a disk |
//! | `ring` | many reads with one call, if the system has such a call |
//! | `scratch` | folders of which nothing is left behind |
//! | `stack` | the storage below a folder, layer by layer |
//! | `tracing` | the operations of all programs on folders |
//! | `still` | a file system that is frozen |
//! | `volume` | the identity of a file system |
//! | `watch` | the folders that have changed |
//! | `write` | repairs below a folder |
//! | `is_gone`, ... | the meaning of an error |
//!
//! Logic that is more than a question stands above, where it is the same for
//! all systems and is tested with a [`Handle`] that misbehaves on purpose.

use std::io;
use std::ops::Range;

use crate::Stat;
use crate::read::ReadMode;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(all(feature = "fuse", not(target_os = "linux")))]
pub(crate) mod no_block;
#[cfg(not(target_os = "linux"))]
pub(crate) mod no_counters;
#[cfg(not(target_os = "linux"))]
pub(crate) mod no_daemon;
#[cfg(all(feature = "defer", not(target_os = "linux")))]
pub(crate) mod no_defer;
#[cfg(all(feature = "fuse", not(target_os = "linux")))]
pub(crate) mod no_files;
#[cfg(not(target_os = "linux"))]
pub(crate) mod no_inside;
#[cfg(not(target_os = "linux"))]
pub(crate) mod no_kernel;
#[cfg(not(target_os = "linux"))]
pub(crate) mod no_loop_device;
#[cfg(not(target_os = "linux"))]
pub(crate) mod no_mapped_write;
#[cfg(not(target_os = "linux"))]
pub(crate) mod no_memory_use;
#[cfg(not(target_os = "linux"))]
pub(crate) mod no_mirror;
#[cfg(not(target_os = "linux"))]
pub(crate) mod no_mounts;
#[cfg(all(feature = "fuse", not(target_os = "linux")))]
pub(crate) mod no_passthrough;
#[cfg(not(target_os = "linux"))]
pub(crate) mod no_pin;
#[cfg(not(target_os = "linux"))]
pub(crate) mod no_ramfs;
#[cfg(not(target_os = "linux"))]
pub(crate) mod no_ring;
#[cfg(not(target_os = "linux"))]
pub(crate) mod no_stack;
#[cfg(not(target_os = "linux"))]
pub(crate) mod no_still;
#[cfg(all(feature = "tracing", not(target_os = "linux")))]
pub(crate) mod no_tracing;
#[cfg(not(target_os = "linux"))]
pub(crate) mod no_watch;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(target_os = "macos")]
use macos as system;
#[cfg(windows)]
use windows as system;

#[cfg(all(feature = "defer", target_os = "linux"))]
pub(crate) use linux::defer;
#[cfg(all(test, target_os = "linux"))]
pub(crate) use linux::did_not_run;
#[cfg(all(feature = "tracing", target_os = "linux"))]
pub(crate) use linux::tracing;
#[cfg(all(feature = "fuse", target_os = "linux"))]
pub(crate) use linux::{block, files, passthrough};
#[cfg(target_os = "linux")]
pub(crate) use linux::{
    counters, daemon, inside, kernel, loop_device, mapped_write, memory_use, mirror, mounts, pin,
    ramfs, ring, stack, still, watch,
};
#[cfg(all(feature = "defer", not(target_os = "linux")))]
pub(crate) use no_defer as defer;
#[cfg(all(feature = "tracing", not(target_os = "linux")))]
pub(crate) use no_tracing as tracing;
pub(crate) use system::{File, device, durable, machine, priority, ramdisk, volume};
#[cfg(unix)]
pub(crate) use unix::{
    attribute, control, folder, is_root, lock, long_queue, memory, name, open_files, output, path,
    scratch, user_and_group, write,
};
#[cfg(windows)]
pub(crate) use windows::{
    attribute, control, folder, is_root, lock, long_queue, memory, name, open_files, output, path,
    scratch, user_and_group, write,
};
#[cfg(all(feature = "fuse", not(target_os = "linux")))]
pub(crate) use {no_block as block, no_files as files, no_passthrough as passthrough};
#[cfg(not(target_os = "linux"))]
pub(crate) use {
    no_counters as counters, no_daemon as daemon, no_inside as inside, no_kernel as kernel,
    no_loop_device as loop_device, no_mapped_write as mapped_write, no_memory_use as memory_use,
    no_mirror as mirror, no_mounts as mounts, no_pin as pin, no_ramfs as ramfs, no_ring as ring,
    no_stack as stack, no_still as still, no_watch as watch,
};

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
compile_error!("fsure-os speaks to Linux, macOS and Windows");

/// An open file, as the ladder of [`crate::read`] needs it. Only this package and its
/// tests implement it.
pub trait Handle {
    /// True if the system can ever report what is in the page cache.
    const TELLS_RESIDENCY: bool;

    /// The stat of the open file.
    fn stat(&self) -> io::Result<Stat>;

    /// Turns a way of reading on or off for all reads to come; no read is in
    /// flight. Fails where the system or the file does not have the way. Ways
    /// that need nothing turned are fine with either.
    fn turn(&self, way: ReadMode, on: bool) -> io::Result<()>;

    /// Reads once, by a way that is on, and may read less than asked for.
    fn read(&self, way: ReadMode, target: &mut [u8], position: u64) -> io::Result<usize>;

    /// Returns true if an error of such a read means that this way is not available after
    /// all, rather than something about the medium.
    fn refuses_way(error: &io::Error) -> bool;

    /// Returns true if there is anything behind the page cache.
    fn has_medium(&self) -> bool;

    /// Returns true if [`ReadMode::DontCache`] is known to work here. The check might read from
    /// the file.
    fn knows_dontcache(&self) -> bool;

    /// Returns true if the file system of this file can report what is in the cache.
    fn tells_residency(&self) -> bool;

    /// Returns the bytes of a range of the file that are in the page cache, in whole pages;
    /// `None` if that is not reported. `is_told` is the result of
    /// [`Handle::tells_residency`], which is the same for a whole file system. A range that
    /// ends at `u64::MAX` is all that follows, here and below.
    fn resident_bytes(&self, is_told: bool, range: Range<u64>) -> Option<u64>;

    /// Lets go of what is in the page cache of a range of this file.
    fn drop_cached(&self, range: Range<u64>);

    /// Returns true if all data in a range lie on the disk as plain bytes, so that a direct
    /// read can fetch them. Called only if the file system did not vouch for direct reads
    /// ([`Opened::is_vouched`]).
    fn is_plain(&self, range: Range<u64>) -> io::Result<bool>;

    /// The next range at or after `offset`, which lies before `size`, that
    /// holds data; `None` where there is none. A file system that knows no
    /// holes has data everywhere.
    fn next_data(&self, offset: u64, size: u64) -> io::Result<Option<(u64, u64)>>;
}

/// A file just opened, and what came with it.
pub(crate) struct Opened<H> {
    pub(crate) file: H,
    pub(crate) stat: Stat,
    /// The grain of direct reads; `None` where this file cannot be read
    /// directly, whatever the system lets through.
    pub(crate) grain: Option<u64>,
    /// True if the system vouches for direct reads of this file: a read that it accepts as
    /// direct is direct.
    pub(crate) is_vouched: bool,
    /// True if [`ReadMode::Direct`] is on.
    pub(crate) is_direct: bool,
}
