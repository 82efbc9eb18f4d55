//! `uncached` as its users meet it: which pages are in memory afterwards, whose exit code is
//! whose, and what becomes of the control group when something is killed or left behind.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use fsure_os::loop_mount::{FileSystem, LoopMount};
use fsure_os::process_tree::Ended;
use fsure_simdrive::{Behavior, Latency, LiveDrive, Traits};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::crash_loop_mount::{formatted, run, site};
use crate::support::cache::{assert_undisturbed, cool, half_warm, pages, warm};
use crate::support::{Run, code, content, fsure, or_skip, serial, skip};

const MIB: u64 = 1 << 20;

/// A folder on the file system of the build, which is none in memory; `None`, and said so,
/// where no control group can be made.
fn folder(test: &str) -> Option<TempDir> {
    let run = fsure(&["uncached", "--", "true"]);
    if run.code == 0 {
        return Some(TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
    }
    assert_eq!(run.code, 2, "{run:?}");
    skip(test, &run.stderr);
    None
}

/// Writes a file and takes it out of the page cache.
fn plant(folder: &Path, name: &str, bytes: u64) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, content(bytes as usize, bytes)).unwrap();
    cool(&path);
    path
}

/// Bytes of a file that are in memory.
fn resident(file: &Path) -> u64 {
    pages(&[file.to_owned()])[file] * rustix::param::page_size() as u64
}

/// Runs a line of `sh` in a folder.
fn uncached(folder: &Path, line: &str) -> Run {
    let folder = folder.to_str().unwrap();
    let line = format!("cd {folder} && {line}");
    fsure(&["--json", "uncached", "--limit", "32M", "--", "sh", "-c", &line])
}

/// The last line, behind all that the command has printed.
fn summary(run: &Run) -> Value {
    let line = run.stdout.lines().last().unwrap_or_else(|| panic!("{}", run.stderr));
    serde_json::from_str(line).unwrap()
}

#[test]
fn what_it_reads_and_writes_is_taken_out_of_memory() {
    let _alone = serial::alone();
    let Some(folder) = folder("what_it_reads_and_writes") else { return };
    let large = plant(folder.path(), "large", 400 * MIB);
    let run = uncached(folder.path(), "cp large copy");
    let summary = summary(&run);
    assert_eq!((run.code, &summary["left"]), (0, &0.into()), "{run:?}");
    for name in ["bytes_read", "bytes_written", "storage_bytes_read"] {
        assert!(summary[name].as_u64() >= Some(400 * MIB), "{summary}");
    }
    let copy = folder.path().join("copy");
    assert_eq!([resident(&large), resident(&copy)], [0; 2]);
    // Pages of a program or a library that another process uses as well might stay.
    assert!(summary["kept"].as_u64() < Some(MIB), "{summary}");
    assert!(std::fs::read(&large).unwrap() == std::fs::read(&copy).unwrap());
}

#[test]
fn it_has_little_in_memory_while_it_runs() {
    let _alone = serial::alone();
    let Some(folder) = folder("it_has_little_in_memory") else { return };
    let large = plant(folder.path(), "large", 800 * MIB);
    assert_undisturbed(|| {
        cool(&large);
        let run = uncached(folder.path(), "cat large > /dev/null");
        let summary = summary(&run);
        let Some(peak) = summary["peak"].as_u64() else { return Ok(()) };
        if peak < 400 * MIB { Ok(()) } else { Err(format!("{summary}")) }
    });
}

/// An empty ext4 on a drive that needs 5 ms for each request to write.
fn slow_drive(folder: &Path) -> Result<LoopMount, String> {
    let area = site(folder);
    let image = formatted(&area, FileSystem::Ext4, 1_000 * MIB)?;
    let latency = Latency { write: Duration::from_millis(5), ..Latency::NONE };
    let traits = Traits { latency, ..Traits::new(Behavior::Protected) };
    let drive = Arc::new(LiveDrive::new(traits, image));
    LoopMount::mount(&area, drive, FileSystem::Ext4, "").map_err(|error| error.to_string())
}

#[test]
fn what_it_writes_faster_than_the_drive_does_not_fill_the_memory() {
    const TEST: &str = "what_it_writes_faster";
    let _alone = serial::alone();
    let Some(folder) = folder(TEST) else { return };
    let Some(drive) = or_skip(TEST, slow_drive(folder.path())) else { return };
    assert_undisturbed(|| {
        let program = env!("CARGO_BIN_EXE_fsure");
        let command = "sh -c 'head -c 700M /dev/zero > file'";
        let line = format!("{program} --json uncached --limit 32M -- {command}; rm file");
        let (ended, output) = run(&drive, &line);
        assert_eq!(ended, Ended::Code(0), "{output}");
        let said: Value = serde_json::from_str(output.lines().last().unwrap()).unwrap();
        let Some(peak) = said["peak"].as_u64() else { return Ok(()) };
        if peak < 350 * MIB { Ok(()) } else { Err(said.to_string()) }
    });
}

#[test]
fn what_was_in_memory_before_stays_there() {
    let _alone = serial::alone();
    let Some(folder) = folder("what_was_in_memory_before") else { return };
    let [whole, half] = ["whole", "half"].map(|name| plant(folder.path(), name, 64 * MIB));
    assert_undisturbed(|| {
        warm(&whole);
        half_warm(&half);
        let before = [resident(&whole), resident(&half)];
        let run = uncached(folder.path(), "cat whole half > /dev/null");
        let after = [resident(&whole), resident(&half)];
        assert_eq!(run.code, 0, "{run:?}");
        if before == after { Ok(()) } else { Err(format!("{before:?}, then {after:?}: {run:?}")) }
    });
}

/// A machine with little memory: a control group in which processes are started.
struct Scarce {
    /// All folders, the outermost first.
    folders: Vec<PathBuf>,
}

impl Scarce {
    /// Makes one with that much memory.
    fn new(bytes: u64) -> std::io::Result<Self> {
        let top = Path::new("/sys/fs/cgroup");
        let name = format!("fsure-test-{}", std::process::id());
        let mut scarce = Self { folders: Vec::new() };
        if std::fs::read_to_string(top.join("cgroup.subtree_control"))
            .is_ok_and(|controllers| controllers.contains("memory"))
        {
            let outer = scarce.add(top.join(name))?;
            std::fs::write(outer.join("memory.max"), bytes.to_string())?;
            std::fs::write(outer.join("cgroup.subtree_control"), "+memory")?;
            // A group with others below it has no processes.
            scarce.add(outer.join("inner"))?;
        } else {
            let own = std::fs::read_to_string("/proc/self/cgroup")?;
            let own = own.lines().find_map(|line| line.split_once(":memory:/"));
            let (_, own) = own.ok_or(std::io::ErrorKind::Unsupported)?;
            let outer = scarce.add(top.join("memory").join(own).join(name))?;
            std::fs::write(outer.join("memory.limit_in_bytes"), bytes.to_string())?;
        }
        Ok(scarce)
    }

    fn add(&mut self, folder: PathBuf) -> std::io::Result<PathBuf> {
        std::fs::create_dir(&folder)?;
        self.folders.push(folder.clone());
        Ok(folder)
    }

    /// Runs a line of `sh` on it, in a folder.
    fn run(&self, folder: &Path, line: &str) {
        let group = self.folders.last().unwrap().join("cgroup.procs");
        let line = format!("echo $$ > {} && {line}", group.display());
        let output = Command::new("sh").args(["-c", &line]).current_dir(folder).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

impl Drop for Scarce {
    fn drop(&mut self) {
        for folder in self.folders.iter().rev() {
            std::fs::remove_dir(folder).unwrap();
        }
    }
}

#[test]
fn files_of_others_stay_in_a_memory_that_is_too_small_for_both() {
    const TEST: &str = "files_of_others_stay";
    const HOT: u64 = 128 * MIB;
    let _alone = serial::alone();
    let Some(folder) = folder(TEST) else { return };
    let large = plant(folder.path(), "large", 1_200 * MIB);
    let hot = plant(folder.path(), "hot", HOT);
    let scarce = match Scarce::new(512 * MIB) {
        Ok(scarce) => scarce,
        Err(error) => return skip(TEST, &format!("no group with little memory: {error}")),
    };
    let left_by = |line: &str| {
        cool(&hot);
        cool(&large);
        // Once, so that the kernel does not take it for a file in constant use.
        scarce.run(folder.path(), "cat hot > /dev/null");
        assert_eq!(resident(&hot), HOT);
        scarce.run(folder.path(), line);
        resident(&hot)
    };
    // The harness before the program: without it the file is pushed out.
    let plain = left_by("cat large > /dev/null");
    assert!(plain < HOT / 2, "a program that reads {large:?} leaves {plain} bytes of it");
    let line =
        format!("{} uncached --limit 32M -- cat large > /dev/null", env!("CARGO_BIN_EXE_fsure"));
    assert_undisturbed(|| match left_by(&line) {
        HOT => Ok(()),
        some => Err(format!("{some} bytes are left of it")),
    });
    // Its own memory is not bounded, and the summary reports that it can push out others.
    // It fits into the group with some room, or the kernel would kill it, and not with the file.
    let hungry = "sh -c 'head -c 430M /dev/zero | tail -c 430M > /dev/null'";
    let line = format!("{} --json uncached -- {hungry} > said", env!("CARGO_BIN_EXE_fsure"));
    assert!(left_by(&line) < HOT);
    let said = std::fs::read_to_string(folder.path().join("said")).unwrap();
    let said: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert!(said["outer_limit_hits"].as_u64() >= Some(1), "{said}");
}

#[test]
fn the_exit_code_is_the_commands() {
    let Some(folder) = folder("the_exit_code") else { return };
    for (line, expected) in [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)] {
        let run = uncached(folder.path(), line);
        assert_eq!((run.code, &summary(&run)["exit_code"]), (expected, &expected.into()));
    }
    let run = fsure(&["uncached", "--", "/nonexistent"]);
    assert_eq!((run.code, run.stdout.as_str()), (127, ""), "{run:?}");
    let run = fsure(&["uncached", "--", folder.path().to_str().unwrap()]);
    assert_eq!(run.code, 126, "{run:?}");
    let run = fsure(&["uncached", "--", "sh", "-c", "echo out; echo err >&2"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "out\n"), "{run:?}");
    assert!(run.stderr.starts_with("err\nfsure: Uncached: "), "{run:?}");
}

/// A command that runs until it is told to end.
struct Waiting {
    fsure: Child,
    /// Its control group, which is gone when all is over.
    group: PathBuf,
}

impl Waiting {
    fn start(folder: &Path, line: &str) -> Self {
        Self::start_prepared(folder, "true", line)
    }

    /// Runs `before` before the command has begun, as the test sees it.
    fn start_prepared(folder: &Path, before: &str, line: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
        command.args(["--quiet", "uncached", "--", "sh", "-c"]).current_dir(folder);
        let line = format!(
            "{before}; cat /proc/self/cgroup > started.tmp; mv started.tmp started; {line}"
        );
        let fsure = command.arg(line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_for("the command begins", || folder.join("started").exists());
        let groups = std::fs::read_to_string(folder.join("started")).unwrap();
        let path = groups.lines().find(|line| line.contains("/fsure-uncached-")).unwrap();
        let (_, path) = path.split_once(":/").unwrap();
        let tops = ["/sys/fs/cgroup", "/sys/fs/cgroup/memory"];
        let group = tops.iter().map(|top| Path::new(top).join(path)).find(|group| group.is_dir());
        Self { fsure, group: group.unwrap() }
    }

    fn keeper(&self) -> Pid {
        let own = self.group.file_name().unwrap().to_str().unwrap();
        let keeper = std::fs::read_dir("/proc").unwrap().find_map(|process| {
            let process = process.unwrap();
            let line = std::fs::read_to_string(process.path().join("cmdline")).ok()?;
            let is_keeper = line.contains("uncached-keep") && line.contains(own);
            is_keeper.then(|| process.file_name().to_str().unwrap().parse().unwrap())
        });
        Pid::from_raw(keeper.unwrap()).unwrap()
    }

    fn signal(&self, signal: Signal) {
        let process = Pid::from_child(&self.fsure);
        kill_process(process, signal).unwrap();
    }
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let began = std::time::Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(300), "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until `end` exists.
const UNTIL_TOLD: &str = "while [ ! -e end ]; do sleep 0.02; done; echo > ended";

#[test]
fn a_signal_is_passed_on() {
    let Some(folder) = folder("a_signal_is_passed_on") else { return };
    let mut run = Waiting::start_prepared(folder.path(), "trap 'exit 9' TERM", UNTIL_TOLD);
    run.signal(Signal::TERM);
    assert_eq!(code(run.fsure.wait().unwrap()), 9);
    assert!(!run.group.exists());
}

#[test]
fn a_command_goes_on_when_fsure_is_killed_and_its_group_is_removed_behind_it() {
    let Some(folder) = folder("a_command_goes_on") else { return };
    let mut run = Waiting::start(folder.path(), UNTIL_TOLD);
    run.signal(Signal::KILL);
    assert_eq!(code(run.fsure.wait().unwrap()), 137);
    assert!(run.group.exists() && !folder.path().join("ended").exists());
    std::fs::write(folder.path().join("end"), "").unwrap();
    wait_for("the command ends", || folder.path().join("ended").exists());
    wait_for("the keeper removes the group", || !run.group.exists());
}

#[test]
fn what_is_left_behind_is_told_and_its_group_is_removed_behind_it() {
    let Some(folder) = folder("what_is_left_behind") else { return };
    plant(folder.path(), "file", 8 * MIB);
    let daemon = format!("({UNTIL_TOLD}) > /dev/null 2>&1 &");
    let run = uncached(folder.path(), &format!("cat file > /dev/null; {daemon}"));
    let said = summary(&run);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(said["left"].as_u64() >= Some(1), "{said}");
    assert!(said["kept"].as_u64() >= Some(8 * MIB), "{said}");
    std::fs::write(folder.path().join("end"), "").unwrap();
    let file = folder.path().join("file");
    wait_for("its cache is given back", || resident(&file) == 0);
}

#[test]
fn a_bound_is_lifted_when_its_keeper_is_killed() {
    let Some(folder) = folder("a_bound_is_lifted") else { return };
    let mut run = Waiting::start(folder.path(), UNTIL_TOLD);
    let knobs = ["memory.high", "memory.limit_in_bytes"].map(|name| run.group.join(name));
    let knob = knobs.iter().find(|knob| knob.exists()).unwrap();
    let bound = || std::fs::read_to_string(knob).unwrap();
    // Not the kernel's word for no bound at all: pages are counted in an i64 of bytes.
    let is_bounded = || bound().trim().parse().is_ok_and(|bytes: u64| bytes < 1 << 60);
    std::fs::write(knob, (200 * MIB).to_string()).unwrap();
    assert!(is_bounded(), "{}", bound());
    kill_process(run.keeper(), Signal::KILL).unwrap();
    wait_for("the bound is lifted", || !is_bounded());
    std::fs::write(folder.path().join("end"), "").unwrap();
    assert_eq!(code(run.fsure.wait().unwrap()), 0);
    assert!(!run.group.exists());
}

#[test]
fn groups_whose_keeper_was_killed_too_are_swept() {
    let Some(folder) = folder("groups_whose_keeper_was_killed") else { return };
    let mut run = Waiting::start(folder.path(), UNTIL_TOLD);
    kill_process(run.keeper(), Signal::KILL).unwrap();
    run.signal(Signal::KILL);
    run.fsure.wait().unwrap();
    assert_eq!(uncached(folder.path(), "true").code, 0);
    assert!(run.group.exists(), "with a process in it");
    std::fs::write(folder.path().join("end"), "").unwrap();
    let procs = run.group.join("cgroup.procs");
    wait_for("the command ends", || std::fs::read_to_string(&procs).unwrap().is_empty());
    assert_eq!(uncached(folder.path(), "true").code, 0);
    assert!(!run.group.exists());
}

#[test]
fn it_is_refused_to_users_without_a_group_of_their_own() {
    const TEST: &str = "it_is_refused_to_users";
    let Some(folder) = folder(TEST) else { return };
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.arg(env!("CARGO_BIN_EXE_fsure")).args(["uncached", "--", "echo", "a b"]);
    let Ok(output) = command.current_dir(folder.path()).output() else {
        return skip(TEST, "there is no setpriv");
    };
    let stderr = String::from_utf8(output.stderr).unwrap();
    if stderr.starts_with("setpriv: ") {
        return skip(TEST, &stderr);
    }
    assert_eq!((code(output.status), &output.stdout[..]), (2, &b""[..]), "{stderr}");
    let remedy = "fsure uncached -- echo 'a b'\n";
    assert!(stderr.ends_with(remedy) && stderr.contains("cannot make a control group"), "{stderr}");
}
