//! `flush_trace`: what the flushes of one command cost it, by kind and by file, and what
//! would be saved at most if they were deferred.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use fsure_core::{Error, Result};
use fsure_os::flush_trace::{FlushCall, FlushKind, FlushTracer, TracedFile};
use fsure_os::process_tree::CommandEnd;

use super::command_refusal::refused;
use super::flush_cost::FlushCost;

/// Longest delay before calls are taken from the kernel, which keeps some 65,000.
const SLICE: Duration = Duration::from_millis(50);

/// Result of [`flush_trace`].
#[derive(Clone, Debug)]
pub struct FlushTrace {
    /// The end of the command.
    pub command: CommandEnd,
    /// All flushes.
    pub all: FlushCost,
    /// Those that `defer` can answer at once.
    pub deferrable: FlushCost,
    /// By kind, the costliest first.
    pub kinds: Vec<(FlushKind, FlushCost)>,
    /// By file and kind, the costliest first.
    pub files: Vec<FlushedFile>,
    /// Descriptions of what cannot be seen.
    pub blind: Vec<String>,
    /// Kinds of events that were lost, with their number.
    pub lost: Vec<(&'static str, u64)>,
    /// Number of processes that the command has left behind.
    pub processes_left: usize,
}

/// The flushes of one kind of one file.
#[derive(Clone, Debug)]
pub struct FlushedFile {
    /// The file; `None` if the calls name none, or none on storage.
    pub file: Option<TracedFile>,
    /// The kind.
    pub kind: FlushKind,
    /// Their cost.
    pub cost: FlushCost,
}

impl FlushTrace {
    /// Returns the share of the command's time for which at least one of the calls was
    /// under way: 0 to 1.
    pub fn share(&self, cost: &FlushCost) -> f64 {
        let all = self.command.time.as_nanos() as f64;
        if all > 0.0 { (cost.waited_ns() as f64 / all).min(1.0) } else { 0.0 }
    }
}

/// Runs a command, and traces its flushes and those of all that it starts until it ends.
pub fn flush_trace(command: &[OsString]) -> Result<FlushTrace> {
    let mut tracer = FlushTracer::begin(command).map_err(|error| refused(&error))?;
    let mut sums = Sums::default();
    let (command, end) = loop {
        let mut calls = Vec::new();
        let ended = tracer.watch(SLICE, &mut |call| calls.push(call)).map_err(lost_sight)?;
        calls.sort_by_key(|call| call.began_ns + call.ns);
        calls.iter().for_each(|call| sums.add(call));
        if let Some(ended) = ended {
            break (ended, tracer.end().map_err(lost_sight)?);
        }
    };
    let mut kinds: Vec<_> = sums.kinds.into_iter().collect();
    kinds.sort_by_key(|(_, cost)| std::cmp::Reverse(cost.sum_ns));
    let files = by_path(sums.files, &end.files);
    Ok(FlushTrace {
        command,
        all: sums.all,
        deferrable: sums.deferrable,
        kinds,
        files,
        blind: end.blind,
        lost: end.lost,
        processes_left: end.processes_left,
    })
}

/// The flushes of each path: a program can make a file of one name over and over.
fn by_path(
    sums: BTreeMap<(Option<usize>, FlushKind), FlushCost>,
    files: &[TracedFile],
) -> Vec<FlushedFile> {
    let mut merged: BTreeMap<_, FlushedFile> = BTreeMap::new();
    for ((place, kind), cost) in sums {
        let file = place.and_then(|place| files.get(place));
        let path = file.and_then(|file| file.path.clone());
        // One without a path is known by its number alone.
        let number = if path.is_some() { None } else { place };
        let none = || FlushedFile { file: file.cloned(), kind, cost: FlushCost::default() };
        let one = merged.entry((path, number, kind)).or_insert_with(none);
        one.cost.merge(&cost);
        if let (Some(known), Some(file)) = (&mut one.file, file) {
            known.is_there |= file.is_there;
        }
    }
    let mut merged: Vec<_> = merged.into_values().collect();
    merged.sort_by_key(|file| std::cmp::Reverse(file.cost.sum_ns));
    merged
}

fn lost_sight(error: std::io::Error) -> Error {
    Error::Internal(format!("cannot go on tracing the command, which runs on: {error}"))
}

#[derive(Default)]
struct Sums {
    all: FlushCost,
    deferrable: FlushCost,
    kinds: BTreeMap<FlushKind, FlushCost>,
    files: BTreeMap<(Option<usize>, FlushKind), FlushCost>,
}

impl Sums {
    fn add(&mut self, call: &FlushCall) {
        self.all.add(call);
        if call.kind.is_deferrable() {
            self.deferrable.add(call);
        }
        self.kinds.entry(call.kind).or_default().add(call);
        self.files.entry((call.file, call.kind)).or_default().add(call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fsure_os::flush_trace::FlushCall;

    #[test]
    fn files_of_one_name_are_one_row() {
        let mut sums = Sums::default();
        let kind = FlushKind::Fdatasync;
        for (file, began_ns, ns) in
            [(Some(0), 0, 10), (Some(1), 20, 30), (Some(2), 60, 5), (None, 70, 1), (Some(3), 80, 2)]
        {
            sums.add(&FlushCall { kind, file, began_ns, ns, is_failed: false });
        }
        let file = |path: Option<&str>, is_there, ino| TracedFile {
            path: path.map(Into::into),
            is_there,
            device: (8, 1),
            ino,
        };
        let files = [
            file(Some("/db-journal"), false, 1),
            file(Some("/db-journal"), true, 2),
            file(Some("/db"), true, 3),
            file(None, false, 4),
        ];
        let rows = by_path(sums.files, &files);
        let figures: Vec<_> = rows.iter().map(|row| (row.cost.count, row.cost.sum_ns)).collect();
        assert_eq!(figures, [(2, 40), (1, 5), (1, 2), (1, 1)]);
        assert!(rows[0].file.as_ref().is_some_and(|file| file.is_there));
        assert!(rows[2].file.is_some() && rows[3].file.is_none());
        assert_eq!(sums.all.count, 5);
    }
}
