//! The functions that the lowest floor needs from an operating system. Each system has a folder
//! with the same names in it; Linux and macOS share most of theirs in `unix`.
//!
//! | name | provides |
//! |---|---|
//! | `File` | [`Handle`]: reads of an open file |
//! | `Root` | names below a folder, never through a link |
//! | `fuse_disk` | a disk made of a program |
//! | `file_attributes` | the attributes of a name |
//! | `mount_sandbox` | a command that sees folders in memory in the place of others |
//! | `machine` | the machine, and what else it is doing |
//! | `kernel_features` | the features of this kernel |
//! | `long_queue` | more callers at once |
//! | `loop_device` | a file as a block device, and what other processes do to it |
//! | `mapped_write` | writes that move no date |
//! | `aligned_memory` | space for direct reads |
//! | `memory_info` | memory, and the processes that have it |
//! | `output` | the destination of an output path |
//! | `path` | a path's bytes and back |
//! | `block_stats` | the requests that a device really got |
//! | `detached_process` | processes that go on by themselves |
//! | `defer` | a command whose `fsync` returns at once |
//! | `foreground` | a command in the place of this process |
//! | `device` | the storage under a folder |
//! | `durable_write` | the ways of making a write durable |
//! | `name` | the name of this host |
//! | `mlock` | files held in memory |
//! | `priority` | precedence for other processes |
//! | `ramdisk` | a plain RAM disk |
//! | `overmount` | a folder in memory over one on a disk |
//! | `batch_read` | many reads with one call, if the system has such a call |
//! | `request_queue` | direct requests, so many at a time |
//! | `scratch_dir` | folders of which nothing is left behind |
//! | `storage_stack` | the storage below a folder, layer by layer |
//! | `io_trace` | the operations of all programs on folders, and the flushes of one |
//! | `freeze` | a file system that is frozen |
//! | `filesystem_id` | the identity of a file system |
//! | `change_watch` | the folders that have changed |
//! | `repair_write` | repairs below a folder |
//! | `uncached` | a command whose page cache is given back |
//! | `is_gone`, ... | the meaning of an error |
//!
//! Logic that is more than a question stands above, where it is the same for
//! all systems and is tested with a [`Handle`] that misbehaves on purpose.

use std::io;
use std::ops::Range;

use crate::Stat;
use crate::read_mode::ReadMode;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(unix)]
mod unix;
#[cfg(not(target_os = "linux"))]
mod unsupported;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(target_os = "macos")]
use macos as system;
#[cfg(windows)]
use windows as system;
// Only Linux has these.
#[cfg(target_os = "linux")]
use linux as linux_only;
#[cfg(not(target_os = "linux"))]
use unsupported as linux_only;

#[cfg(all(test, target_os = "linux"))]
pub(crate) use linux::did_not_run;
#[cfg(feature = "defer")]
pub(crate) use linux_only::defer;
#[cfg(feature = "io-trace")]
pub(crate) use linux_only::io_trace;
pub(crate) use linux_only::{
    batch_read, block_stats, change_watch, detached_process, foreground, freeze, kernel_features,
    loop_device, mapped_write, memory_info, mlock, mount_sandbox, overmount, private_mounts,
    request_queue, storage_stack, tree_copy, uncached, zram,
};
#[cfg(feature = "fuse")]
pub(crate) use linux_only::{fuse_disk, fuse_files, passthrough};
pub(crate) use system::{File, device, durable_write, filesystem_id, machine, priority, ramdisk};
#[cfg(unix)]
pub(crate) use unix::{
    aligned_memory, control_socket, file_attributes, home_of, is_of_another_user, is_root, lock,
    long_queue, name, open_files, output, path, repair_write, root_dir, scratch_dir,
    user_and_group,
};
#[cfg(windows)]
pub(crate) use windows::{
    aligned_memory, control_socket, file_attributes, home_of, is_of_another_user, is_root, lock,
    long_queue, name, open_files, output, path, repair_write, root_dir, scratch_dir,
    user_and_group,
};

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
compile_error!("fsure-os speaks to Linux, macOS and Windows");

/// An open file, as the ladder of [`crate::read`] needs it. Only this package and its
/// tests implement it.
pub trait Handle {
    /// True if the system can ever report what is in the page cache.
    const REPORTS_RESIDENCY: bool;

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
    fn reports_residency(&self) -> bool;

    /// Returns the bytes of a range of the file that are in the page cache, in whole pages;
    /// `None` if that is not reported. `is_reported` is the result of
    /// [`Handle::reports_residency`], which is the same for a whole file system. A range that
    /// ends at `u64::MAX` is all that follows, here and below.
    fn resident_bytes(&self, is_reported: bool, range: Range<u64>) -> Option<u64>;

    /// Lets go of what is in the page cache of a range of this file.
    fn drop_cached(&self, range: Range<u64>);

    /// Returns true if all data in a range lie on the disk as plain bytes, so that a direct
    /// read can fetch them. Called only if the file system did not vouch for direct reads
    /// ([`OpenedFile::is_vouched`]).
    fn is_plain(&self, range: Range<u64>) -> io::Result<bool>;

    /// The next range at or after `offset`, which lies before `size`, that
    /// holds data; `None` where there is none. A file system that knows no
    /// holes has data everywhere.
    fn next_data(&self, offset: u64, size: u64) -> io::Result<Option<(u64, u64)>>;
}

/// A file just opened, and what came with it.
pub(crate) struct OpenedFile<H> {
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
