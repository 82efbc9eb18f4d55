//! Compares the report with a workload whose operations are known. The workload is a
//! process of its own, because a tracer does not watch itself. It is this same program,
//! started anew with [`WORKLOAD`] in its environment.

use std::fs::{File, OpenOptions};
use std::io::{IoSlice, IoSliceMut, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use io_uring::{IoUring, opcode, types};
use rustix::fs::Advice;
use rustix::mm::{MapFlags, ProtFlags};

use super::*;
use crate::host::did_not_run;

/// Environment variable with the folder in which the workload is to work.
const WORKLOAD: &str = "FSURE_TEST_HOT_WORKLOAD";

const PAGE: usize = 4096;

static TRACING: Mutex<()> = Mutex::new(());

/// Waits until no other test traces: a tracer sees the whole machine, and its maps have room
/// for what one test does.
pub(super) fn turn() -> MutexGuard<'static, ()> {
    TRACING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins to watch, or says loudly that it cannot.
pub(super) fn begin(test: &str, below: &Path, source: TraceSource) -> Option<Tracer> {
    let below = [below.to_owned()];
    match Tracer::begin(&TraceOptions { below: &below, source: Some(source), ..Default::default() })
    {
        Ok(tracer) => Some(tracer),
        Err(error) => {
            did_not_run(test, &error.to_string());
            None
        }
    }
}

pub(super) fn start_workload(folder: &Path) -> Child {
    let program = std::env::current_exe().unwrap();
    let name = "host::linux::io_trace::tests::the_workload";
    let mut command = Command::new(program);
    command.args(["--exact", name]).env(WORKLOAD, folder).stdout(Stdio::null());
    command.spawn().unwrap()
}

/// The same as a command.
pub(super) fn workload_command(folder: &Path) -> Vec<OsString> {
    let mut variable = OsString::from(format!("{WORKLOAD}="));
    variable.push(folder);
    let program = std::env::current_exe().unwrap().into_os_string();
    let name = "host::linux::io_trace::tests::the_workload";
    ["env".into(), variable, program, "--exact".into(), name.into()].into()
}

/// A folder on a disk: of what is in memory, pages are not reported.
pub(super) fn on_a_disk(test: &str) -> Option<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    if is_in_memory(&path).unwrap() {
        did_not_run(test, "the folder for temporary files is in memory: set TMPDIR");
        return None;
    }
    for name in ["plain", "copied", "ring", "ring-missed", "aio", "direct", "mapped", "missed"] {
        std::fs::create_dir(path.join(name)).unwrap();
    }
    Some((folder, path))
}

fn seen_in<'a>(seen: &'a TraceReport, path: &Path) -> &'a FolderIo {
    let place = TracedFolder::At(path.to_owned());
    let folder = seen.folders.iter().find(|folder| folder.place == place);
    folder.unwrap_or_else(|| panic!("{} not among {:?}", path.display(), seen.folders))
}

/// The workload's process, and what was seen of it.
fn watched(mut tracer: Tracer, path: &Path) -> (u32, TraceReport) {
    let mut child = start_workload(path);
    while child.try_wait().unwrap().is_none() {
        tracer.watch(Duration::from_millis(20)).unwrap();
    }
    assert!(child.wait().unwrap().success());
    (child.id(), tracer.end(None).unwrap())
}

#[test]
fn every_call_is_counted_and_nothing_else() {
    let test = "every_call_is_counted_and_nothing_else";
    let Some((_folder, path)) = on_a_disk(test) else { return };
    if let Err(error) = IoUring::new(8) {
        return did_not_run(test, &format!("io_uring: {error}"));
    }
    let _turn = turn();
    let Some(tracer) = begin(test, &path, TraceSource::Ebpf) else { return };
    let (id, seen) = watched(tracer, &path);
    // A machine that does much else fills the ring of names, and each is reported again.
    assert!(seen.lost.iter().all(|(what, _)| what.starts_with("names")), "{:?}", seen.lost);
    assert!(!seen.blind.iter().any(|what| what.contains("io_uring")), "{:?}", seen.blind);
    let page = PAGE as u64;
    for (name, reads, bytes_read, writes, bytes_written, fsyncs) in [
        // Reads by pread, readv, copy_file_range, sendfile.
        (
            "plain",
            50 + 5 + 1 + 1,
            50 * page + 5 * 300 + page + 1000,
            100 + 7 + 3,
            100 * page + 7 * 300 + 3 * 512,
            4 + 3 + 1,
        ),
        ("copied", 0, 0, 1 + 1, page + 1000, 0),
        ("ring", 32, 32 * page, 64, 64 * page, 2),
        ("ring-missed", 1, page, 1, 1 << 20, 1),
        ("aio", 4, 4 * page, 8, 8 * page, 0),
        ("direct", 2, 2 * page, 3, 3 * page, 0),
        ("mapped", 0, 0, 0, 0, 0),
        // The last one says that there is no more.
        ("missed", 2 * 17, 2 << 20, 1, 1 << 20, 1),
    ] {
        let folder = seen_in(&seen, &path.join(name));
        let IoCounts { reads: r, bytes_read: br, writes: w, bytes_written: bw, fsyncs: f, .. } =
            folder.counts;
        let truth = (reads, bytes_read, writes, bytes_written, fsyncs);
        assert_eq!((r, br, w, bw, f), truth, "{name}: {folder:?}");
        let ids: Vec<_> = folder.processes.iter().map(|process| process.id).collect();
        assert_eq!(ids, [id], "{name}");
    }
    let counts = |name: &str| seen_in(&seen, &path.join(name)).counts;
    check_times_and_pages(&counts);
}

/// Checks the values that cannot be exact, with their bounds.
fn check_times_and_pages(counts: &dyn Fn(&str) -> IoCounts) {
    let page = PAGE as u64;
    let plain = counts("plain");
    assert!(plain.fsync_ns > 0 && plain.read_ns > 0, "{plain:?}");
    assert!(0 < plain.synced_write_ns && plain.synced_write_ns < plain.write_ns, "{plain:?}");
    for name in ["plain", "copied", "ring", "aio", "missed"] {
        assert_eq!(counts(name).bytes_mapped, 0, "{name}: no store through a mapping");
    }
    assert_eq!(counts("copied").synced_write_ns, 0, "what is read from decides nothing");
    let waited = counts("ring-missed");
    assert!(0 < waited.missed_ns && waited.missed_ns == waited.read_ns, "{waited:?}");
    assert_eq!(counts("ring").missed_ns, 0);
    // Past the cache everything is waited for.
    let direct = counts("direct");
    assert_eq!(direct.synced_write_ns, direct.write_ns);
    assert_eq!((direct.missed_ns, direct.bytes_missed), (direct.read_ns, direct.bytes_read));
    // The kernel does not know of a hole that is mapped before it asks the disk.
    assert!(counts("mapped").bytes_missed <= 64 * page);
    for name in ["copied", "ring", "aio"] {
        assert_eq!(counts(name).bytes_missed, 0, "{name}: what is new was never on the disk");
    }
    // A kernel may have larger pages than were touched, within the file.
    let mapped = counts("mapped").bytes_mapped;
    assert!((40 * page..=64 * page).contains(&mapped), "{mapped}");
    let missed = counts("missed");
    assert!((1 << 20..=(1 << 20) + 16 * page).contains(&missed.bytes_missed), "{missed:?}");
    assert!(0 < missed.missed_ns && missed.missed_ns < missed.read_ns, "{missed:?}");
}

/// Fanotify reports the least that there was, and names the folders.
#[test]
fn notifications_name_the_folders_and_count_no_more_than_there_was() {
    let test = "notifications_name_the_folders";
    let Some((_folder, path)) = on_a_disk(test) else { return };
    let Some(tracer) = begin(test, &path, TraceSource::Fanotify) else { return };
    let (id, seen) = watched(tracer, &path);
    for (name, reads, writes) in [("plain", 57, 110), ("copied", 0, 2), ("missed", 34, 1)] {
        let folder = seen_in(&seen, &path.join(name));
        let IoCounts { reads: r, writes: w, .. } = folder.counts;
        assert!(r <= reads && w <= writes && w >= 1, "{name}: {folder:?}");
        assert_eq!(r > 0, reads > 0, "{name}: {folder:?}");
        assert!(folder.processes.iter().all(|process| process.id == id), "{folder:?}");
    }
    assert!(seen.blind.iter().any(|what| what.contains("fsync")), "{:?}", seen.blind);
}

#[test]
fn a_folder_that_is_gone_has_no_name() {
    let test = "a_folder_that_is_gone_has_no_name";
    let Some((_folder, path)) = on_a_disk(test) else { return };
    let _turn = turn();
    let Some(mut tracer) = begin(test, &path, TraceSource::Ebpf) else { return };
    let gone = path.join("gone");
    let script = "mkdir $0 && echo content > $0/file && rm -r $0 && mkdir $0";
    let done = Command::new("sh").args(["-c", script]).arg(&gone).status().unwrap();
    assert!(done.success());
    tracer.watch(Duration::from_millis(60)).unwrap();
    let seen = tracer.end(None).unwrap();
    let wrong = seen.folders.iter().find(|folder| {
        folder.place == TracedFolder::At(gone.clone()) && folder.counts.bytes_written > 0
    });
    let reused = std::fs::metadata(&gone).unwrap();
    // Some file systems give the same number to the next folder, and a path
    // that leads to that number is all that can be known.
    let number = std::os::unix::fs::MetadataExt::ino(&reused);
    let is_reported = seen.folders.iter().any(|folder| {
        matches!(folder.place, TracedFolder::Unseen { ino, .. } if ino != number)
            && folder.counts.bytes_written == 8
    });
    assert!(wrong.is_some() != is_reported, "{:?}", seen.folders);
}

/// Rounds, of so many calls of each kind, without and with.
const ROUNDS: usize = 15;
const CALLS: u64 = 20_000;

/// `cargo test --release -p fsure-os what_a_call_costs -- --ignored`
#[test]
#[ignore = "a measurement, for docs/hot.md"]
fn what_a_call_costs() {
    for source in [TraceSource::Ebpf, TraceSource::Fanotify] {
        let Some((_folder, path)) = on_a_disk("what_a_call_costs") else { return };
        let mut extra = [vec![], vec![]];
        let mut alone = [vec![], vec![]];
        for _ in 0..ROUNDS {
            let before = times_of_calls(&path);
            let Some(mut tracer) = begin("what_a_call_costs", &path, source) else { return };
            let during = std::thread::scope(|scope| {
                let calls = scope.spawn(|| times_of_calls(&path));
                while !calls.is_finished() {
                    tracer.watch(Duration::from_millis(50)).unwrap();
                }
                calls.join().unwrap()
            });
            tracer.end(None).unwrap();
            for kind in [0, 1] {
                alone[kind].push(before[kind]);
                extra[kind].push(during[kind] - before[kind]);
            }
        }
        for (kind, name) in ["pwrite", "pread"].iter().enumerate() {
            let median = |values: &mut Vec<f64>| {
                values.sort_by(f64::total_cmp);
                values[values.len() / 2]
            };
            let (alone, extra) = (median(&mut alone[kind]), median(&mut extra[kind]));
            let ratio = (alone + extra) / alone;
            let times_text = format!(
                "{} {name} of 4 KiB: {alone:.2} us, and {extra:.2} us more: {ratio:.2} times\n",
                source.name()
            );
            io::stderr().write_all(times_text.as_bytes()).unwrap();
        }
    }
}

/// Microseconds of a write and of a read of 4 KiB, in memory, by another process.
fn times_of_calls(folder: &Path) -> [f64; 2] {
    let name = "host::linux::io_trace::tests::the_calls";
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name]).env(WORKLOAD, folder).stdout(Stdio::null());
    assert!(command.status().unwrap().success());
    let times_text = std::fs::read_to_string(folder.join("told")).unwrap();
    let times: Vec<f64> = times_text.split(' ').map(|time| time.parse().unwrap()).collect();
    [times[0], times[1]]
}

#[test]
fn the_calls() {
    let Some(folder) = std::env::var_os(WORKLOAD) else { return };
    let folder = PathBuf::from(folder);
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false);
    let file = file.open(folder.join("calls")).unwrap();
    let mut page = [7; PAGE];
    let place = |call: u64| call % 256 * PAGE as u64;
    (0..256).for_each(|call| _ = file.write_at(&page, place(call)).unwrap());
    let time = |call: &mut dyn FnMut(u64)| {
        let began = Instant::now();
        (0..CALLS).for_each(call);
        began.elapsed().as_secs_f64() * 1e6 / CALLS as f64
    };
    let write = time(&mut |call| _ = file.write_at(&page, place(call)).unwrap());
    let read = time(&mut |call| _ = file.read_at(&mut page, place(call)).unwrap());
    std::fs::write(folder.join("told"), format!("{write} {read}")).unwrap();
}

#[test]
fn the_workload() {
    let Some(folder) = std::env::var_os(WORKLOAD) else { return };
    let folder = PathBuf::from(folder);
    plain(&folder.join("plain"), &folder.join("copied"));
    ring(&folder.join("ring"));
    missed_by_ring(&folder.join("ring-missed"));
    aio(&folder.join("aio"));
    direct(&folder.join("direct"));
    mapped(&folder.join("mapped"));
    missed(&folder.join("missed"));
}

fn new_file(folder: &Path) -> File {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).open(folder.join("file")).unwrap()
}

fn plain(folder: &Path, copied: &Path) {
    let mut file = new_file(folder);
    let mut page = [7; PAGE];
    for n in 0..100 {
        assert_eq!(file.write_at(&page, n * PAGE as u64).unwrap(), PAGE);
    }
    for n in 0..50 {
        assert_eq!(file.read_at(&mut page, n * PAGE as u64).unwrap(), PAGE);
    }
    for _ in 0..7 {
        let parts = [IoSlice::new(&page[..100]), IoSlice::new(&page[..200])];
        assert_eq!(file.write_vectored(&parts).unwrap(), 300);
    }
    let (mut one, mut two) = ([0; 100], [0; 200]);
    for _ in 0..5 {
        let mut parts = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut two)];
        assert_eq!(file.read_vectored(&mut parts).unwrap(), 300);
    }
    for _ in 0..3 {
        let part = [IoSlice::new(&page[..512])];
        let durable = rustix::io::ReadWriteFlags::DSYNC;
        assert_eq!(rustix::io::pwritev2(&file, &part, 0, durable).unwrap(), 512);
    }
    (0..4).for_each(|_| file.sync_all().unwrap());
    (0..3).for_each(|_| file.sync_data().unwrap());
    // SAFETY: an open file, and numbers.
    let done = unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, 2) };
    assert_eq!(done, 0);
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(libc::O_DSYNC).open(folder.join("file")).unwrap();
    let copy = new_file(copied);
    let (mut from, mut to) = (0, 0);
    let done =
        rustix::fs::copy_file_range(&file, Some(&mut from), &copy, Some(&mut to), PAGE).unwrap();
    assert_eq!(done, PAGE);
    assert_eq!(rustix::fs::sendfile(&copy, &file, Some(&mut from), 1000).unwrap(), 1000);
    // Nothing that fails is counted.
    let only = File::open(folder.join("file")).unwrap();
    assert!(only.write_at(&page, 0).is_err());
}

fn ring(folder: &Path) {
    let file = new_file(folder);
    let mut page = [7; PAGE];
    let mut ring = IoUring::new(8).unwrap();
    let fd = types::Fd(file.as_raw_fd());
    let mut submit = |entry: &io_uring::squeue::Entry, result: usize| {
        // SAFETY: the file and the page outlive the request, which is waited for.
        unsafe { ring.submission().push(entry).unwrap() };
        ring.submit_and_wait(1).unwrap();
        assert_eq!(ring.completion().next().unwrap().result(), result as i32);
    };
    for n in 0..64 {
        let entry = opcode::Write::new(fd, page.as_ptr(), PAGE as u32).offset(n * PAGE as u64);
        submit(&entry.build(), PAGE);
    }
    for n in 0..32 {
        let entry = opcode::Read::new(fd, page.as_mut_ptr(), PAGE as u32).offset(n * PAGE as u64);
        submit(&entry.build(), PAGE);
    }
    for _ in 0..2 {
        submit(&opcode::Fsync::new(fd).build(), 0);
    }
}

/// A read of what is not in memory.
fn missed_by_ring(folder: &Path) {
    let mut file = new_file(folder);
    file.write_all(&vec![7; 1 << 20]).unwrap();
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    let (mut page, mut ring) = ([0; PAGE], IoUring::new(8).unwrap());
    let fd = types::Fd(file.as_raw_fd());
    let entry = opcode::Read::new(fd, page.as_mut_ptr(), PAGE as u32).build();
    // SAFETY: the file and the page outlive the request, which is waited for.
    unsafe { ring.submission().push(&entry).unwrap() };
    ring.submit_and_wait(1).unwrap();
    assert_eq!(ring.completion().next().unwrap().result(), PAGE as i32);
}

/// The kernel's `struct iocb`.
#[repr(C)]
#[derive(Default)]
struct Iocb {
    data: u64,
    key: u32,
    flags: u32,
    operation: u16,
    priority: u16,
    fd: u32,
    buffer: u64,
    bytes: u64,
    offset: u64,
    rest: [u64; 2],
}

fn aio(folder: &Path) {
    let file = new_file(folder);
    let mut page = [7_u8; PAGE];
    let mut context = 0_u64;
    // SAFETY: a place for the context, which is 0.
    let done = unsafe { libc::syscall(libc::SYS_io_setup, 16, &raw mut context) };
    assert_eq!(done, 0, "{}", io::Error::last_os_error());
    for (operation, count) in [(1, 8), (0, 4)] {
        let mut all: Vec<_> = (0..count)
            .map(|n| Iocb {
                operation,
                fd: file.as_raw_fd() as u32,
                buffer: page.as_mut_ptr() as u64,
                bytes: PAGE as u64,
                offset: n * PAGE as u64,
                ..Iocb::default()
            })
            .collect();
        let mut pointers: Vec<_> = all.iter_mut().map(std::ptr::from_mut).collect();
        let mut events = [[0_u64; 4]; 16];
        // SAFETY: requests, page and events outlive the calls, which wait for
        // all that was asked for.
        let (taken, ended) = unsafe {
            (
                libc::syscall(libc::SYS_io_submit, context, count, pointers.as_mut_ptr()),
                libc::syscall(libc::SYS_io_getevents, context, count, count, &raw mut events, 0),
            )
        };
        assert_eq!((taken, ended), (count as i64, count as i64));
    }
    // SAFETY: nothing is under way.
    unsafe { libc::syscall(libc::SYS_io_destroy, context) };
}

fn direct(folder: &Path) {
    #[repr(align(4096))]
    struct Aligned([u8; PAGE]);
    let mut page = Aligned([7; PAGE]);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).custom_flags(libc::O_DIRECT);
    let file = options.open(folder.join("file")).unwrap();
    for n in 0..3 {
        assert_eq!(file.write_at(&page.0, n * PAGE as u64).unwrap(), PAGE);
    }
    for n in 0..2 {
        assert_eq!(file.read_at(&mut page.0, n * PAGE as u64).unwrap(), PAGE);
    }
}

fn mapped(folder: &Path) {
    let file = new_file(folder);
    file.set_len(64 * PAGE as u64).unwrap();
    let (read, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: a new mapping of a file of this test, of its own length, which no
    // other process changes.
    unsafe {
        let at = rustix::mm::mmap(std::ptr::null_mut(), 64 * PAGE, read, shared, &file, 0).unwrap();
        for page in 0..40 {
            at.cast::<u8>().add(page * PAGE).write_volatile(1);
        }
        rustix::mm::munmap(at, 64 * PAGE).unwrap();
    }
}

/// Reads a file that is not in memory, and again.
fn missed(folder: &Path) {
    let mut file = new_file(folder);
    file.write_all(&vec![7; 1 << 20]).unwrap();
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    for _ in 0..2 {
        let mut file = File::open(folder.join("file")).unwrap();
        let mut part = vec![0; 1 << 16];
        while file.read(&mut part).unwrap() > 0 {}
    }
}
