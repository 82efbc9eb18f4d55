//! Compares the log of single calls with the counts of the same trace, with a workload whose
//! calls are known, and with a reader that is too slow.

use std::collections::BTreeMap;
use std::process::Command;

use super::tests::{on_a_disk, start_workload, turn, workload_command};
use super::*;
use crate::host::did_not_run;
use crate::io_trace::LoggedOperation;
use crate::io_trace::{LoggedCall, TraceInterval};

/// Begins to log, or says loudly that it cannot.
fn begin(test: &str, below: &[std::path::PathBuf]) -> Option<Tracer> {
    let logged = &LoggedOperation::ALL;
    let source = Some(TraceSource::Ebpf);
    match Tracer::begin(&TraceOptions { below, source, logged, has_intervals: true }) {
        Ok(tracer) => Some(tracer),
        Err(error) => {
            did_not_run(test, &error.to_string());
            None
        }
    }
}

/// Takes all calls.
fn take_all(tracer: &mut Tracer, calls: &mut Vec<LoggedCall>) {
    while tracer.take_calls(&mut |call| calls.push(call)) {}
}

#[test]
fn the_log_adds_up_to_the_counts() {
    let test = "the_log_adds_up_to_the_counts";
    let Some((_folder, path)) = on_a_disk(test) else { return };
    if let Err(error) = io_uring::IoUring::new(8) {
        return did_not_run(test, &format!("io_uring: {error}"));
    }
    let _turn = turn();
    let Some(mut tracer) = begin(test, std::slice::from_ref(&path)) else { return };
    let (mut calls, mut intervals) = (vec![], IoCounts::default());
    let mut add = |interval: TraceInterval| {
        interval.folders.iter().for_each(|folder| intervals.add(&folder.counts));
    };
    let mut child = start_workload(&path);
    while child.try_wait().unwrap().is_none() {
        tracer.watch(Duration::from_millis(20)).unwrap();
        take_all(&mut tracer, &mut calls);
        add(tracer.interval().unwrap());
    }
    tracer.stop();
    take_all(&mut tracer, &mut calls);
    add(tracer.interval().unwrap());
    let report = tracer.end(None).unwrap();
    assert!(report.lost.iter().all(|(what, _)| what.starts_with("names")), "{:?}", report.lost);
    let mut counted: BTreeMap<TracedFolder, IoCounts> = BTreeMap::new();
    for call in calls.iter().filter(|call| call.error.is_none()) {
        let file = call.path.as_ref().unwrap();
        assert!(call.began_ns > 0 && call.process.id == child.id(), "{call:?}");
        let counts = counted.entry(TracedFolder::At(file.parent().unwrap().to_owned()));
        add_call(counts.or_default(), call);
    }
    let mut sum = IoCounts::default();
    for folder in &report.folders {
        sum.add(&folder.counts);
        // Pages that are fetched for a read are the read's, and not logged by themselves.
        let mut folder_counts = folder.counts;
        let logged = counted.remove(&folder.place).unwrap_or_default();
        folder_counts.bytes_missed = logged.bytes_missed;
        assert_eq!(logged, folder_counts, "{:?}", folder.place);
    }
    assert!(counted.is_empty(), "{counted:?}");
    assert_eq!(intervals, sum, "intervals add up to the whole");
    let failed: Vec<_> = calls.iter().filter(|call| call.error.is_some()).collect();
    assert_eq!(failed.len(), 1, "a write to a file that is open for reading: {failed:?}");
    assert_eq!((failed[0].error, failed[0].bytes), (Some(libc::EBADF), None));
}

fn add_call(counts: &mut IoCounts, call: &LoggedCall) {
    let (bytes, ns) = (call.bytes.unwrap_or(0), call.ns.unwrap_or(0));
    let waited = if call.is_waited { ns } else { 0 };
    match (call.operation, call.call) {
        (LoggedOperation::Read, _) => {
            counts.reads += 1;
            counts.bytes_read += bytes;
            counts.read_ns += ns;
            counts.missed_ns += waited;
        }
        (LoggedOperation::Write, _) => {
            counts.writes += 1;
            counts.bytes_written += bytes;
            counts.write_ns += ns;
            counts.synced_write_ns += waited;
        }
        (LoggedOperation::Flush, _) => {
            counts.fsyncs += 1;
            counts.fsync_ns += ns;
        }
        (LoggedOperation::Mapped, "mapped write") => counts.bytes_mapped += bytes,
        (LoggedOperation::Mapped, _) => counts.bytes_missed += bytes,
    }
}

/// The command forks (`env` starts it), and uses `io_uring`, libaio and a mapping.
#[test]
fn a_command_is_logged_with_its_requests_and_its_mappings() {
    let test = "a_command_is_logged_with_its_requests_and_its_mappings";
    let Some((_folder, path)) = on_a_disk(test) else { return };
    if let Err(error) = io_uring::IoUring::new(8) {
        return did_not_run(test, &format!("io_uring: {error}"));
    }
    let _turn = turn();
    let (below, logged) = ([path.clone()], &LoggedOperation::ALL);
    let options = TraceOptions { below: &below, logged, ..TraceOptions::default() };
    let mut tracer = match Tracer::begin_command(&options, &workload_command(&path)) {
        Ok(tracer) => tracer,
        Err(error) => return did_not_run(test, &error.to_string()),
    };
    let mut calls = vec![];
    while tracer.watch_command(Duration::from_millis(20)).unwrap().is_none() {
        take_all(&mut tracer, &mut calls);
    }
    tracer.stop();
    take_all(&mut tracer, &mut calls);
    let count = |folder: &str, call: &str| {
        let file = path.join(folder).join("file");
        calls.iter().filter(|one| one.path.as_ref() == Some(&file) && one.call == call).count()
    };
    for (folder, call, times) in [
        ("plain", "pwrite64", 100 + 1),
        ("plain", "pwritev2", 3),
        ("ring", "io_uring write", 64),
        ("ring", "io_uring read", 32),
        ("ring", "io_uring fsync", 2),
        ("aio", "libaio write", 8),
        ("aio", "libaio read", 4),
        ("mapped", "mapped write", 40),
        ("copied", "copy_file_range", 1),
        ("copied", "sendfile", 1),
    ] {
        assert_eq!(count(folder, call), times, "{folder} {call}");
    }
}

#[test]
fn what_finds_no_room_in_the_log_is_counted() {
    let test = "what_finds_no_room_in_the_log_is_counted";
    const WRITES: u64 = 100;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let _turn = turn();
    let scope = Scope { logged: &[LoggedOperation::Write], ..Scope::default() };
    // A page has room for eleven calls, and nothing is taken from it meanwhile.
    let mut kernel = match Kernel::with_map_sizes(scope, &[("logged_calls", 4096)]) {
        Ok(kernel) => kernel,
        Err(error) => return did_not_run(test, &error.to_string()),
    };
    let mut dd = Command::new("dd");
    dd.args(["if=/dev/zero", "bs=1", "status=none", &format!("count={WRITES}")]);
    assert!(dd.arg(format!("of={}", path.join("file").display())).status().unwrap().success());
    kernel.stop();
    let mut calls = 0;
    kernel.take_calls(&mut |_| calls += 1);
    let lost = kernel.lost().unwrap();
    let lost = lost.iter().find(|(what, _)| what.starts_with("calls that are not in the log"));
    assert!(calls > 0 && lost.is_some_and(|(_, count)| *count + calls >= WRITES), "{lost:?}");
}
