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

/// How the calls of the command are met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// By a library that its loader loads first.
    Preload,
    /// By the kernel, which asks us.
    Seccomp,
}

/// What to run, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// Folders on the file systems to defer for.
    pub folders: Vec<PathBuf>,
    /// How old what is lost may be.
    pub longest: Duration,
    /// The backend; `None` for the one that suits the program.
    pub backend: Option<Backend>,
    /// Our own program, of which a process outlives us if we are killed and
    /// flushes, see [`outlive`].
    pub heir: Option<PathBuf>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Deferred {
    /// The backend that was used.
    pub backend: Backend,
    /// What the command ended with.
    pub exit: Option<u8>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The signal that asked us to end, and was passed on.
    pub asked: Option<i32>,
    /// Calls that were acknowledged at once.
    pub deferred: u64,
    /// Calls that were real, because the flushes were behind.
    pub waited: u64,
    /// Calls that were real, because they were for other file systems.
    pub passed: u64,
    /// Calls that failed, because a flush had.
    pub refused: u64,
    /// Flushes of ours.
    pub flushes: u64,
    /// The longest of them.
    pub longest_flush: Duration,
    /// The oldest that something acknowledged was when it became durable.
    pub largest_lag: Duration,
    /// What the flush said that failed.
    pub failure: Option<String>,
}

/// The file system that a folder is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mounted {
    /// `ext4`.
    pub kind: String,
    /// What is mounted.
    pub source: String,
    /// Where.
    pub point: String,
    /// All its options, those too that the mount table does not show because
    /// they are its default.
    pub options: Vec<String>,
    /// Whether files made in the folder are written in place, on a file system
    /// that otherwise copies on write.
    pub in_place: bool,
    /// Whether files made in the folder are encrypted, each by itself (fscrypt).
    pub is_encrypted: bool,
    /// A layer below the file system that keeps flushes from the disk, and how.
    pub held_flushes: Option<String>,
}

/// Asks for the file system that a folder is on.
pub fn mount_of(folder: &Path) -> io::Result<Mounted> {
    host::defer::mount_of(folder)
}

/// Runs a command to its end, and flushes. `warn` is told for whom it waits when it
/// was asked to end, and cannot yet.
pub fn run(options: &Options, warn: &dyn Fn(&str)) -> io::Result<Deferred> {
    host::defer::run(options, warn)
}

/// The work of the process that outlives the one that defers: waits for its word
/// on `input`, and flushes the folders' file systems if that ends without one.
pub fn outlive(folders: &[PathBuf], input: impl io::Read) -> io::Result<()> {
    host::defer::outlive(folders, input)
}
