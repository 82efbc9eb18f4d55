//! A command whose page cache is bounded while it runs and given back when it has ended.
//!
//! The command gets a memory control group of its own. The kernel charges a page to the group
//! that brings it in, so that the group has what the command has read and written, and nothing
//! that was in memory before. A keeper, another process of fsure, bounds that cache, outlives
//! this process, and removes the group when the last process in it has ended. `docs/uncached.md`
//! says what that is worth. Linux only; elsewhere [`run`] fails with `Unsupported`.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::host;
use crate::memory_info::memory;
use crate::process_tree::CommandEnd;

/// The most page cache of a command, in bytes, if none is agreed on a large machine. More makes
/// none of the programs of `docs/uncached.md` faster.
const CACHE_AUTO: u64 = 128 << 20;
/// The share of a small machine's memory that is used in the place of [`CACHE_AUTO`].
const CACHE_SHARE: u64 = 16;
/// The least page cache of a command, in bytes: the kernel charges in batches for each
/// processor, and with less a command makes no headway.
pub const CACHE_MIN: u64 = 16 << 20;

/// A command to run, and the options of the run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// Bytes of page cache that it may have while it runs.
    pub cache: u64,
    /// The file of this program, which does as [`keep`] when it is called with
    /// `uncached-keep`, a group and the bytes.
    pub keeper: PathBuf,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Uncached {
    /// The end of the command.
    pub end: CommandEnd,
    /// True if the keeper lived as long as the command, and bounded its cache all the time.
    pub bounded: bool,
    /// Bytes of page cache that are still charged to it after they were given back.
    pub kept: u64,
    /// Processes that it has left behind. Their cache is given back when they have ended.
    pub left: u64,
    /// Bytes that a shortage of memory took from any program while it ran.
    pub evicted: u64,
    /// The times that a control group around it was at its limit meanwhile, which can have taken
    /// memory from any process in that group.
    pub outer_limit_hits: u64,
    /// The most memory that it had, page cache included; `None` if the kernel does not
    /// report it.
    pub peak: Option<u64>,
    /// The time in which some process of it waited for memory; `None` if the kernel does not
    /// report it.
    pub stalled: Option<Duration>,
    /// Reads and writes of it and of all descendants that it has waited for; `None` if the
    /// kernel does not count them.
    pub io: Option<Transferred>,
}

/// Bytes that processes have read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transferred {
    /// By calls, from memory or not, from pipes and sockets too.
    pub read: u64,
    /// By calls.
    pub written: u64,
    /// From storage.
    pub read_from_storage: u64,
    /// To storage, or about to be.
    pub written_to_storage: u64,
}

/// The reason why there is no result.
#[derive(Debug)]
pub enum Failure {
    /// No group can be made here; the command was not started.
    Refused(io::Error),
    /// This user may make none, or may not move a process into it; the command was not started.
    Denied {
        /// The answer of the system.
        error: io::Error,
        /// True if another program can hand a part of the tree of groups to a user.
        is_delegable: bool,
    },
    /// The command could not be started.
    NotStarted(io::Error),
    /// The command was started, and its end is not known.
    Lost(io::Error),
}

/// Returns the bytes of page cache that a command may have if none are agreed: enough to read
/// ahead and to write in large requests.
pub fn auto_cache() -> u64 {
    let share = memory().total.map_or(CACHE_AUTO, |total| total / CACHE_SHARE);
    share.clamp(CACHE_MIN, CACHE_AUTO)
}

/// Runs a command, in the group and the terminal of this process, and waits for it. Signals
/// that another process sends to this one are passed on.
pub fn run(options: &Options) -> Result<Uncached, Failure> {
    host::uncached::run(options)
}

/// The duty of the keeper of a group: bounds its page cache to that many bytes until `input` has
/// ended and all its processes, too; then gives the cache back and removes the group.
pub fn keep(group: &Path, cache: u64, input: &io::Stdin) -> io::Result<()> {
    host::uncached::keep(group, cache, input)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_is_within_its_limits() {
        assert!((CACHE_MIN..=CACHE_AUTO).contains(&auto_cache()));
    }
}
