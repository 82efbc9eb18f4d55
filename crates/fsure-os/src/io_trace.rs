//! Traces which folders are read, written and made durable, by which processes,
//! and how long that takes: all of a machine's programs, watched for a while.
//!
//! Two sources. Programs in the kernel (eBPF, `bpf/hot.bpf.c`) count every call
//! and its time. If they are not available, fanotify reports in which folders
//! something happened; it merges events, so its counts are the least that can
//! have been. What a source cannot see is part of its result.
//!
//! Programs in the kernel also report single calls, and the counts of an interval by folder
//! and by program.
//!
//! Linux only; elsewhere [`Tracer::begin`] fails with `Unsupported`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::foreground::StartError;
use crate::host;
use crate::process_tree::CommandEnd;

/// The source of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceSource {
    /// Programs of fsure in the kernel: every call, its bytes, its time.
    Ebpf,
    /// The kernel's file notifications: merged, no bytes, no time, no `fsync`.
    Fanotify,
}

impl TraceSource {
    /// Its name, as options and results have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ebpf => "ebpf",
            Self::Fanotify => "fanotify",
        }
    }
}

/// The operations in a folder: on the files that are directly in it, and on the folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCounts {
    /// Calls that read, and did not fail; requests of `io_uring` and libaio
    /// are calls, here and below.
    pub reads: u64,
    /// Bytes that they read, from memory or not.
    pub bytes_read: u64,
    /// Time that they took, in nanoseconds.
    pub read_ns: u64,
    /// Calls that wrote.
    pub writes: u64,
    /// Bytes that they wrote.
    pub bytes_written: u64,
    /// Time that they took, in nanoseconds.
    pub write_ns: u64,
    /// Calls that made something durable: `fsync`, `fdatasync`,
    /// `sync_file_range`, `syncfs`.
    pub fsyncs: u64,
    /// Time that they took, in nanoseconds.
    pub fsync_ns: u64,
    /// Time of the writes that went to the device themselves (`O_SYNC`,
    /// `O_DSYNC`, `O_DIRECT`), in nanoseconds. Part of `write_ns`.
    pub synced_write_ns: u64,
    /// Bytes that had to be fetched from the device, read-ahead included.
    pub bytes_missed: u64,
    /// Time of the reads that had to wait for some of these bytes, in
    /// nanoseconds. Part of `read_ns`.
    pub missed_ns: u64,
    /// Bytes of pages that became dirty by stores through mappings.
    pub bytes_mapped: u64,
}

impl IoCounts {
    /// Adds what was done elsewhere, or by another name; a sum that does not fit is the largest
    /// number.
    pub fn add(&mut self, other: &Self) {
        // Counts that were stored can be damaged, and must not end the program.
        self.reads = self.reads.saturating_add(other.reads);
        self.bytes_read = self.bytes_read.saturating_add(other.bytes_read);
        self.read_ns = self.read_ns.saturating_add(other.read_ns);
        self.writes = self.writes.saturating_add(other.writes);
        self.bytes_written = self.bytes_written.saturating_add(other.bytes_written);
        self.write_ns = self.write_ns.saturating_add(other.write_ns);
        self.fsyncs = self.fsyncs.saturating_add(other.fsyncs);
        self.fsync_ns = self.fsync_ns.saturating_add(other.fsync_ns);
        self.synced_write_ns = self.synced_write_ns.saturating_add(other.synced_write_ns);
        self.bytes_missed = self.bytes_missed.saturating_add(other.bytes_missed);
        self.missed_ns = self.missed_ns.saturating_add(other.missed_ns);
        self.bytes_mapped = self.bytes_mapped.saturating_add(other.bytes_mapped);
    }

    /// Returns what was done since `earlier` counts of the same.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(earlier.reads),
            bytes_read: self.bytes_read.saturating_sub(earlier.bytes_read),
            read_ns: self.read_ns.saturating_sub(earlier.read_ns),
            writes: self.writes.saturating_sub(earlier.writes),
            bytes_written: self.bytes_written.saturating_sub(earlier.bytes_written),
            write_ns: self.write_ns.saturating_sub(earlier.write_ns),
            fsyncs: self.fsyncs.saturating_sub(earlier.fsyncs),
            fsync_ns: self.fsync_ns.saturating_sub(earlier.fsync_ns),
            synced_write_ns: self.synced_write_ns.saturating_sub(earlier.synced_write_ns),
            bytes_missed: self.bytes_missed.saturating_sub(earlier.bytes_missed),
            missed_ns: self.missed_ns.saturating_sub(earlier.missed_ns),
            bytes_mapped: self.bytes_mapped.saturating_sub(earlier.bytes_mapped),
        }
    }

    /// Returns true if nothing was done.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// The folder in which something was done.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TracedFolder {
    /// The folder has this path, which led to it a moment ago.
    At(PathBuf),
    /// No path leads to it from here: it is deleted, was moved, or is in a mount
    /// that this process does not see.
    Unseen {
        /// The device of its file system: major and minor number.
        device: (u32, u32),
        /// Its number there.
        ino: u64,
    },
}

/// A process that did something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessIo {
    /// The name of its command.
    pub name: String,
    /// Its number.
    pub id: u32,
}

/// One folder, and what was done in it.
#[derive(Clone, Debug)]
pub struct FolderIo {
    /// The folder.
    pub place: TracedFolder,
    /// The operations in it.
    pub counts: IoCounts,
    /// The processes that did them.
    pub processes: BTreeSet<ProcessIo>,
}

/// The calls of a command that make, allocate, truncate, rename or remove files, and did not fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetadataTime {
    /// Number of calls.
    pub calls: u64,
    /// Time that they took, in nanoseconds.
    pub ns: u64,
}

/// The result of a trace.
#[derive(Clone, Debug)]
pub struct TraceReport {
    /// Folders in no order, each path once.
    pub folders: Vec<FolderIo>,
    /// Programs by name, if [`TraceOptions::has_intervals`] asks for them.
    pub programs: Vec<(String, IoCounts)>,
    /// Changes of metadata in all folders, if one command was watched by eBPF.
    pub metadata: Option<MetadataTime>,
    /// The blind spots of the source, one sentence each.
    pub blind: Vec<String>,
    /// Events that it could have seen and did not, for want of space: a
    /// description, and the number.
    pub lost: Vec<(&'static str, u64)>,
    /// Number of processes that the command has left behind, if one was watched.
    pub processes_left: usize,
}

/// An operation of which single calls are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoggedOperation {
    /// A call that reads.
    Read,
    /// A call that writes.
    Write,
    /// A call that makes something durable, with `msync` and `sync`.
    Flush,
    /// A page of a mapping that is fetched from the device, or dirtied by a store.
    Mapped,
}

impl LoggedOperation {
    /// All operations.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Flush, Self::Mapped];

    /// Its name, as options and results have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Mapped => "mapped",
        }
    }
}

/// A single call that ended, also one that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedCall {
    /// Its begin, in nanoseconds since 1970.
    pub began_ns: i64,
    /// Its duration in nanoseconds; `None` where the kernel does not report it, and for the
    /// reading end of a copy, whose time is that of its writing end.
    pub ns: Option<u64>,
    /// The process that made it.
    pub process: ProcessIo,
    /// Its operation.
    pub operation: LoggedOperation,
    /// The name of the system call, or of what else it is.
    pub call: &'static str,
    /// Path of the file, as its folder was called when it was first in use; `None` for a
    /// call on no file, or on one that no path leads to from here.
    pub path: Option<PathBuf>,
    /// The bytes that it moved, or of the page; `None` if it failed, or moves none.
    pub bytes: Option<u64>,
    /// Number of the system's error if it failed.
    pub error: Option<i32>,
    /// True if it counts as waiting for the device.
    pub is_waited: bool,
}

/// The part of the machine that is watched, and the reports of it.
#[derive(Clone, Debug, Default)]
pub struct TraceOptions<'a> {
    /// Folders that matter, with all below them; all if there are none. A source that needs to
    /// know them watches no others.
    pub below: &'a [PathBuf],
    /// The source; the best one that is available if it is `None`.
    pub source: Option<TraceSource>,
    /// Operations of which each call is reported. Needs [`TraceSource::Ebpf`].
    pub logged: &'a [LoggedOperation],
    /// True if counts of intervals are asked for; they and the report have programs, too. Needs
    /// [`TraceSource::Ebpf`].
    pub has_intervals: bool,
}

/// The operations of an interval.
#[derive(Clone, Debug, Default)]
pub struct TraceInterval {
    /// Folders in which something was done, without their processes.
    pub folders: Vec<FolderIo>,
    /// Programs that did something, by name.
    pub programs: Vec<(String, IoCounts)>,
    /// Events that were lost since the trace began.
    pub lost: Vec<(&'static str, u64)>,
}

/// Watches from its beginning until its end.
pub struct Tracer(host::io_trace::Tracer);

impl Tracer {
    /// Begins to watch.
    pub fn begin(options: &TraceOptions<'_>) -> io::Result<Self> {
        host::io_trace::Tracer::begin(options).map(Self)
    }

    /// Begins to watch one command with all that it starts, by eBPF, and starts it. Signals
    /// that ask this process to end are passed on to the command.
    pub fn begin_command(
        options: &TraceOptions<'_>,
        command: &[OsString],
    ) -> Result<Self, StartError> {
        host::io_trace::Tracer::begin_command(options, command).map(Self)
    }

    /// The source of the trace.
    pub fn source(&self) -> TraceSource {
        self.0.source()
    }

    /// The error that prevented the best source, if another one is used without a
    /// request for it.
    pub fn fell_back(&self) -> Option<&str> {
        self.0.fell_back()
    }

    /// Lets time pass, and collects events.
    pub fn watch(&mut self, time: Duration) -> io::Result<()> {
        self.0.watch(time)
    }

    /// Lets time pass, and collects events. Returns the end of the command once it has
    /// ended.
    pub fn watch_command(&mut self, time: Duration) -> io::Result<Option<CommandEnd>> {
        self.0.watch_command(time)
    }

    /// Takes the calls that ended since the last time, in the order in which they ended, and
    /// returns true if there are more: the number that is taken at once is bounded.
    pub fn take_calls(&mut self, to: &mut dyn FnMut(LoggedCall)) -> bool {
        self.0.take_calls(to)
    }

    /// Returns what was done since the last interval.
    pub fn interval(&mut self) -> io::Result<TraceInterval> {
        self.0.interval()
    }

    /// Stops to watch. What was seen until then can still be taken.
    pub fn stop(&mut self) {
        self.0.stop();
    }

    /// Ends the trace, and returns its result.
    pub fn end(self) -> io::Result<TraceReport> {
        self.0.end(None)
    }

    /// Ends the trace, and returns its result. Another one, which watches already, leaves out of
    /// its own what was done until then; fanotify cannot do that.
    pub fn end_before(self, next: &mut Self) -> io::Result<TraceReport> {
        self.0.end(Some(&mut next.0))
    }
}

/// Returns true if a folder lies on a file system in memory (tmpfs, ramfs).
pub fn is_in_memory(folder: &Path) -> io::Result<bool> {
    host::io_trace::is_in_memory(folder)
}
