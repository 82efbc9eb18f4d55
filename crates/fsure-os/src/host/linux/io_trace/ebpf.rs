//! `bpf/hot.bpf.c` at work: loaded, configured, and read.
//!
//! The object is built beforehand and is part of the command, so neither a
//! compiler nor headers of the kernel are needed. Where a structure of this
//! kernel differs from that of the one it was written on, it is put right while
//! it is loaded, by the types that the kernel tells of itself (BTF).

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use aya::maps::{Array, HashMap as KernelMap, MapData, MapError, RingBuf};
use aya::programs::{BtfTracePoint, ProgramError};
use aya::{Btf, Ebpf, EbpfLoader, Pod};

use super::super::foreground::WatchedCommand;
use super::call_log::{self, CallLog, program_name};
use super::folder_names::FolderNames;
use super::path_resolver::{Key, Namer, ResolvedName};
use super::{Folders, command, syscalls};
use crate::foreground::StartError;
use crate::io_trace::{
    IoCounts, LoggedCall, LoggedOperation, MetadataTime, ProcessIo, TraceInterval, TraceOptions,
    TraceReport,
};

/// `struct counts` of `hot.bpf.c`.
#[repr(C)]
#[derive(Clone, Copy)]
struct InKernel {
    counts: [u64; 12],
    last_process: u32,
    is_named: u32,
}

/// `struct process`.
#[repr(C)]
#[derive(Clone, Copy)]
struct InFolder {
    folder: Key,
    id: u64,
}

// SAFETY: plain numbers, without padding.
unsafe impl Pod for Key {}
// SAFETY: plain numbers, without padding.
unsafe impl Pod for InKernel {}
// SAFETY: plain numbers, without padding.
unsafe impl Pod for InFolder {}

/// `enum lost`.
const LOST: [&str; 9] = [
    "operations in folders for which there was no room",
    "operations for which there was no room",
    "processes for which there was no room",
    "calls of programs of 32 bits",
    "processes that were started and not watched for want of room",
    "flushes for which there was no room",
    "flushes by libaio, of which no time is known",
    "calls that are not in the log, for want of room: the reader of the log was too slow",
    "operations of programs for which there was no room",
];

/// A loss, too: the program cannot know whether it was asked about a folder without a path.
const NOWHERE: &str = "folders whose path is too long, or for whose name there was no room";

/// Must be there if one command is watched: without them its children are not.
const PROCESS_PROGRAMS: [(&str, &str); 2] =
    [("hot_process_exit", "sched_process_exit"), ("hot_fork", "sched_process_fork")];

/// Must be there; the first to be attached is what ends a call, so that none
/// that began is left over.
const NEEDED: [(&str, &str); 2] = [("hot_exit", "sys_exit"), ("hot_enter", "sys_enter")];

/// Optional programs, the tracepoint of each, and what is not seen if the kernel refuses
/// them. Of two that see the same, the second is for older kernels.
const RING: [(&[&str], &str, &str); 2] = [
    (&["hot_complete", "hot_complete_old"], "io_uring_complete", "io_uring"),
    (&["hot_submit"], "io_uring_submit_req", "io_uring"),
];

/// More of them, which see what memory saves.
const PAGES: [(&[&str], &str, &str); 2] = [
    (&["hot_miss"], "mm_filemap_add_to_page_cache", "what was read from the device"),
    (&["hot_dirty"], "writeback_dirty_folio", "stores through mappings"),
];

/// Maximum number of attempts to load a program.
const LOAD_ATTEMPTS_MAX: u32 = 20;
/// Names wait in a ring of 4 MiB, space for some 40,000; where they are long it is less, so
/// it is emptied often.
pub(super) const RING_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The part of the machine that is watched.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scope<'a> {
    /// Folders that matter; all if there are none.
    pub(super) below: &'a [PathBuf],
    /// If it is not 0, the mark of the command that alone is watched: see
    /// [`super::command`].
    pub(super) mark: u64,
    /// True if each flush is reported, and files and not folders.
    pub(super) is_flush_trace: bool,
    /// Operations of which each call is reported.
    pub(super) logged: &'a [LoggedOperation],
    /// True if what a program does is counted by its name, too.
    pub(super) counts_programs: bool,
}

impl<'a> Scope<'a> {
    pub(super) fn of(options: &TraceOptions<'a>) -> Self {
        let (logged, counts_programs) = (options.logged, options.has_intervals);
        Self { below: options.below, logged, counts_programs, ..Self::default() }
    }

    /// Returns true if the calls that change metadata are counted: those of one command, since
    /// they are counted of no folder.
    fn counts_metadata(&self) -> bool {
        self.mark != 0 && !self.is_flush_trace
    }
}

/// Programs in the kernel that count.
pub(super) struct Kernel {
    programs: Ebpf,
    names: FolderNames,
    blind: Vec<String>,
    below: Vec<PathBuf>,
    log: Option<CallLog>,
    /// True if the calls that change metadata are counted.
    has_metadata: bool,
    /// The counts at the end of the last interval.
    earlier: Earlier,
    /// The counts that are not in the report.
    forgotten: Earlier,
}

/// Counts at an earlier time.
#[derive(Default)]
struct Earlier {
    folders: BTreeMap<Key, IoCounts>,
    programs: BTreeMap<[u8; 16], IoCounts>,
}

impl Kernel {
    pub(super) fn begin(scope: Scope<'_>) -> io::Result<Self> {
        Self::with_map_sizes(scope, &[])
    }

    /// With so many entries in maps of these names, and as many as they were made
    /// for in all others.
    pub(super) fn with_map_sizes(scope: Scope<'_>, sizes: &[(&str, u32)]) -> io::Result<Self> {
        if cfg!(not(all(target_endian = "little", target_pointer_width = "64"))) {
            return Err(refused("fsure's eBPF programs need a 64-bit, little-endian kernel"));
        }
        let types = Btf::from_sys_fs().map_err(|error| {
            refused(&format!("the kernel does not describe its types (BTF): {error}"))
        })?;
        let mut programs = load(&types, scope, sizes)?;
        let mut blind = blind_spots(scope);
        let of_processes = PROCESS_PROGRAMS.iter().filter(|_| scope.mark != 0);
        for (program, point) in of_processes.chain(&NEEDED) {
            attach(&mut programs, program, point, &types).map_err(|error| kernel_error(&error))?;
        }
        let pages = PAGES.iter().filter(|_| !scope.is_flush_trace);
        for (all, point, sees) in RING.iter().chain(pages) {
            let attached = |name: &&str| attach(&mut programs, name, point, &types).is_ok();
            if !all.iter().any(attached) && !blind.iter().any(|known| known == sees) {
                blind.push((*sees).to_owned());
            }
        }
        let log = match scope.logged {
            [] => None,
            _ => Some(CallLog::new(ring(&mut programs, "logged_calls")?)?),
        };
        let names = FolderNames::new(ring(&mut programs, "names")?);
        let below = scope.below.to_vec();
        let has_metadata = scope.counts_metadata();
        let (earlier, forgotten) = (Earlier::default(), Earlier::default());
        Ok(Self { programs, names, blind, below, log, has_metadata, earlier, forgotten })
    }

    pub(super) fn watch(&mut self, time: Duration) -> io::Result<()> {
        let end = Instant::now() + time;
        loop {
            self.take_names();
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(RING_POLL_INTERVAL));
        }
    }

    /// The ring of flushes, which is taken once.
    pub(super) fn flushes(&mut self) -> io::Result<RingBuf<MapData>> {
        ring(&mut self.programs, "flushes")
    }

    /// Takes the calls that were logged; true if there are more.
    pub(super) fn take_calls(&mut self, to: &mut dyn FnMut(LoggedCall)) -> bool {
        let Some(log) = &mut self.log else { return false };
        log.take(&mut self.names, &self.below, to)
    }

    /// Returns what was done since the last interval, the names of processes left out.
    pub(super) fn interval(&mut self) -> io::Result<TraceInterval> {
        let all = counted::<Key>(&self.programs, "folders")?;
        // Behind the counts: a folder is named before anything is counted in it.
        self.take_names();
        let namer = Namer::new()?;
        let mut folders = Folders::default();
        for (key, counts) in all {
            let earlier = self.earlier.folders.insert(key, counts).unwrap_or_default();
            let (counts, name) = (counts.since(&earlier), self.names.get(&key));
            if !counts.is_nothing() && namer.was_below(&key, name, &self.below) {
                folders.add(namer.place(&key, name, &self.below), &counts, []);
            }
        }
        let mut programs = Vec::new();
        for (name, counts) in counted::<[u8; 16]>(&self.programs, "programs")? {
            let earlier = self.earlier.programs.insert(name, counts).unwrap_or_default();
            let counts = counts.since(&earlier);
            if !counts.is_nothing() {
                programs.push((program_name(&name), counts));
            }
        }
        Ok(TraceInterval { folders: folders.all(), programs, lost: self.lost()? })
    }

    pub(super) fn take_names(&mut self) {
        self.names.take();
    }

    /// Starts a command, of which the programs know the mark.
    pub(super) fn start(
        &self,
        command: &[OsString],
        mark: u64,
    ) -> Result<WatchedCommand, StartError> {
        let command = command::start(command, mark)?;
        match self.count::<u64>("marked", 0) {
            Ok(1..) => Ok(command),
            seen => {
                command.kill();
                let why = "the kernel does not report the calls of the command: is there a \
                           seccomp filter that forbids prctl?";
                Err(seen.map_or_else(|error| error, |_| refused(why)).into())
            }
        }
    }

    fn count<V: Pod>(&self, map: &str, place: u32) -> io::Result<V> {
        let map = self.programs.map(map).ok_or_else(|| io::Error::other("no map"))?;
        let counts: Array<_, V> = map.try_into().map_err(|error: MapError| kernel_error(&error))?;
        counts.get(&place, 0).map_err(|error| kernel_error(&error))
    }

    /// Ends the watch: without their programs the maps stand still.
    pub(super) fn stop(&mut self) {
        for (_, program) in self.programs.programs_mut() {
            if let Ok(program) = <&mut BtfTracePoint>::try_from(program) {
                // One that the kernel refused is not there to be unloaded.
                let _ = program.unload();
            }
        }
        self.take_names();
    }

    /// Returns the name of what was seen; `None` if it was not reported.
    pub(super) fn name(&self, key: &Key) -> Option<&ResolvedName> {
        self.names.get(key)
    }

    /// Returns what the programs cannot see.
    pub(super) fn blind(&self) -> &[String] {
        &self.blind
    }

    /// Returns the number of watched processes that live, if a command is watched.
    pub(super) fn processes_alive(&self) -> io::Result<usize> {
        let watched: KernelMap<_, u32, u32> = map(&self.programs, "watched")?;
        Ok(watched.keys().count())
    }

    /// Leaves what was counted until now out of the report.
    fn forget(&mut self) -> io::Result<()> {
        let folders = counted::<Key>(&self.programs, "folders")?.into_iter().collect();
        let programs = counted::<[u8; 16]>(&self.programs, "programs")?.into_iter().collect();
        self.forgotten = Earlier { folders, programs };
        Ok(())
    }

    /// Reads the counts, and ends the watch behind that: it takes a tenth of a second, for which
    /// a part of the programs would go on counting. The next watch has what comes later.
    pub(super) fn end(mut self, next: Option<&mut Self>) -> io::Result<TraceReport> {
        let programs = self.named_programs()?;
        let all = counted::<Key>(&self.programs, "folders")?;
        next.map_or(Ok(()), Self::forget)?;
        let processes = self.processes()?;
        self.stop();
        let namer = Namer::new()?;
        let (mut folders, mut nowhere) = (Folders::default(), 0);
        for (key, counts) in all {
            let forgotten = self.forgotten.folders.get(&key).copied().unwrap_or_default();
            let (counts, name) = (counts.since(&forgotten), self.names.get(&key));
            if counts.is_nothing() {
                continue;
            }
            nowhere += u64::from(!name.is_some_and(ResolvedName::is_known));
            if !namer.was_below(&key, name, &self.below) {
                continue;
            }
            let place = namer.place(&key, name, &self.below);
            folders.add(place, &counts, processes.get(&key).into_iter().flatten().cloned());
        }
        let mut lost = self.lost()?;
        lost.extend((nowhere > 0).then_some((NOWHERE, nowhere)));
        let processes_left = self.processes_alive()?;
        let metadata = self.metadata()?;
        let (folders, blind) = (folders.all(), self.blind);
        Ok(TraceReport { folders, programs, metadata, blind, lost, processes_left })
    }

    /// Returns the changes of metadata, if they are counted.
    fn metadata(&self) -> io::Result<Option<MetadataTime>> {
        if !self.has_metadata {
            return Ok(None);
        }
        let [calls, ns] = self.count("metadata", 0)?;
        Ok(Some(MetadataTime { calls, ns }))
    }

    fn named_programs(&self) -> io::Result<Vec<(String, IoCounts)>> {
        let mut programs = Vec::new();
        for (name, counts) in counted::<[u8; 16]>(&self.programs, "programs")? {
            let forgotten = self.forgotten.programs.get(&name).copied().unwrap_or_default();
            let counts = counts.since(&forgotten);
            if !counts.is_nothing() {
                programs.push((program_name(&name), counts));
            }
        }
        Ok(programs)
    }

    fn processes(&self) -> io::Result<BTreeMap<Key, BTreeSet<ProcessIo>>> {
        let all: KernelMap<_, InFolder, [u8; 16]> = map(&self.programs, "processes")?;
        let mut by_folder: BTreeMap<Key, BTreeSet<ProcessIo>> = BTreeMap::new();
        for entry in all.iter() {
            let (InFolder { folder, id }, name) = entry.map_err(|error| kernel_error(&error))?;
            let process = ProcessIo { name: program_name(&name), id: id as u32 };
            by_folder.entry(folder).or_default().insert(process);
        }
        Ok(by_folder)
    }

    pub(super) fn lost(&self) -> io::Result<Vec<(&'static str, u64)>> {
        let mut lost = Vec::new();
        for (place, what) in (0..).zip(LOST) {
            let count: u64 = self.count("lost", place)?;
            if count > 0 {
                lost.push((what, count));
            }
        }
        Ok(lost)
    }
}

fn blind_spots(scope: Scope<'_>) -> Vec<String> {
    let mut blind = vec!["what programs of 32 bits do".to_owned()];
    if scope.is_flush_trace {
        blind.extend([
            "how long a flush or a synced write by libaio takes".to_owned(),
            "RWF_SYNC and RWF_DSYNC in requests of io_uring".to_owned(),
            "calls that had not ended".to_owned(),
        ]);
    } else {
        // The log has them, without a folder.
        let is_logged = !scope.logged.is_empty();
        let no_folder = "an msync, and a sync of all file systems at once".to_owned();
        blind.extend((!is_logged).then_some(no_folder));
        blind.extend([
            "how long a program waits for a page that it has mapped".to_owned(),
            if scope.counts_metadata() {
                "how long it takes to look up, to list and to close files".to_owned()
            } else {
                "how long it takes to make, to truncate and to remove files".to_owned()
            },
            "how long libaio takes, and the bytes of its vectored requests".to_owned(),
            "misses of threads of the kernel".to_owned(),
        ]);
    }
    if scope.mark != 0 {
        blind.push("what servers do for the command that it has not started".to_owned());
    } else if own_process().is_none() {
        blind
            .push("which process is fsure itself, so that its own operations count too".to_owned());
    }
    blind
}

fn ring(programs: &mut Ebpf, name: &str) -> io::Result<RingBuf<MapData>> {
    let ring = programs.take_map(name).and_then(|map| RingBuf::try_from(map).ok());
    ring.ok_or_else(|| io::Error::other("no map for what is reported"))
}

/// Puts the object right for this kernel, and makes its maps.
fn load(types: &Btf, scope: Scope<'_>, sizes: &[(&str, u32)]) -> io::Result<Ebpf> {
    // Before Linux 5.11 maps count as locked memory, of which 64 KiB are free.
    let all = rustix::process::Rlimit { current: None, maximum: None };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Memlock, all);
    let mut operations = match (scope.is_flush_trace, scope.logged) {
        (true, _) => syscalls::flushing(),
        (false, []) => syscalls::counted(),
        (false, _) => syscalls::logged(),
    };
    if scope.counts_metadata() {
        syscalls::add_metadata(&mut operations);
    }
    let changes = syscalls::flags_that_change();
    let is_flush_trace = u32::from(scope.is_flush_trace);
    let logged_operations = call_log::mask(scope.logged);
    let counts_programs = u32::from(scope.counts_programs);
    // No program has the number 0.
    let (own, page) = (own_process().unwrap_or(0), rustix::param::page_size() as u32);
    let (direct, data_synced) = (libc::O_DIRECT as u32, libc::O_DSYNC as u32);
    let synced = libc::O_SYNC as u32 & !data_synced;
    let mark_call = command::MARK_CALL as u32;
    let mut loader = EbpfLoader::new();
    if logged_operations != 0 {
        loader.map_max_entries("logged_calls", call_log::RING_BYTES);
    }
    for (map, entries) in sizes {
        loader.map_max_entries(map, *entries);
    }
    loader
        .btf(Some(types))
        .override_global("operations", &operations, true)
        .override_global("own_process", &own, true)
        .override_global("page_size", &page, true)
        .override_global("o_direct", &direct, true)
        .override_global("o_dsync", &data_synced, true)
        .override_global("o_sync", &synced, true)
        .override_global("o_changes", &changes, true)
        .override_global("mark", &scope.mark, true)
        .override_global("mark_call", &mark_call, true)
        .override_global("is_flush_trace", &is_flush_trace, true)
        .override_global("logged_operations", &logged_operations, true)
        .override_global("counts_programs", &counts_programs, true)
        .load(aya::include_bytes_aligned!("../../../../bpf/hot.bpf.o"))
        .map_err(|error| kernel_error(&error))
}

/// The number by which the kernel's programs know this process, to leave it out;
/// `None` in a PID namespace, where it has another one that is not known.
fn own_process() -> Option<u32> {
    /// `PROC_PID_INIT_INO`, which no later namespace gets.
    const FIRST: &str = "pid:[4026531836]";
    let space = std::fs::read_link("/proc/self/ns/pid").ok()?;
    (space.as_os_str() == FIRST).then(std::process::id)
}

fn attach(
    programs: &mut Ebpf,
    name: &str,
    point: &str,
    types: &Btf,
) -> std::result::Result<(), ProgramError> {
    let program = programs.program_mut(name).ok_or(ProgramError::NotLoaded)?;
    let program: &mut BtfTracePoint = program.try_into()?;
    let mut attempts = 0;
    while let Err(error) = program.load(point, types) {
        // The kernel leaves off to look through a program when a signal comes.
        attempts += 1;
        if attempts == LOAD_ATTEMPTS_MAX || kernel_error(&error).kind() != io::ErrorKind::WouldBlock
        {
            return Err(error);
        }
    }
    program.attach()?;
    Ok(())
}

fn map<'a, K: Pod, V: Pod>(
    programs: &'a Ebpf,
    name: &str,
) -> io::Result<KernelMap<&'a MapData, K, V>> {
    let map = programs.map(name).ok_or_else(|| io::Error::other("no map"))?;
    map.try_into().map_err(|error: MapError| kernel_error(&error))
}

/// Returns what is counted in a map, by its key.
fn counted<K: Pod>(programs: &Ebpf, name: &str) -> io::Result<Vec<(K, IoCounts)>> {
    let counted: KernelMap<_, K, InKernel> = map(programs, name)?;
    let entry = |entry: Result<(K, InKernel), MapError>| {
        let (key, InKernel { counts, .. }) = entry.map_err(|error| kernel_error(&error))?;
        Ok((key, counts_of(counts)))
    };
    counted.iter().map(entry).collect()
}

fn counts_of(counts: [u64; 12]) -> IoCounts {
    let [reads, bytes_read, read_ns, writes, bytes_written, write_ns, rest @ ..] = counts;
    let [fsyncs, fsync_ns, synced_write_ns, bytes_missed, missed_ns, bytes_mapped] = rest;
    IoCounts {
        reads,
        bytes_read,
        read_ns,
        writes,
        bytes_written,
        write_ns,
        fsyncs,
        fsync_ns,
        synced_write_ns,
        bytes_missed,
        missed_ns,
        bytes_mapped,
    }
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, why)
}

/// Returns the system's error, without the log of its verifier, which has thousands of
/// lines.
fn kernel_error(error: &(dyn Error + 'static)) -> io::Error {
    let mut cause = Some(error);
    while let Some(this) = cause {
        if let Some(io) = this.downcast_ref::<io::Error>() {
            let words = format!("the kernel refuses fsure's eBPF programs: {io}");
            return io::Error::new(io.kind(), words);
        }
        cause = this.source();
    }
    io::Error::other(format!("the kernel refuses fsure's eBPF programs: {error}"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::host::did_not_run;

    #[test]
    fn what_is_read_has_the_size_of_what_is_written() {
        assert_eq!(size_of::<Key>(), 24);
        assert_eq!(size_of::<InKernel>(), 12 * 8 + 8);
        assert_eq!(size_of::<InFolder>(), 32);
        let counts = counts_of([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        assert_eq!((counts.reads, counts.writes, counts.fsyncs), (1, 4, 7));
        assert_eq!((counts.bytes_missed, counts.bytes_mapped), (10, 12));
    }

    #[test]
    fn a_full_map_is_reported() {
        let sizes = [("folders", 1), ("processes", 1)];
        let mut kernel = match Kernel::with_map_sizes(Scope::default(), &sizes) {
            Ok(kernel) => kernel,
            Err(error) => return did_not_run("a_full_map_is_reported", &error.to_string()),
        };
        let folder = tempfile::tempdir().unwrap();
        let script = "mkdir a b; for name in a/1 a/2 b/1; do echo x > $name; cat $name; done";
        for _ in 0..3 {
            let mut shell = Command::new("sh");
            shell.args(["-c", script]).current_dir(folder.path());
            assert!(shell.output().is_ok());
        }
        kernel.watch(Duration::ZERO).unwrap();
        let seen = kernel.end(None).unwrap();
        assert!(seen.folders.len() <= 1, "{:?}", seen.folders);
        let lost =
            |what| seen.lost.iter().any(|(kernel_error, count)| kernel_error == what && *count > 0);
        assert!(lost(&LOST[0]), "{:?}", seen.lost);
    }
}
