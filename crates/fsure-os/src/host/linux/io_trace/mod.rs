//! Traces the operations of all programs on folders, on Linux: with eBPF, or with fanotify
//! if eBPF is not available.

mod call_log;
#[cfg(test)]
mod call_log_tests;
mod command;
mod ebpf;
mod fanotify_source;
mod flush_tracer;
#[cfg(test)]
mod flush_tracer_tests;
mod folder_names;
#[cfg(test)]
mod lost_event_tests;
mod path_resolver;
mod syscalls;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::foreground::WatchedCommand;
use command::new_mark;
use ebpf::{Kernel, RING_POLL_INTERVAL, Scope};
use fanotify_source::Notify;

pub(crate) use flush_tracer::FlushTracer;

use crate::foreground::StartError;
use crate::io_trace::{
    FolderIo, IoCounts, LoggedCall, ProcessIo, TraceInterval, TraceOptions, TraceReport,
    TraceSource, TracedFolder,
};
use crate::process_tree::CommandEnd;

/// See [`crate::io_trace::Tracer`].
pub(crate) struct Tracer {
    watching: Watching,
    /// The command that alone is watched, if it is one.
    command: Option<WatchedCommand>,
    fell_back: Option<String>,
}

enum Watching {
    Kernel(Box<Kernel>),
    Notify(Notify),
}

impl Tracer {
    pub(crate) fn begin(options: &TraceOptions<'_>) -> io::Result<Self> {
        let below = options.below;
        let notify = |fell_back| Ok(Self::of(Watching::Notify(Notify::begin(below)?), fell_back));
        if options.source == Some(TraceSource::Fanotify) {
            return notify(None);
        }
        match Kernel::begin(Scope::of(options)) {
            Ok(kernel) => Ok(Self::of(Watching::Kernel(Box::new(kernel)), None)),
            Err(error) if options.source == Some(TraceSource::Ebpf) => Err(error),
            Err(error) => notify(Some(error.to_string())),
        }
    }

    fn of(watching: Watching, fell_back: Option<String>) -> Self {
        Self { watching, command: None, fell_back }
    }

    pub(crate) fn begin_command(
        options: &TraceOptions<'_>,
        command: &[OsString],
    ) -> Result<Self, StartError> {
        let mark = new_mark();
        let kernel = Kernel::begin(Scope { mark, ..Scope::of(options) })?;
        let command = Some(kernel.start(command, mark)?);
        Ok(Self { watching: Watching::Kernel(Box::new(kernel)), command, fell_back: None })
    }

    pub(crate) fn source(&self) -> TraceSource {
        match self.watching {
            Watching::Kernel(_) => TraceSource::Ebpf,
            Watching::Notify(_) => TraceSource::Fanotify,
        }
    }

    pub(crate) fn fell_back(&self) -> Option<&str> {
        self.fell_back.as_deref()
    }

    pub(crate) fn watch(&mut self, time: Duration) -> io::Result<()> {
        match &mut self.watching {
            Watching::Kernel(kernel) => kernel.watch(time),
            Watching::Notify(notify) => notify.watch(time),
        }
    }

    pub(crate) fn watch_command(&mut self, time: Duration) -> io::Result<Option<CommandEnd>> {
        let Some(command) = &mut self.command else { return self.watch(time).map(|()| None) };
        let ended = command.wait(time.min(RING_POLL_INTERVAL))?;
        self.watch(Duration::ZERO)?;
        Ok(ended)
    }

    pub(crate) fn take_calls(&mut self, to: &mut dyn FnMut(LoggedCall)) -> bool {
        match &mut self.watching {
            Watching::Kernel(kernel) => kernel.take_calls(to),
            Watching::Notify(_) => false,
        }
    }

    pub(crate) fn interval(&mut self) -> io::Result<TraceInterval> {
        match &mut self.watching {
            Watching::Kernel(kernel) => kernel.interval(),
            Watching::Notify(_) => Ok(TraceInterval::default()),
        }
    }

    pub(crate) fn stop(&mut self) {
        if let Watching::Kernel(kernel) = &mut self.watching {
            kernel.stop();
        }
    }

    pub(crate) fn end(self, next: Option<&mut Self>) -> io::Result<TraceReport> {
        let next = next.and_then(|next| match &mut next.watching {
            Watching::Kernel(kernel) => Some(&mut **kernel),
            Watching::Notify(_) => None,
        });
        match self.watching {
            Watching::Kernel(kernel) => kernel.end(next),
            Watching::Notify(notify) => notify.end(),
        }
    }
}

/// The folders that were seen, each place once: a folder can have had several numbers.
#[derive(Default)]
struct Folders(BTreeMap<TracedFolder, FolderIo>);

impl Folders {
    fn add(
        &mut self,
        place: TracedFolder,
        counts: &IoCounts,
        by: impl IntoIterator<Item = ProcessIo>,
    ) {
        let folder = self.0.entry(place.clone()).or_insert_with(|| FolderIo {
            place,
            counts: IoCounts::default(),
            processes: BTreeSet::new(),
        });
        folder.counts.add(counts);
        folder.processes.extend(by);
    }

    fn all(self) -> Vec<FolderIo> {
        self.0.into_values().collect()
    }
}

/// See [`crate::io_trace::is_in_memory`].
pub(crate) fn is_in_memory(folder: &Path) -> io::Result<bool> {
    const TMPFS: i64 = 0x0102_1994;
    const RAMFS: i64 = 0x8584_58f6;
    let kind = rustix::fs::statfs(folder)?.f_type;
    Ok([TMPFS, RAMFS].contains(&(kind as i64)))
}
