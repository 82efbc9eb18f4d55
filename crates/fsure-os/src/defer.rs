//! A command whose `fsync` returns at once, with a flush in the background that
//! follows so closely that what is acknowledged and not durable is never older
//! than agreed. `docs/defer.md` says what that is worth and what it is not.
//!
//! Whether a file system keeps the order of what it is given is for the caller
//! to judge, by [`mount_of`]. Linux only; elsewhere this fails with
//! `Unsupported`.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::host;
use crate::process_tree::CommandEnd;

/// The mechanism that intercepts the sync calls of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// A library that the loader of the command loads first.
    Preload,
    /// The kernel, which passes the calls to this process.
    Seccomp,
}

/// A command to run, and the options of the run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// Folders on the file systems to defer for.
    pub folders: Vec<PathBuf>,
    /// The greatest age of data that can be lost.
    pub longest: Duration,
    /// The backend; `None` for the one that suits the program.
    pub backend: Option<Backend>,
    /// The file of this program. A process of it outlives this process if that is
    /// killed, and flushes; see [`outlive`].
    pub heir: Option<PathBuf>,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Deferred {
    /// The backend that was used.
    pub backend: Backend,
    /// The end of the command.
    pub end: CommandEnd,
    /// Calls that were acknowledged at once.
    pub deferred: u64,
    /// Calls that were real, because the flushes were behind.
    pub waited: u64,
    /// Calls that were real, because they were for other file systems.
    pub passed: u64,
    /// Calls that failed, because a flush had.
    pub refused: u64,
    /// Flushes that fsure sent.
    pub flushes: u64,
    /// The longest of them.
    pub longest_flush: Duration,
    /// The greatest age that acknowledged data had when it became durable.
    pub largest_lag: Duration,
    /// The error message of a flush that failed.
    pub failure: Option<String>,
}

/// The file system that a folder is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountedFs {
    /// `ext4`.
    pub kind: String,
    /// The source of the mount.
    pub source: String,
    /// The mount point.
    pub point: String,
    /// All its options, those too that the mount table does not show because
    /// they are its default.
    pub options: Vec<String>,
    /// True if files made in the folder are written in place, on a file system
    /// that otherwise copies on write.
    pub in_place: bool,
    /// True if files made in the folder are encrypted, each by itself (fscrypt).
    pub is_encrypted: bool,
    /// A layer below the file system that keeps flushes from the disk, and how.
    pub held_flushes: Option<String>,
}

/// Returns the file system that a folder is on.
pub fn mount_of(folder: &Path) -> io::Result<MountedFs> {
    host::defer::mount_of(folder)
}

/// Runs a command to its end, and flushes. When it was asked to end and cannot yet, it
/// calls `warn` with the process for which it waits.
pub fn run(options: &Options, warn: &dyn Fn(&str)) -> io::Result<Deferred> {
    host::defer::run(options, warn)
}

/// The work of the process that outlives the one that defers: waits for its word
/// on `input`, and flushes the folders' file systems if that ends without one.
pub fn outlive(folders: &[PathBuf], input: impl io::Read) -> io::Result<()> {
    host::defer::outlive(folders, input)
}
