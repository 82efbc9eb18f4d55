//! Traces the operations of all programs on folders, on Linux: with eBPF, or with fanotify
//! if eBPF is not available.

mod ebpf;
mod fanotify_source;
#[cfg(test)]
mod lost_event_tests;
mod path_resolver;
mod syscalls;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ebpf::Kernel;
use fanotify_source::Notify;

use crate::io_trace::{FolderIo, IoCounts, ProcessIo, TraceReport, TraceSource, TracedFolder};

/// See [`crate::io_trace::Tracer`].
pub(crate) struct Tracer {
    watching: Watching,
    fell_back: Option<String>,
}

enum Watching {
    Kernel(Box<Kernel>),
    Notify(Notify),
}

impl Tracer {
    pub(crate) fn begin(below: &[PathBuf], source: Option<TraceSource>) -> io::Result<Self> {
        let notify =
            |fell_back| Ok(Self { watching: Watching::Notify(Notify::begin(below)?), fell_back });
        if source == Some(TraceSource::Fanotify) {
            return notify(None);
        }
        match Kernel::begin(below) {
            Ok(kernel) => {
                Ok(Self { watching: Watching::Kernel(Box::new(kernel)), fell_back: None })
            }
            Err(error) if source == Some(TraceSource::Ebpf) => Err(error),
            Err(error) => notify(Some(error.to_string())),
        }
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

    pub(crate) fn end(self) -> io::Result<TraceReport> {
        match self.watching {
            Watching::Kernel(kernel) => kernel.end(),
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
