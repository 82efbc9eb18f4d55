//! `fsure powercut` on simulated drives with real file systems on them, by the
//! command as a user would run it: after a cut an honest drive passes every
//! check, whatever survives of what was in flight, and each that lies fails.
#![cfg(target_os = "linux")]

use crate::support;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::noise::undisturbed;
use crate::support::or_skip;
use crate::support::powercut::{
    Talking, acked, check, sum, witness, witness_again, witnessed_writes,
};
use fsure_core::Random;
use fsure_os::fuse_disk::VirtualDisk;
use fsure_os::loop_mount::{FileSystem, LoopMount, MountArea, format};
use fsure_os::process_tree::{Ended, ProcessTree, Task};
use fsure_simdrive::LiveDrive;
use fsure_simdrive::{Behavior, CutVariant, Image, Traits};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const SIZE: u64 = 320 << 20;
/// Acknowledged writes before a cut.
const ENOUGH: u64 = 150;
/// Bytes that a drive holds back when it is cut.
const LIE: u64 = 128 << 10;

struct Laboratory {
    home: tempfile::TempDir,
    site: Arc<MountArea>,
    witness: Talking,
    address: String,
}

impl Laboratory {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("make a folder");
        let program = Path::new(env!("CARGO_BIN_EXE_fsure"));
        let stands = home.path().join("stands");
        std::fs::create_dir(&stands).expect("make a folder");
        let site = MountArea::create(&stands, program).expect("make a site");
        let (witness, address) = witness(home.path(), "127.0.0.1:0");
        Self { home, site, witness, address }
    }

    /// A drive with an empty file system on it.
    fn formatted(&self, system: FileSystem) -> Result<Image, String> {
        let drive = Arc::new(LiveDrive::new(Traits::new(Behavior::Protected), Image::new(SIZE)));
        format(&self.site, drive.clone(), system).map_err(|error| error.to_string())?;
        Ok(drive.cut(CutVariant::None, &mut Random::new(1)))
    }

    fn mount(&self, drive: &Arc<LiveDrive>, system: FileSystem) -> Result<LoopMount, String> {
        let mounted = LoopMount::mount(&self.site, drive.clone(), system, "");
        mounted.map_err(|error| error.to_string())
    }

    /// Starts `fsure powercut ROLE` in the file system of a stand; its lines of
    /// JSON are kept.
    fn start(&self, stand: &LoopMount, role: &str, address: &str, more: &[&str]) -> Started {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&lines);
        let keep = move |line: &[u8]| {
            let line: Value = serde_json::from_slice(line).expect("JSON");
            if line["type"] != "start" {
                kept.lock().unwrap().push(line);
            }
        };
        let place = stand.place().to_str().expect("UTF-8");
        let args = ["powercut", role, place, "--json", "--witness", address];
        let program = env!("CARGO_BIN_EXE_fsure");
        let command = [&[program][..], &args, more].concat();
        let task = Task {
            command: command.into_iter().map(Into::into).collect(),
            environment: vec![("XDG_STATE_HOME".to_owned(), self.home.path().join("state").into())],
            folder: PathBuf::from("/"),
        };
        let complain = |line: &[u8]| {
            // Beside what a failed test shows: what the command has to say.
            let _ = writeln!(std::io::stderr(), "{}", String::from_utf8_lossy(line));
        };
        let family = stand.spawn(&task, Box::new(keep), Box::new(complain));
        (family.expect("start fsure"), lines)
    }

    /// Writes until enough was acknowledged and it is time. The writer, which goes
    /// on, and its run.
    fn write(
        &self,
        stand: &LoopMount,
        is_time: impl Fn() -> bool,
        more: &[&str],
    ) -> (ProcessTree, String) {
        let (mut family, lines) = self.start(stand, "write", &self.address, more);
        loop {
            std::thread::sleep(Duration::from_millis(20));
            assert!(family.try_wait().expect("ask").is_none(), "{:?}", lines.lock().unwrap());
            let first = lines.lock().unwrap().first().cloned();
            let Some(run) = first.and_then(|line| Some(line["run"].as_str()?.to_owned())) else {
                continue;
            };
            // Of another machine's view: there is no such folder here.
            let reported = check(self.home.path(), stand.place(), &self.address, &["--run", &run]);
            if acked(&reported.0) >= ENOUGH && is_time() {
                return (family, run);
            }
        }
    }

    /// Copies what the witness has logged so far, for another witness to report: the medium
    /// must hold all of it after this, whatever the writer goes on to do.
    fn remember(&self) -> tempfile::TempDir {
        let home = tempfile::tempdir().expect("make a folder");
        let copy = home.path().join("witness");
        std::fs::create_dir(&copy).expect("make a folder");
        for log in self.home.path().join("witness").read_dir().expect("list it") {
            let log = log.expect("a name");
            std::fs::copy(log.path(), copy.join(log.file_name())).expect("copy a log");
        }
        home
    }

    /// Checks a run on the image that a cut has left.
    fn check(&self, (witness_home, image): Cutting, system: FileSystem, run: &str) -> Checked {
        let (_witness, address) = witness(witness_home.path(), "127.0.0.1:0");
        let drive = Arc::new(LiveDrive::new(Traits::new(Behavior::Protected), image));
        let stand = match self.mount(&drive, system) {
            Ok(stand) => stand,
            Err(words) => return Checked::Unmountable { why: words },
        };
        let (ended, lines) = ended(self.start(&stand, "check", &address, &["--run", run]));
        Checked::Code(ended, lines)
    }
}

/// Waits for the end of a process and returns its exit code and all its lines.
fn ended((mut family, lines): Started) -> (i32, Vec<Value>) {
    let code = loop {
        match family.try_wait().expect("ask") {
            Some(Ended::Code(code)) => break code,
            // Or a code that says as much.
            Some(Ended::Signal(signal)) => break 128 + signal,
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let lines = lines.lock().unwrap().clone();
    (code, lines)
}

/// A process, and the lines that it prints.
type Started = (ProcessTree, Arc<Mutex<Vec<Value>>>);
/// The log of a witness, and the image that a later cut has left.
type Cutting = (tempfile::TempDir, Image);

#[derive(Debug)]
enum Checked {
    Code(i32, Vec<Value>),
    /// The image does not mount: all of it is lost.
    Unmountable {
        why: String,
    },
}

/// Tests if a drive keeps its promise: one run, and all kinds of cuts at its end.
fn try_drive(test: &str, kind: &str, system: FileSystem, cuts: &[CutVariant]) {
    try_patterns(test, kind, system, cuts, "overwrite,append,create,rename");
}

fn try_patterns(test: &str, kind: &str, system: FileSystem, cuts: &[CutVariant], patterns: &str) {
    undisturbed(test, || {
        let laboratory = Laboratory::new();
        let Some(image) = or_skip(test, laboratory.formatted(system)) else { return };
        let behavior: Behavior = kind.parse().expect("a drive");
        let drive = Arc::new(LiveDrive::new(Traits::new(behavior), image));
        let Some(stand) = or_skip(test, laboratory.mount(&drive, system)) else { return };
        let is_true = matches!(behavior, Behavior::Honest | Behavior::Protected);
        let methods = "fsync,fdatasync,dsync,rwf-dsync,io-uring";
        // While the writer rests a drive that only delays has caught up: then the cut
        // proves nothing, which is why it takes several.
        let waits = || drive.with(|drive, now| drive.volatile_bytes(now)) >= LIE;
        let what = ["--methods", methods, "--patterns", patterns];
        let (writer, run) = laboratory.write(&stand, || is_true || waits(), &what);
        let cut = |cut: &CutVariant| (laboratory.remember(), drive.cut(*cut, &mut Random::new(7)));
        let images: Vec<_> = cuts.iter().map(cut).collect();
        drop(writer);
        drop(stand);
        for (cut, image) in cuts.iter().zip(images) {
            let checked = laboratory.check(image, system, &run);
            let name = format!("{kind} {} {}", system.name(), cut.name());
            match (&checked, is_true) {
                (Checked::Code(0, lines), true) => {
                    let last = lines.last().expect("a summary");
                    assert_eq!((&last["state"], &last["failed"]), (&"passed".into(), &0.into()));
                    assert!(acked(lines) >= ENOUGH, "{name}: {lines:?}");
                    // A loop device is not a drive, whatever lies below it.
                    assert!(last["device"].is_null() && last["cuts"].is_null(), "{name}: {last}");
                }
                (Checked::Code(3, lines), false) => {
                    let faults = ["lost", "old", "torn"].map(|what| sum(lines, what));
                    assert!(faults.iter().sum::<u64>() > 0, "{name}: {lines:?}");
                    let ages = lines.iter().filter_map(|line| line["oldest_lost_ms"].as_u64());
                    assert!(ages.max().is_some(), "{name}: {lines:?}");
                }
                (Checked::Unmountable { .. }, false) => {}
                // Its superblock has 4 KiB and is written with every commit: that says
                // nothing of what was acknowledged.
                (Checked::Unmountable { why }, true)
                    if system == FileSystem::Btrfs && *cut == CutVariant::Torn =>
                {
                    support::skip(
                        "one torn cut on btrfs",
                        &format!("its superblock was torn: {why}"),
                    );
                }
                _ => panic!("{name}: {checked:?}"),
            }
        }
        assert!(
            !laboratory.home.path().join("state/fsure/powercut.jsonl").exists(),
            "nothing is kept"
        );
    });
}

#[test]
fn an_honest_drive_passes_whatever_survives() {
    try_drive("an honest drive", "honest", FileSystem::Ext4, &CutVariant::ALL);
}

#[test]
fn an_honest_drive_passes_with_xfs_and_btrfs() {
    for system in [FileSystem::Xfs, FileSystem::Btrfs] {
        let cuts = [CutVariant::None, CutVariant::Torn];
        try_drive("an honest drive with xfs, btrfs", "honest", system, &cuts);
    }
}

/// Of a name, only the last that was acknowledged has no flush of another write
/// behind it.
#[test]
fn an_honest_drive_keeps_the_last_name() {
    for system in [FileSystem::Ext4, FileSystem::Xfs] {
        try_patterns("the last name", "honest", system, &[CutVariant::None; 5], "rename");
    }
}

#[test]
fn a_protected_drive_passes() {
    try_drive(
        "a protected drive",
        "plp",
        FileSystem::Ext4,
        &[CutVariant::None, CutVariant::Random],
    );
}

#[test]
fn a_lying_drive_fails() {
    try_drive("a lying drive", "lying", FileSystem::Ext4, &[CutVariant::None]);
}

#[test]
fn a_drive_that_lies_for_a_while_fails() {
    try_drive("a drive that lies for a second", "lying:1s", FileSystem::Ext4, &[CutVariant::None]);
}

#[test]
fn a_drive_that_defers_fails() {
    let cuts = [CutVariant::None, CutVariant::Random];
    try_drive("a drive that defers", "defer:2s", FileSystem::Ext4, &cuts);
}

/// A drive that takes so long over each flush.
struct Slow {
    drive: LiveDrive,
    flush_ms: AtomicU64,
}

impl VirtualDisk for Slow {
    fn size(&self) -> u64 {
        self.drive.size()
    }

    fn read(&self, offset: u64, target: &mut [u8]) -> std::io::Result<()> {
        self.drive.read(offset, target)
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        self.drive.write(offset, data)
    }

    fn flush(&self) -> std::io::Result<()> {
        std::thread::sleep(Duration::from_millis(self.flush_ms.load(Ordering::Relaxed)));
        self.drive.flush()
    }
}

/// To end takes as long as the drive does: for a flush that is under way, too.
#[test]
fn a_writer_on_a_slow_drive_that_ends_without_its_witness_was_not_cut() {
    let (test, laboratory) = ("a writer on a slow drive", Laboratory::new());
    let system = FileSystem::Ext4;
    let Some(image) = or_skip(test, laboratory.formatted(system)) else { return };
    let drive = LiveDrive::new(Traits::new(Behavior::Honest), image);
    let drive = Arc::new(Slow { drive, flush_ms: AtomicU64::new(0) });
    let mounted = LoopMount::mount(&laboratory.site, drive.clone(), system, "");
    let Some(stand) = or_skip(test, mounted.map_err(|error| error.to_string())) else { return };
    let writer = laboratory.start(&stand, "write", &laboratory.address, &["--methods", "fsync"]);
    let run = loop {
        let first = writer.1.lock().unwrap().first().cloned().unwrap_or_default();
        match first["run"].as_str() {
            Some(run) if witnessed_writes(laboratory.home.path(), run) > 0 => break run.to_owned(),
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    drive.flush_ms.store(3_000, Ordering::Relaxed);
    // It waits for such a flush by now.
    std::thread::sleep(Duration::from_millis(500));
    let witness = Pid::from_child(&laboratory.witness.child);
    kill_process(witness, Signal::KILL).expect("kill the witness");
    let place = stand.place().to_str().expect("UTF-8");
    kill_process(process_of(&["powercut", "write", place]), Signal::INT).expect("ask it to end");
    assert_eq!(ended(writer).0, 130);
    drive.flush_ms.store(0, Ordering::Relaxed);
    let _second = witness_again(laboratory.home.path(), &laboratory.address);
    let check = laboratory.start(&stand, "check", &laboratory.address, &["--run", &run]);
    let (code, lines) = ended(check);
    let why = lines[0]["why"].as_str().unwrap_or_default();
    assert!(code == 5 && why.contains("the writer ended by itself"), "{code}: {lines:?}");
}

/// The process that has these arguments, and no more before them than its name.
fn process_of(arguments: &[&str]) -> Pid {
    let mut processes = std::fs::read_dir("/proc").expect("list").flatten();
    let is_it = |entry: &std::fs::DirEntry| {
        let line = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
        line.split('\0').skip(1).take(arguments.len()).eq(arguments.iter().copied())
    };
    let found = processes.find(is_it).expect("a process").file_name().into_string();
    Pid::from_raw(found.expect("a number").parse().expect("a number")).expect("a number")
}
