//! Compares a trace of flushes with a workload whose flushes are known. It is this same
//! program, started anew with [`WORKLOAD`] in its environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::IoSlice;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use io_uring::{IoUring, opcode, types};
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags};

use super::tests::turn;
use crate::flush_trace::{FlushCall, FlushKind, FlushTraceReport, FlushTracer};
use crate::host::did_not_run;
use crate::process_tree::Ended;

/// Environment variable with the folder in which the workload is to work.
const WORKLOAD: &str = "FSURE_TEST_FLUSH_WORKLOAD";

/// The command that works in a folder.
fn workload(folder: &Path) -> Vec<OsString> {
    let mut variable = OsString::from(format!("{WORKLOAD}="));
    variable.push(folder);
    let program = std::env::current_exe().unwrap().into_os_string();
    let name = "host::linux::io_trace::flush_tracer_tests::the_flushes";
    ["env".into(), variable, program, "--exact".into(), name.into()].into()
}

/// Runs a command and returns its exit status, its flushes, and the rest. `None`, loudly, if
/// it cannot be traced here.
fn traced(test: &str, command: &[OsString]) -> Option<(Ended, Vec<FlushCall>, FlushTraceReport)> {
    let mut tracer = match FlushTracer::begin(command) {
        Ok(tracer) => tracer,
        Err(error) => {
            did_not_run(test, &error.to_string());
            return None;
        }
    };
    let mut calls = vec![];
    loop {
        let time = Duration::from_millis(50);
        if let Some(end) = tracer.watch(time, &mut |call| calls.push(call)).unwrap() {
            return Some((end.ended, calls, tracer.end().unwrap()));
        }
    }
}

#[test]
fn every_flush_is_told_and_nothing_else() {
    let test = "every_flush_is_told_and_nothing_else";
    if let Err(error) = IoUring::new(8) {
        return did_not_run(test, &format!("io_uring: {error}"));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let _turn = turn();
    // Flushes of another process, which are not those of the command.
    let other = std::thread::scope(|scope| {
        let traced = scope.spawn(|| traced(test, &workload(&path)));
        let file = std::fs::File::create(path.join("other")).unwrap();
        while !traced.is_finished() {
            file.sync_all().unwrap();
        }
        traced.join().unwrap()
    });
    let Some((ended, calls, report)) = other else { return };
    assert_eq!(ended, Ended::Code(0));
    let mut counts: BTreeMap<(FlushKind, Option<&Path>, bool), u64> = BTreeMap::new();
    for call in &calls {
        let file = call.file.map(|place| &report.files[place]);
        let file = file.and_then(|file| file.path.as_deref());
        assert!(file.is_none() || call.ns > 0 && call.began_ns > 0, "{call:?}");
        *counts.entry((call.kind, file, call.is_failed)).or_default() += 1;
    }
    let [plain, synced, data_synced] = ["plain", "synced", "data-synced"].map(|n| path.join(n));
    let truth = [
        // Of no file, and of one that is no storage.
        ((FlushKind::Fsync, None, true), 2),
        ((FlushKind::Fsync, Some(&*plain), false), 4),
        ((FlushKind::Fdatasync, Some(&*plain), false), 3),
        ((FlushKind::SyncFileRange, Some(&*plain), false), 1),
        ((FlushKind::Syncfs, Some(&*plain), false), 1),
        ((FlushKind::Sync, None, false), 1),
        ((FlushKind::Msync, None, false), 2),
        ((FlushKind::SyncedWrite, Some(&*synced), false), 5),
        ((FlushKind::DataSyncedWrite, Some(&*data_synced), false), 6),
        ((FlushKind::FlaggedWrite, Some(&*plain), false), 3),
        ((FlushKind::RingFsync, Some(&*plain), false), 2),
        ((FlushKind::RingWrite, Some(&*data_synced), false), 1),
    ];
    assert_eq!(counts, truth.into());
    assert!(report.files.iter().all(|file| file.is_there), "{:?}", report.files);
    assert_eq!((report.lost, report.processes_left), (vec![], 0));
}

#[test]
fn a_command_that_forks_is_followed_and_who_is_left_behind_is_counted() {
    let test = "a_command_that_forks_is_followed";
    let folder = tempfile::tempdir().unwrap();
    // The child in a session of its own waits until its parent has ended, and longer.
    let script = "cd $0 && touch a b && sync a && \
                  setsid sh -c 'sync -d b; touch done; read line' < wait & \
                  cd $0; until [ -e done ]; do sleep 0.01; done; sync $0; kill -9 $$";
    let wait = folder.path().join("wait");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &wait,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    // Open for both, a FIFO can be opened for reading; its end lets the child end.
    let hold = OpenOptions::new().read(true).write(true).open(&wait).unwrap();
    let command = ["sh".into(), "-c".into(), script.into(), folder.path().into()];
    let _turn = turn();
    let Some((ended, calls, report)) = traced(test, &command) else { return };
    drop(hold);
    assert_eq!(ended, Ended::Signal(9));
    let kinds: Vec<_> = calls.iter().map(|call| call.kind).collect();
    assert_eq!(kinds, [FlushKind::Fsync, FlushKind::Fdatasync, FlushKind::Fsync]);
    assert!((1..=2).contains(&report.processes_left), "the child, and its shell: {report:?}");
}

#[test]
fn what_cannot_be_started_is_an_error() {
    let _turn = turn();
    let error = FlushTracer::begin(&["/no/such/program".into()]).map(|_| ()).unwrap_err();
    let words = error.to_string();
    if words.contains("/no/such/program") {
        return;
    }
    did_not_run("what_cannot_be_started_is_an_error", &words);
}

#[test]
fn the_flushes() {
    let Some(folder) = std::env::var_os(WORKLOAD) else { return };
    let folder = PathBuf::from(folder);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    let plain = options.open(folder.join("plain")).unwrap();
    for _ in 0..3 {
        let part = [IoSlice::new(&[7; 512])];
        let durable = rustix::io::ReadWriteFlags::DSYNC;
        assert_eq!(rustix::io::pwritev2(&plain, &part, 0, durable).unwrap(), 512);
    }
    plain.write_at(&[1; 4096], 0).unwrap();
    (0..4).for_each(|_| plain.sync_all().unwrap());
    (0..3).for_each(|_| plain.sync_data().unwrap());
    // SAFETY: an open file, and numbers; the last is no open file.
    unsafe {
        assert_eq!(libc::sync_file_range(plain.as_raw_fd(), 0, 0, 2), 0);
        assert_eq!(libc::syncfs(plain.as_raw_fd()), 0);
        libc::sync();
        assert_eq!(libc::fsync(-1), -1);
        let pseudo = std::fs::File::open("/proc/self/status").unwrap();
        assert_eq!(libc::fsync(pseudo.as_raw_fd()), -1);
    }
    map_and_flush(&plain);
    let synced = options.clone().custom_flags(libc::O_SYNC).open(folder.join("synced")).unwrap();
    (0..5).for_each(|_| _ = synced.write_at(b"x", 0).unwrap());
    let mut options = options.clone();
    let options = options.custom_flags(libc::O_DSYNC);
    let data_synced = options.open(folder.join("data-synced")).unwrap();
    (0..6).for_each(|_| _ = data_synced.write_at(b"x", 0).unwrap());
    // A read of it is no flush.
    data_synced.read_at(&mut [0], 0).unwrap();
    let mut ring = IoUring::new(8).unwrap();
    let mut submit = |entry: &io_uring::squeue::Entry, result: i32| {
        // SAFETY: the file and the byte outlive the request, which is waited for.
        unsafe { ring.submission().push(entry).unwrap() };
        ring.submit_and_wait(1).unwrap();
        assert_eq!(ring.completion().next().unwrap().result(), result);
    };
    for _ in 0..2 {
        submit(&opcode::Fsync::new(types::Fd(plain.as_raw_fd())).build(), 0);
    }
    let byte = [1_u8];
    let fd = types::Fd(data_synced.as_raw_fd());
    submit(&opcode::Write::new(fd, byte.as_ptr(), 1).build(), 1);
    submit(&opcode::Write::new(types::Fd(plain.as_raw_fd()), byte.as_ptr(), 1).build(), 1);
}

/// Two flushes that wait, and one that does not.
fn map_and_flush(file: &std::fs::File) {
    let (write, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: a new mapping of a file of this test, within its length.
    unsafe {
        let at = rustix::mm::mmap(std::ptr::null_mut(), 4096, write, shared, file, 0).unwrap();
        at.cast::<u8>().write_volatile(2);
        rustix::mm::msync(at, 4096, MsyncFlags::SYNC).unwrap();
        rustix::mm::msync(at, 4096, MsyncFlags::SYNC).unwrap();
        rustix::mm::msync(at, 4096, MsyncFlags::ASYNC).unwrap();
        rustix::mm::munmap(at, 4096).unwrap();
    }
}
