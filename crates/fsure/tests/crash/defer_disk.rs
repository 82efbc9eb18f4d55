//! `defer` on a disk of the test, which counts its flushes, takes its time over them
//! and fails when it is told to: what was really asked of the disk says whether
//! a call was deferred, and when the bound is in danger.
#![cfg(target_os = "linux")]

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::committer::committer;
use crate::support::noise::undisturbed;
use crate::support::skip;
use fsure_os::fuse_disk::VirtualDisk;
use fsure_os::loop_mount::{FileSystem, LoopMount, MountArea, format};
use fsure_os::process_tree::{Ended, ProcessTree, Task};
use fsure_simdrive::Image;
use serde_json::Value;
use tempfile::TempDir;

/// A disk in memory.
struct Disk {
    content: Mutex<Image>,
    flushes: AtomicU64,
    flush_ms: AtomicU64,
    is_broken: AtomicBool,
}

impl Disk {
    fn flushes(&self) -> u64 {
        self.flushes.load(Ordering::SeqCst)
    }

    /// Until it has got one more.
    fn wait_for_flush(&self, before: u64) {
        while self.flushes() <= before {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn is_well(&self) -> io::Result<()> {
        let is_broken = self.is_broken.load(Ordering::SeqCst);
        if is_broken { Err(io::Error::from_raw_os_error(5)) } else { Ok(()) }
    }
}

impl VirtualDisk for Disk {
    fn size(&self) -> u64 {
        self.content.lock().unwrap().size()
    }

    fn read(&self, offset: u64, target: &mut [u8]) -> io::Result<()> {
        self.content.lock().unwrap().read(offset, target).unwrap();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.is_well()?;
        self.content.lock().unwrap().write(offset, data).unwrap();
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        self.is_well()?;
        std::thread::sleep(Duration::from_millis(self.flush_ms.load(Ordering::SeqCst)));
        self.flushes.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// The disk with a file system on it, and the programs.
struct Bench {
    disk: Arc<Disk>,
    stand: LoopMount,
    /// With a loader, and without.
    programs: [PathBuf; 2],
    _folder: TempDir,
}

const SYSTEMS: [(FileSystem, &str); 2] =
    [(FileSystem::Ext4, "data=journal"), (FileSystem::Btrfs, "flushoncommit,notreelog")];

impl Bench {
    /// `None`, and said so, where this machine cannot.
    fn new(test: &str, system: FileSystem, options: &str) -> Option<Self> {
        Self::try_new(system, options).inspect_err(|why| skip(test, why)).ok()
    }

    fn try_new(system: FileSystem, options: &str) -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let programs = [committer(folder.path(), false)?, committer(folder.path(), true)?];
        let disk = Arc::new(Disk {
            content: Mutex::new(Image::new(320 << 20)),
            flushes: AtomicU64::new(0),
            flush_ms: AtomicU64::new(0),
            is_broken: AtomicBool::new(false),
        });
        let own = Path::new(env!("CARGO_BIN_EXE_fsure"));
        let site = MountArea::create(folder.path(), own).map_err(|error| error.to_string())?;
        format(&site, disk.clone(), system).map_err(|error| error.to_string())?;
        let stand = LoopMount::mount(&site, disk.clone(), system, options);
        let stand = stand.map_err(|error| error.to_string())?;
        Ok(Self { disk, stand, programs, _folder: folder })
    }

    /// Starts `fsure defer` with these options for this command.
    fn start(&self, options: &[&str], command: &[&str]) -> Running {
        let own = env!("CARGO_BIN_EXE_fsure");
        let all = [&[own, "--json", "defer"], options, &["--"], command].concat();
        self.start_plain(&all)
    }

    fn start_plain(&self, command: &[&str]) -> Running {
        let task = Task {
            command: command.iter().map(Into::into).collect(),
            environment: Vec::new(),
            folder: self.stand.place().to_owned(),
        };
        let (line, lines) = channel();
        let error = line.clone();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let family = self.stand.spawn(
            &task,
            Box::new(move |bytes| drop(line.send(text(bytes)))),
            Box::new(move |bytes| drop(error.send(format!("stderr: {}", text(bytes))))),
        );
        Running { family: family.unwrap(), lines, seen: Vec::new() }
    }

    fn run(&self, options: &[&str], command: &[&str]) -> Done {
        self.start(options, command).wait()
    }

    fn program(&self, is_static: bool) -> &str {
        self.programs[usize::from(is_static)].to_str().unwrap()
    }
}

struct Running {
    family: ProcessTree,
    lines: Receiver<String>,
    seen: Vec<String>,
}

struct Done {
    code: i32,
    lines: Vec<String>,
    /// Longest delay with which a sleep ended meanwhile.
    late: Duration,
}

impl Running {
    fn wait_for(&mut self, part: &str) {
        while !self.seen.last().is_some_and(|line| line.contains(part)) {
            let next = self.lines.recv();
            self.seen.push(next.unwrap_or_else(|_| panic!("no {part} in {:?}", self.seen)));
        }
    }

    /// Returns all lines that were printed so far.
    fn printed(&mut self) -> &[String] {
        self.seen.extend(self.lines.try_iter());
        &self.seen
    }

    fn wait(mut self) -> Done {
        let mut late = Duration::ZERO;
        let code = loop {
            match self.family.try_wait().unwrap() {
                Some(Ended::Code(code)) => break code,
                Some(Ended::Signal(signal)) => break 128 + signal,
                None => {
                    let (pause, began) = (Duration::from_millis(5), Instant::now());
                    std::thread::sleep(pause);
                    late = late.max(began.elapsed() - pause);
                }
            }
        };
        drop(self.family);
        self.seen.extend(self.lines.iter());
        Done { code, lines: self.seen, late }
    }
}

impl Done {
    fn summary(&self) -> Value {
        let line = self.lines.iter().rev().find(|line| line.starts_with('{'));
        serde_json::from_str(line.unwrap_or_else(|| panic!("{:?}", self.lines))).unwrap()
    }

    fn number(&self, name: &str) -> f64 {
        self.summary()[name].as_f64().unwrap()
    }

    /// Returns true if nothing acknowledged stayed volatile for more than a second, plus an
    /// allowance for a machine that wakes the flushing thread late.
    fn is_held(&self) -> bool {
        self.number("largest_lag_ms") <= 1_000.0 + 4_000.0 * self.late.as_secs_f64()
    }

    /// Returns true if a flush took longer than the promise allows for a bound of a second,
    /// as can happen on a busy machine and cannot be foreseen; reports a skip then.
    fn is_busy(&self, test: &str) -> bool {
        let flush = self.number("longest_flush_ms");
        let is_busy = flush > 500.0;
        if is_busy {
            skip(test, &format!("busy: a flush took {flush} ms"));
        }
        is_busy
    }
}

#[test]
fn calls_return_at_once_and_few_flushes_reach_the_disk() {
    undisturbed("calls return at once and few flushes reach the disk", || {
        for (system, options) in SYSTEMS {
            let name = format!("calls return at once on {}", system.name());
            let Some(bench) = Bench::new(&name, system, options) else { continue };
            bench.disk.flush_ms.store(20, Ordering::SeqCst);
            let backends = [(false, "auto", "preload"), (true, "auto", "seccomp")];
            for (is_static, given, used) in
                [&backends[..], &[(false, "seccomp", "seccomp")]].concat()
            {
                let before = bench.disk.flushes();
                let command = [bench.program(is_static), "file", "500", "0", "4"];
                let done = bench.run(&["--max-loss", "1s", "--backend", given], &command);
                assert_eq!(done.code, 0, "{:?}", done.lines);
                assert_eq!(done.summary()["backend"], used);
                assert_eq!(done.number("deferred") + done.number("waited"), 2_000.0);
                if done.is_busy(&name) {
                    continue;
                }
                assert!(done.number("deferred") >= 1_900.0, "{:?}", done.lines);
                assert!(done.is_held(), "{:?}: {:?}", done.late, done.lines);
                let flushes = bench.disk.flushes() - before;
                assert!((1..200).contains(&flushes), "{flushes} for {:?}", done.lines);
            }
        }
    });
}

/// A flush of the file system is several of the disk's: where half of the time is
/// not enough for it, calls wait.
#[test]
fn the_bound_holds_where_flushes_are_slow() {
    undisturbed("the bound holds where flushes are slow", || {
        let (system, options) = SYSTEMS[0];
        let Some(bench) = Bench::new("slow flushes", system, options) else { return };
        for (flush_ms, calls) in [(20, "100"), (60, "100"), (300, "3")] {
            bench.disk.flush_ms.store(flush_ms, Ordering::SeqCst);
            let command = [bench.program(false), "file", calls, "20", "2"];
            let done = bench.run(&["--max-loss", "1s"], &command);
            assert_eq!(done.code, 0, "{:?}", done.lines);
            let is_held = done.is_held();
            if !is_held && done.is_busy("the bound") {
                continue;
            }
            assert!(is_held, "{flush_ms} ms: {:?}", done.lines);
            // What a busy machine makes of the others is not known.
            assert!(flush_ms < 300 || done.number("waited") > 0.0, "{:?}", done.lines);
        }
    });
}

#[test]
fn after_a_failed_flush_every_call_fails() {
    undisturbed("after a failed flush every call fails", || {
        let (system, options) = SYSTEMS[0];
        for backend in ["preload", "seccomp"] {
            let Some(bench) = Bench::new("a failed flush", system, options) else { return };
            let script = "echo begun; echo > file; while sync -d file; do sleep 0.01; done; \
                      for n in 1 2 3; do sync -d file && exit 8; done; exit 9";
            let options = ["--max-loss", "1s", "--backend", backend];
            let mut running = bench.start(&options, &["sh", "-c", script]);
            // Others are made before the command runs.
            running.wait_for("begun");
            (0..3).for_each(|_| bench.disk.wait_for_flush(bench.disk.flushes()));
            bench.disk.is_broken.store(true, Ordering::SeqCst);
            let done = running.wait();
            if done.number("waited") > 0.0 && done.number("command_exit") != 9.0 {
                // A real call failed, before a flush behind it did.
                skip("a failed flush", "busy: calls had to wait");
                continue;
            }
            assert_eq!((done.code, done.number("command_exit")), (3, 9.0), "{:?}", done.lines);
            assert!(done.summary()["failure"].is_string(), "{:?}", done.lines);
            assert!(done.number("refused") >= 3.0, "{:?}", done.lines);
        }
    });
}

/// Sends a signal to the process that defers for a program.
fn signal_supervisor(signal: &str, program: &str) {
    let names_it =
        |word: &&[u8]| word.windows(program.len()).any(|part| part == program.as_bytes());
    let mut killed = 0;
    for process in std::fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let words: Vec<_> = line.split(|byte| *byte == 0).collect();
        if words.get(2) == Some(&&b"defer"[..]) && words.iter().any(names_it) {
            let id = process.file_name().into_string().unwrap();
            let kill = Command::new("kill").args(["-s", signal, &id]).status();
            killed += usize::from(kill.unwrap().success());
        }
    }
    assert_eq!(killed, 1);
}

#[test]
fn nothing_is_acknowledged_into_the_void() {
    undisturbed("nothing is acknowledged into the void", || {
        let (system, options) = SYSTEMS[0];
        let Some(bench) = Bench::new("a supervisor that is killed", system, options) else {
            return;
        };
        // One call, and then nothing: what outlives the dead one flushes it.
        let own = env!("CARGO_BIN_EXE_fsure");
        let defer =
            format!("{own} --json defer --max-loss 1h -- {} one 1 0 1 stay", bench.program(false));
        let mut running = bench.start_plain(&["sh", "-c", &format!("{defer}; sleep 1000")]);
        running.wait_for("lingers");
        let before = bench.disk.flushes();
        signal_supervisor("KILL", bench.program(false));
        bench.disk.wait_for_flush(before);
        drop(running);
        // Many: from then on each is real, and none fails. Deferred they would be flushed
        // in half an hour.
        let defer = format!(
            "{own} --json defer --max-loss 1h -- {} many 1000000 1 1",
            bench.program(false)
        );
        let mut running = bench.start_plain(&["sh", "-c", &format!("{defer}; sleep 1000")]);
        running.wait_for("begins");
        signal_supervisor("KILL", bench.program(false));
        let before = bench.disk.flushes();
        bench.disk.wait_for_flush(before + 500);
        let failed = running.printed().iter().find(|line| line.contains("failed")).cloned();
        assert_eq!(failed, None);
    });
}

/// Daemons that go on when all is over, and what they start then: no process of fsure
/// answers either, and nothing in their environment gets in the way.
#[test]
fn what_outlives_it_makes_real_calls() {
    undisturbed("what outlives it makes real calls", || {
        let (system, options) = SYSTEMS[0];
        let Some(bench) = Bench::new("what outlives it", system, options) else { return };
        let (own, program) = (env!("CARGO_BIN_EXE_fsure"), bench.program(false));
        for daemon in [
            format!("{program} early 1000000 5 1"),
            format!(
                "while [ ! -e over ]; do sleep 0.02; done; rm over; {program} late 1000000 5 1"
            ),
        ] {
            let defer = format!("{own} --json defer --max-loss 1h -- sh -c '({daemon}) &'");
            let line = format!("rm -f over; {defer}; touch over; echo ended; sleep 1000");
            let mut running = bench.start_plain(&["sh", "-c", &line]);
            running.wait_for("ended");
            let before = bench.disk.flushes();
            bench.disk.wait_for_flush(before + 100);
            let is_wrong = |line: &&String| line.contains("ld.so") || line.contains("failed");
            let complaint = running.printed().iter().find(is_wrong).cloned();
            assert_eq!(complaint, None);
        }
    });
}

/// Under seccomp who is left has to be answered: real calls after the first signal, and
/// no more than that after the second.
#[test]
fn a_process_under_seccomp_can_be_left() {
    undisturbed("who is left under seccomp can be left", || {
        let (system, options) = SYSTEMS[0];
        let Some(bench) = Bench::new("who is left under seccomp", system, options) else { return };
        let program = bench.program(false);
        let command = format!("{program} many 100000 5 1 &");
        let options = ["--max-loss", "1h", "--backend", "seccomp"];
        let mut running = bench.start(&options, &["sh", "-c", &command]);
        running.wait_for("begins");
        let before = bench.disk.flushes();
        signal_supervisor("TERM", program);
        running.wait_for("still run: committer (");
        bench.disk.wait_for_flush(before + 100);
        signal_supervisor("TERM", program);
        let done = running.wait();
        assert_eq!(
            (done.code, &done.summary()["failure"]),
            (143, &Value::Null),
            "{:?}",
            done.lines
        );
    });
}
