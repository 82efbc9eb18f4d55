//! `fsure ram run`, killed: each of its processes, and all at once, at moments of
//! chance, while the command numbers what it has done. What was said to be done is on
//! the disk when all have ended, unless all were killed at once: then it is a whole
//! generation, and not older than one that was there before.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::support::campaign;
use crate::support::skip;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use tempfile::TempDir;

const NOBODY: u32 = 65_534;

/// Two files, of which the first is never behind and never more than one ahead.
const SCRIPT: &str = r#"n=0
while test $n -lt "$1"; do
    n=$((n + 1))
    for file in first second; do echo $n > "$0/new" && mv "$0/new" "$0/$file"; done
    echo $n
done"#;

/// The process to kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Wrapper,
    Keeper,
    First,
    Command,
    All,
}

/// A run, and the progress of its command.
struct Run {
    child: Child,
    last_number: Arc<AtomicU64>,
    reader: Option<JoinHandle<()>>,
}

fn folder(home: &TempDir) -> PathBuf {
    home.path().canonicalize().unwrap().join("hot")
}

fn place(is_nobody: bool) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(folder(&home)).unwrap();
    if is_nobody {
        chown(folder(&home), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    home
}

fn command(folder: &Path, is_nobody: bool, count: u64) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
    command
        .args(["ram", "run", "--max-loss", "100ms"])
        .arg(folder)
        .args(["--", "sh", "-c", SCRIPT]);
    command.arg(folder).arg(count.to_string()).current_dir("/").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    if is_nobody {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

impl Run {
    fn start(folder: &Path, is_nobody: bool, count: u64) -> Self {
        let mut child = command(folder, is_nobody, count).spawn().unwrap();
        let last_number = Arc::<AtomicU64>::default();
        let output = BufReader::new(child.stdout.take().unwrap());
        let reader = std::thread::spawn({
            let last_number = Arc::clone(&last_number);
            move || {
                for line in output.lines() {
                    last_number.store(line.unwrap().parse().unwrap(), SeqCst);
                }
            }
        });
        Self { child, last_number, reader: Some(reader) }
    }

    fn wait_for(&mut self, number: u64) {
        while self.last_number.load(SeqCst) < number {
            assert!(self.child.try_wait().unwrap().is_none(), "{}", self.words());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Its processes: the keeper, the first one and the command.
    fn processes(&self) -> (Option<Pid>, Option<Pid>, Option<Pid>) {
        let (mut keeper, mut first) = (None, None);
        for child in children(self.child.id()) {
            let line = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
            let is_keeper = line.split(|byte| *byte == 0).any(|word| word == b"keep-run");
            *if is_keeper { &mut keeper } else { &mut first } = Some(child);
        }
        let command = first.and_then(|first| children(first).first().copied());
        let pid = |id: Option<u32>| id.and_then(|id| Pid::from_raw(id.cast_signed()));
        (pid(keeper), pid(first), pid(command))
    }

    fn kill(&self, victim: Victim) {
        let wrapper = Pid::from_raw(self.child.id().cast_signed());
        let (keeper, first, command) = self.processes();
        let victims = match victim {
            Victim::Wrapper => vec![wrapper],
            Victim::Keeper => vec![keeper],
            Victim::First => vec![first],
            Victim::Command => vec![command],
            // The keeper is killed first: the wrapper must not start another, and no keeper
            // must hear of the others' end.
            Victim::All => {
                let _ = wrapper.map(|wrapper| kill_process(wrapper, Signal::STOP));
                let now = self.processes();
                vec![keeper, now.0, wrapper, first, command]
            }
        };
        let victims = victims.into_iter().flatten();
        let ends: Vec<_> = victims.filter_map(kill_watched).collect();
        if victim == Victim::All {
            ends.iter().for_each(wait_for_end);
        }
    }

    /// Waits until all that hold its outputs have ended, and gives its code and what
    /// was said on standard error.
    fn end(mut self) -> (Option<i32>, u64, String) {
        let code = self.child.wait().unwrap().code();
        self.reader.take().unwrap().join().unwrap();
        let words = self.words();
        (code, self.last_number.load(SeqCst), words)
    }

    fn words(&mut self) -> String {
        let mut words = String::new();
        let _ = self.child.stderr.take().unwrap().read_to_string(&mut words);
        words
    }
}

/// Kills a process and returns a descriptor that becomes readable when all its threads have
/// ended.
fn kill_watched(victim: Pid) -> Option<OwnedFd> {
    let end = pidfd_open(victim, PidfdFlags::empty());
    let _ = kill_process(victim, Signal::KILL);
    end.ok()
}

/// Waits for the end of a killed process. Its outputs are closed before its locks are
/// released, so the end of the outputs does not prove it.
fn wait_for_end(end: &OwnedFd) {
    while let Err(Errno::INTR) = poll(&mut [PollFd::new(end, PollFlags::IN)], None) {}
}

fn children(parent: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split(' ').filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// The numbers on the disk.
fn numbers(folder: &Path) -> (u64, u64) {
    let number = |name| {
        let text = fs::read_to_string(folder.join(name)).ok();
        text.map_or(0, |text| text.trim_end().parse().expect("a whole file"))
    };
    (number("first"), number("second"))
}

/// One state of the command's, and of not before `least`.
fn assert_generation(folder: &Path, least: u64, what: &str) {
    let (first, second) = numbers(folder);
    assert!(first == second || first == second + 1, "{what}: {first} and {second}");
    assert!(second >= least, "{what}: {second} of {least}");
}

fn kills(test: &str, is_nobody: bool, rounds: u64) {
    if is_nobody && !rustix::process::geteuid().is_root() {
        return skip(test, "only root can be somebody else");
    }
    let probe = place(is_nobody);
    // Where it was built may be a folder that only root sees.
    let is_refused = |error: std::io::Error| error.kind() == ErrorKind::PermissionDenied;
    if is_nobody && command(&folder(&probe), true, 1).output().is_err_and(is_refused) {
        return skip(test, "somebody without rights cannot start the program where it is");
    }
    let (code, _, words) = Run::start(&folder(&probe), is_nobody, 1).end();
    if code == Some(2) {
        return skip(test, &words);
    }
    let mut random = u64::from(std::process::id());
    for round in 0..rounds {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        let pause = Duration::from_micros((random >> 33) % 400_000);
        let all = [Victim::Wrapper, Victim::Keeper, Victim::First, Victim::Command, Victim::All];
        let victim = all[(round % 5) as usize];
        let what = format!("round {round}, {victim:?} after {pause:?}");
        let home = place(is_nobody);
        let folder = folder(&home);
        let count = if victim == Victim::Keeper { 400 } else { 1_000_000 };
        let mut run = Run::start(&folder, is_nobody, count);
        run.wait_for(1);
        std::thread::sleep(pause);
        let before = match victim {
            // The journal is applied name by name.
            Victim::All => numbers(&folder).1,
            _ => 0,
        };
        run.kill(victim);
        let (code, last_number, words) = run.end();
        assert_eq!(words, "", "{what}");
        match victim {
            Victim::Wrapper => assert_eq!(code, None, "{what}"),
            Victim::Keeper => assert_eq!((code, last_number), (Some(0), 400), "{what}"),
            Victim::First | Victim::Command => assert_eq!(code, Some(137), "{what}"),
            Victim::All => {
                let (code, _, words) = Run::start(&folder, is_nobody, 0).end();
                assert_eq!(code, Some(0), "{what}: {words}");
                let is_plain = words.is_empty() || words.contains("completed after a crash");
                assert!(is_plain, "{what}: {words}");
            }
        }
        assert_generation(&folder, if victim == Victim::All { before } else { last_number }, &what);
        assert!(!folder.join(".fsure-ram").exists(), "{what}: something of ours is left");
    }
}

#[test]
fn no_acknowledged_write_is_lost_with_root() {
    kills("no_acknowledged_write_is_lost_with_root", false, campaign(10).into());
}

#[test]
fn no_acknowledged_write_is_lost_without_root() {
    kills("no_acknowledged_write_is_lost_without_root", true, campaign(10).into());
}
