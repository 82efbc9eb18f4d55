//! Traces each flush of one command, and of all that it starts: which call, on which file,
//! from when to when. Programs in the kernel (eBPF, `bpf/hot.bpf.c`) report them, so static
//! programs and requests of `io_uring` are seen as well.
//!
//! Linux only; elsewhere [`FlushTracer::begin`] fails with `Unsupported`.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::foreground::StartError;
use crate::host;
use crate::process_tree::CommandEnd;

/// A way to make something durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlushKind {
    /// `fsync`.
    Fsync,
    /// `fdatasync`.
    Fdatasync,
    /// `sync_file_range`, which flushes no cache of the device.
    SyncFileRange,
    /// `syncfs`.
    Syncfs,
    /// `sync`: all file systems.
    Sync,
    /// `msync` with `MS_SYNC`.
    Msync,
    /// A write to a file that is open with `O_SYNC`.
    SyncedWrite,
    /// A write to a file that is open with `O_DSYNC`.
    DataSyncedWrite,
    /// A `pwritev2` with `RWF_SYNC` or `RWF_DSYNC`.
    FlaggedWrite,
    /// An `fsync` or `fdatasync` by a request of `io_uring`.
    RingFsync,
    /// A `sync_file_range` by a request of `io_uring`.
    RingSyncFileRange,
    /// A write by a request of `io_uring` to a file that is open with `O_SYNC` or `O_DSYNC`.
    RingWrite,
}

impl FlushKind {
    /// Its name, as results have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fsync => "fsync",
            Self::Fdatasync => "fdatasync",
            Self::SyncFileRange => "sync_file_range",
            Self::Syncfs => "syncfs",
            Self::Sync => "sync",
            Self::Msync => "msync",
            Self::SyncedWrite => "O_SYNC write",
            Self::DataSyncedWrite => "O_DSYNC write",
            Self::FlaggedWrite => "RWF_SYNC write",
            Self::RingFsync => "io_uring fsync",
            Self::RingSyncFileRange => "io_uring sync_file_range",
            Self::RingWrite => "io_uring O_SYNC write",
        }
    }

    /// Returns true if [`crate::defer`] can answer it at once.
    pub fn is_deferrable(self) -> bool {
        matches!(self, Self::Fsync | Self::Fdatasync | Self::Syncfs | Self::FlaggedWrite)
    }
}

/// A call that made something durable, or failed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushCall {
    /// The way.
    pub kind: FlushKind,
    /// The place of its file in [`FlushTraceReport::files`]; `None` if it has none, or no
    /// storage has it.
    pub file: Option<usize>,
    /// Its beginning, by the system's monotonic clock, in nanoseconds.
    pub began_ns: u64,
    /// The time that it took.
    pub ns: u64,
    /// True if it failed.
    pub is_failed: bool,
}

/// A file that was flushed, or a folder or a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedFile {
    /// Its path when it was first flushed; `None` if no path leads there from here.
    pub path: Option<PathBuf>,
    /// True if the path leads to it now.
    pub is_there: bool,
    /// The device of its file system: major and minor number.
    pub device: (u32, u32),
    /// Its number there.
    pub ino: u64,
}

/// The result of a trace, beside the calls.
#[derive(Clone, Debug)]
pub struct FlushTraceReport {
    /// The files.
    pub files: Vec<TracedFile>,
    /// The blind spots of the trace, one sentence each.
    pub blind: Vec<String>,
    /// Losses for want of room: a description, and the number.
    pub lost: Vec<(&'static str, u64)>,
    /// Number of processes that the command has left behind.
    pub processes_left: usize,
}

/// Traces a command from its start to its end.
pub struct FlushTracer(host::io_trace::FlushTracer);

impl FlushTracer {
    /// Begins to watch, and starts the command. Signals that ask this process to end are
    /// passed on to the command.
    pub fn begin(command: &[OsString]) -> Result<Self, StartError> {
        host::io_trace::FlushTracer::begin(command).map(Self)
    }

    /// Lets time pass, and hands out the calls that have ended, in about their order.
    /// Returns the end of the command once it has ended, with the last calls.
    pub fn watch(
        &mut self,
        time: Duration,
        to: &mut dyn FnMut(FlushCall),
    ) -> io::Result<Option<CommandEnd>> {
        self.0.watch(time, to)
    }

    /// Ends the trace, and returns the rest of its result.
    pub fn end(self) -> io::Result<FlushTraceReport> {
        self.0.end()
    }
}
