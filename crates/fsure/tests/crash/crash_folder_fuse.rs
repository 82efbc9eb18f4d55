//! A folder that is served by fsure and cut while real programs use it, as root and
//! as the user `nobody`.
#![cfg(target_os = "linux")]

use crate::support;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::or_skip;
use fsure_core::Random;
use fsure_os::loop_mount::MountArea;
use fsure_os::process_tree::{Ended, ProcessTree, Task};
use fsure_simdrive::files::{FileDrive, Mode};
use fsure_simdrive::{Behavior, CutVariant, Latency};
use fsure_simdrive::{LiveFolder, MountedFolder};
use rustix::process::{Pid, Signal, kill_process};

const ROOM: u64 = 1 << 30;
const LYING: Behavior = Behavior::Lying { lag: None };

fn site(folder: &Path) -> Arc<MountArea> {
    MountArea::create(folder, Path::new(env!("CARGO_BIN_EXE_fsure"))).unwrap()
}

fn folder(behavior: Behavior, mode: Mode) -> LiveFolder {
    LiveFolder::new(behavior, mode, Latency::NONE, ROOM)
}

/// A program in a folder, and what it has said so far on both of its outputs.
struct RunningProgram {
    family: ProcessTree,
    lines: Arc<Mutex<Vec<String>>>,
}

fn start(mounted: &MountedFolder, line: &str) -> RunningProgram {
    let lines = Arc::<Mutex<Vec<String>>>::default();
    let listen = || {
        let lines = Arc::clone(&lines);
        let keep = move |line: &[u8]| {
            lines.lock().unwrap().push(String::from_utf8_lossy(line).into_owned());
        };
        Box::new(keep)
    };
    let task = Task {
        command: ["sh", "-c", line].map(Into::into).to_vec(),
        environment: vec![("MNT".to_owned(), mounted.place().into())],
        folder: mounted.place().to_owned(),
    };
    let family = mounted.spawn(&task, listen(), listen()).unwrap();
    RunningProgram { family, lines }
}

impl RunningProgram {
    fn wait(&mut self) -> Ended {
        loop {
            if let Some(ended) = self.family.try_wait().unwrap() {
                return ended;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    /// The highest acknowledgement so far.
    fn acked(&self) -> u64 {
        let lines = self.lines.lock().unwrap();
        let numbers = lines.iter().filter_map(|line| line.strip_prefix("ACK ")?.parse().ok());
        numbers.max().unwrap_or(0)
    }
}

/// Runs a line to its end, which must be a good one; what it said.
fn run(mounted: &MountedFolder, line: &str) -> Vec<String> {
    let mut running = start(mounted, line);
    let ended = running.wait();
    assert_eq!(ended, Ended::Code(0), "{line}: {:?}", running.lines());
    running.lines()
}

fn runs(program: &str) -> Result<(), String> {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    found.is_ok_and(|output| output.status.success()).then_some(()).ok_or(format!("no {program}"))
}

/// Cuts a program while it runs, and says how many acknowledgements each cut
/// has lost: `look` prints the last that is there.
fn losses(site: &Arc<MountArea>, folder: &LiveFolder, program: &str, look: &str) -> Vec<u64> {
    let mounted = folder.mount(site).unwrap();
    let mut running = start(&mounted, program);
    let mut losses = Vec::new();
    for (seed, cut) in (0..).zip(CutVariant::ALL) {
        let (before, begun) = (running.acked(), Instant::now());
        while running.acked() < before + 5 {
            let ended = running.family.try_wait().unwrap();
            assert_eq!(ended, None, "the program ended: {:?}", running.lines());
            assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", running.lines());
            std::thread::sleep(Duration::from_millis(2));
        }
        let acked = running.acked();
        losses.push(acked.saturating_sub(last(
            site,
            folder.cut(cut, &mut Random::new(seed)),
            look,
        )));
    }
    losses
}

/// The last that is there after a cut, as a line finds it.
fn last(site: &Arc<MountArea>, left: FileDrive, look: &str) -> u64 {
    let mounted = LiveFolder::holding(left).mount(site).unwrap();
    let lines = run(&mounted, look);
    lines.last().and_then(|line| line.trim().parse().ok()).unwrap_or(0)
}

/// Appends a line and syncs the file, whose name is synced first.
const APPEND: &str = "touch log; sync log; sync .; n=0; while :; do n=$((n+1)); \
                      echo $n >>log; sync log; echo ACK $n; done";
const LAST: &str = "tail -n1 log 2>&1 || true";
/// Replaces a file by another and syncs that only, or the folder, too.
const RENAME: &str = "n=0; while :; do n=$((n+1)); echo $n >draft; sync draft; \
                      mv draft file; echo ACK $n; done";
const RENAME_SYNCED: &str = "n=0; while :; do n=$((n+1)); echo $n >draft; sync draft; \
                             mv draft file; sync .; echo ACK $n; done";
const RENAMED: &str = "cat file || true";
const SQLITE: &str = "sqlite3 db 'pragma journal_mode=wal; create table t(n integer primary key)' \
                      >&2; sync .; n=0; while :; do n=$((n+1)); echo \"pragma synchronous=full; \
                      insert into t values($n);\"; echo \".shell echo ACK $n\"; done | sqlite3 db";
const SQLITE_LAST: &str = "sqlite3 db 'pragma integrity_check' | grep -qx ok || exit 1; \
                           sqlite3 db 'select coalesce(max(n), 0) from t where (select count(*) \
                           from t) = (select max(n) from t)'";

#[test]
fn programs_lose_what_their_protocols_are_known_to_lose() {
    const TEST: &str = "programs_lose_what_their_protocols_are_known_to_lose";
    let temp = tempfile::tempdir().unwrap();
    let site = site(temp.path());
    let try_it = folder(Behavior::Honest, Mode::Strict).mount(&site);
    let Some(_) = or_skip(TEST, try_it.map(drop).map_err(|error| error.to_string())) else {
        return;
    };
    for mode in [Mode::Strict, Mode::Journal] {
        let honest = |program, look| losses(&site, &folder(Behavior::Honest, mode), program, look);
        let lying = |program, look| losses(&site, &folder(LYING, mode), program, look);
        assert_eq!(honest(APPEND, LAST), [0; CutVariant::ALL.len()], "append, {}", mode.name());
        assert_eq!(
            honest(RENAME_SYNCED, RENAMED),
            [0; CutVariant::ALL.len()],
            "rename, {}",
            mode.name()
        );
        for (program, look) in [(APPEND, LAST), (RENAME_SYNCED, RENAMED)] {
            let lost = lying(program, look);
            assert!(lost[0] >= 5, "{program} on a liar, {}: {lost:?}", mode.name());
        }
        // No sync has promised the name, but a journal has nearly all of them.
        let lost = honest(RENAME, RENAMED);
        let is_known = if mode == Mode::Strict { lost[0] >= 5 } else { lost[0] <= 1 };
        assert!(is_known, "rename without the folder, {}: {lost:?}", mode.name());
    }
}

#[test]
fn sqlite_in_wal_mode_loses_nothing_on_an_honest_drive() {
    const TEST: &str = "sqlite_in_wal_mode_loses_nothing_on_an_honest_drive";
    let temp = tempfile::tempdir().unwrap();
    let site = site(temp.path());
    let try_it = folder(Behavior::Honest, Mode::Strict).mount(&site);
    let needed = try_it.map(drop).map_err(|error| error.to_string());
    let Some(()) = or_skip(TEST, needed.and_then(|()| runs("sqlite3"))) else { return };
    for mode in [Mode::Strict, Mode::Journal] {
        let lost = losses(&site, &folder(Behavior::Honest, mode), SQLITE, SQLITE_LAST);
        assert_eq!(lost, [0; CutVariant::ALL.len()], "{}", mode.name());
    }
}

/// Requests of programs to a file system beside reading and writing.
#[test]
fn programs_work_in_it() {
    const TEST: &str = "programs_work_in_it";
    let temp = tempfile::tempdir().unwrap();
    let site = site(temp.path());
    let folder = folder(Behavior::Honest, Mode::Journal);
    let mounted = folder.mount(&site).map_err(|error| error.to_string());
    let Some(mounted) = or_skip(TEST, mounted) else { return };
    let lines = run(
        &mounted,
        "mkdir -p a/b && ln -s b a/link && echo x >a/b/file && \
        ln a/b/file a/hard && test $(stat -c %h a/hard) = 2 && cp -a a copy && diff -r a copy && \
        mv copy moved && rm -r a && test \"$(readlink moved/link)\" = b && chmod 600 moved/hard && \
        test $(stat -c %a moved/b/file) = 600 && mkfifo fifo && truncate -s 5000 moved/hard && \
        test $(stat -c %s moved/b/file) = 5000 && touch -d 2001-02-03 moved && \
        test $(stat -c %Y moved) = $(date -d 2001-02-03 +%s) && \
        fallocate -l 100000 f && test $(stat -c %s f) = 100000 && flock f true && \
        for i in $(seq 1500); do : >moved/$i; done && test $(ls moved | wc -l) = 1503 && \
        rm -r moved && test \"$(ls)\" = \"$(printf 'f\\nfifo')\" && df . | tail -n1",
    );
    assert!(lines[0].contains("fsure"), "{lines:?}");
    if runs("git").is_ok() {
        run(
            &mounted,
            "git init -q repo && cd repo && echo x >file && git add file && \
            git -c user.name=n -c user.email=e commit -qm m && git fsck --strict && git status",
        );
    } else {
        support::skip(TEST, "git is not installed");
    }
    // Memory shared by programs, written back when it is synced.
    if runs("python3").is_ok() {
        run(
            &mounted,
            "python3 -c \"import mmap,os; f=open('m','w+b'); f.truncate(8192); \
            m=mmap.mmap(f.fileno(),8192); m[4096:4100]=b'seen'; m.flush(); os.fsync(f.fileno())\"",
        );
        let left = folder.cut(CutVariant::None, &mut Random::new(1));
        let again = LiveFolder::holding(left).mount(&site).unwrap();
        run(&again, "dd if=m bs=4096 skip=1 2>&- | grep -q ^seen");
    } else {
        support::skip(TEST, "python3 is not installed");
    }
}

/// No process sees the folder but those that are started in it, and nothing of it is left.
#[test]
fn no_other_process_sees_it_and_nothing_is_left() {
    const TEST: &str = "no_other_process_sees_it_and_nothing_is_left";
    let temp = tempfile::tempdir().unwrap();
    let site = site(temp.path());
    let mounted = folder(Behavior::Honest, Mode::Strict).mount(&site);
    let Some(mounted) = or_skip(TEST, mounted.map_err(|error| error.to_string())) else { return };
    run(&mounted, "echo x >file");
    assert!(!mounted.place().join("file").exists());
    // Who stays in it has it taken away, and is ended with the family.
    let running = start(&mounted, "echo in; exec sleep 1000");
    while running.lines().is_empty() {
        std::thread::sleep(Duration::from_millis(2));
    }
    drop(mounted);
    drop(running);
    drop(site);
    assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 0);
}

/// All of it again, as the user `nobody`: in a name space in which every user may open
/// `/dev/fuse`, as on most systems.
#[test]
fn the_user_nobody_can_do_all_of_it() {
    const TEST: &str = "the_user_nobody_can_do_all_of_it";
    let is_root = fsure_os::user::user_and_group().0 == 0;
    let needed = is_root.then_some(()).ok_or("needs root, to become nobody".to_owned());
    let needed =
        needed.and_then(|()| ["unshare", "setpriv", "mknod"].into_iter().try_for_each(runs));
    let Some(()) = or_skip(TEST, needed) else { return };
    let temp = tempfile::tempdir().unwrap();
    let line = format!(
        "mount -t tmpfs -o mode=1777 none '{0}' && mkdir -m 1777 '{0}/tmp' && \
         mknod -m 666 '{0}/fuse' c 10 229 && mount --bind '{0}/fuse' /dev/fuse && \
         export TMPDIR='{0}/tmp' HOME='{0}/tmp' && chmod 777 '{0}' || \
         {{ echo no mount; exit 0; }}; \
         as() {{ setpriv --reuid 65534 --regid 65534 --clear-groups \"$@\"; }}; \
         as test -x '{1}' -a -x '{2}' || {{ echo no way to the programs; exit 0; }}; \
         as '{1}' crash_folder_fuse:: --skip nobody_can 2>&1",
        temp.path().display(),
        std::env::current_exe().unwrap().display(),
        env!("CARGO_BIN_EXE_fsure"),
    );
    let output = Command::new("unshare").args(["-m", "sh", "-c", &line]).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    let is_not_to_be = stdout.starts_with("no mount") || stdout.starts_with("no way");
    assert!(stdout.contains("6 passed") || is_not_to_be, "{stdout}");
    for line in
        stdout.lines().filter(|line| line.starts_with("no ") || line.contains("DID NOT RUN"))
    {
        support::skip(TEST, line);
    }
}

/// Of a run that is killed in its midst neither a process is left nor a folder.
#[test]
fn nothing_is_left_of_a_run_that_was_killed() {
    const TEST: &str = "nothing_is_left_of_a_run_that_was_killed";
    let temp = tempfile::tempdir().unwrap();
    let space = temp.path().to_str().unwrap().to_owned();
    let mut run = Command::new(env!("CARGO_BIN_EXE_fsure"))
        .args(["crash", "--fs", "folder", "--cuts", "100", "--check", "true", "--", "sh", "-c"])
        .arg("touch file; sync file .; echo ACK 1; sleep 1000")
        .env("TMPDIR", &space)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // All processes of the run have the folder as an argument.
    let count_processes = |word: &str| {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|of| std::fs::read(of.path().join("cmdline")).ok());
        let lines = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
        lines.filter(|line| line.contains(&space) && line.contains(word)).count()
    };
    while count_processes("family") == 0 {
        if run.try_wait().unwrap().is_some() {
            return support::skip(TEST, "no folder can be mounted here");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    run.kill().unwrap();
    run.wait().unwrap();
    let left = || count_processes("") + std::fs::read_dir(&space).unwrap().count();
    let begun = Instant::now();
    while left() > 0 {
        assert!(begun.elapsed() < Duration::from_secs(30), "{} are left", left());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A child that is being started has all files of fsure open until its `exec`: a kill in
/// that time must not leave a process that waits for itself.
#[test]
fn a_kill_while_a_program_starts_leaves_nothing() {
    const TEST: &str = "a_kill_while_a_program_starts_leaves_nothing";
    // Identifies its processes, even before they have run their programs.
    let line = "n=0; while sleep 0.01; do n=$((n+1)); echo ACK $n; done #";
    let line = format!("{line} {}", std::process::id());
    let copied = format!("--cuts\x001000\0--check\0true\0--\0sh\0-c\0{line}");
    for _ in 0..5 {
        let temp = tempfile::tempdir().unwrap();
        let mut run = Command::new(env!("CARGO_BIN_EXE_fsure"))
            .args(["crash", "--fs", "folder", "--cuts", "1000", "--check", "true", "--"])
            .args(["sh", "-c", &line])
            .env("TMPDIR", temp.path())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let signal = |signal| kill_process(Pid::from_child(&run), signal).unwrap();
        // One that has not run its program yet is a copy.
        let is_copy = |child: &u32| words_of(*child).contains(&copied);
        let copy = || children(run.id()).into_iter().find(is_copy);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(2) {
            let Some(found) = copy() else { continue };
            signal(Signal::STOP);
            std::thread::sleep(Duration::from_millis(50));
            if copy() == Some(found) {
                break;
            }
            signal(Signal::CONT);
        }
        if run.try_wait().unwrap().is_some() {
            return support::skip(TEST, "no folder can be mounted here");
        }
        run.kill().unwrap();
        run.wait().unwrap();
        let space = temp.path().to_str().unwrap();
        let is_left = |entry: std::fs::DirEntry| {
            let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
            let words = number.map(words_of).unwrap_or_default();
            words.contains(&copied) || words.contains(space)
        };
        let begun = Instant::now();
        let files = || std::fs::read_dir(temp.path()).unwrap().count();
        while std::fs::read_dir("/proc").unwrap().flatten().any(is_left) || files() > 0 {
            let is_long = begun.elapsed() >= Duration::from_secs(120);
            assert!(!is_long, "a process is left, or one of {} files", files());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The command line of a process.
fn words_of(process: u32) -> String {
    let words = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).into_owned()
}

fn children(parent: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|of| std::fs::read_to_string(of.path().join("children")).ok());
    lists
        .flat_map(|list| list.split(' ').filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect()
}
