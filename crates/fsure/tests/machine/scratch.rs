//! Nothing of a measurement is left behind: a process with everything up is
//! killed, and its guard with it.

#![cfg(target_os = "linux")]

use crate::support;
use crate::support::full_test_name;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use fsure_os::memory_cgroup::Group;
use fsure_os::passthrough::{Passthrough, Server};
use fsure_os::private_mounts::{MountKind, Namespace};
use fsure_os::scratch_dir::Scratch;
use fsure_os::zram::Zram;

/// Environment variable with the place in which the killed process makes its folder.
const FOLDER: &str = "FSURE_TEST_FOLDER";

/// Not a test: the process that is killed, started by the tests below.
#[test]
#[ignore = "the process that the other tests kill"]
fn victim() {
    let _alone = crate::support::serial::alone();
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let guard = Path::new(env!("CARGO_BIN_EXE_fsure"));
    let scratch = Arc::new(Scratch::create(Path::new(&folder), Some(guard)).unwrap());
    fs::create_dir(scratch.path().join("folder")).unwrap();
    fs::write(scratch.path().join("folder/file"), "x").unwrap();
    let up = bring_up(&scratch, guard);
    // In one piece: the harness writes to the same stream.
    let lacks = up.iter().filter_map(|(_, error)| error.as_ref());
    let lacks: String = lacks.map(|error| format!("lacks {error}\n")).collect();
    let text = format!("\n{lacks}guard {}\nup\n", scratch.guard_id().unwrap());
    io::stdout().write_all(text.as_bytes()).unwrap();
    let _ = io::stdin().read(&mut [0]);
    drop(up);
}

/// A resource that is in use, or the error of creating it.
type Up = (Option<Box<dyn std::any::Any>>, Option<String>);

/// Everything that a measurement may have, in use.
fn bring_up(scratch: &Arc<Scratch>, program: &Path) -> Vec<Up> {
    fn up<T: 'static>(name: &str, made: io::Result<T>) -> Up {
        match made {
            Ok(made) => (Some(Box::new(made)), None),
            Err(error) => (None, Some(format!("{name}: {error}"))),
        }
    }
    let space = match Namespace::new() {
        Ok(space) => space,
        Err(error) => return vec![(None, Some(format!("everything: {error}")))],
    };
    let place = |name: &str| {
        let path = scratch.path().join(name);
        fs::create_dir(&path).unwrap();
        path
    };
    let ram = space.mount(&MountKind::Ram { bytes: 1 << 24, huge: false }, &place("ram")).unwrap();
    let mut all = Vec::new();
    for server in [Server::Plain, Server::Kernel, Server::Bindfs] {
        let paths = (&*ram.path(), &*place(&format!("{server:?}")));
        let made = Passthrough::mount(&space, server, program, paths);
        // Killed in the middle of a request.
        let path = made.as_ref().ok().map(|made| made.path().join(format!("{server:?}")));
        std::thread::spawn(move || {
            while path.as_ref().is_some_and(|path| fs::write(path, [1; 1 << 16]).is_ok()) {}
        });
        all.push(up(&format!("{server:?}"), made));
    }
    let zram = Zram::create(scratch, &space, (64 << 20, 64 << 20), &place("zram"));
    if let Ok(zram) = &zram {
        fs::write(zram.path().join("file"), [7; 5000]).unwrap();
    }
    all.push(up("zram", zram));
    let bound = space.mount(&MountKind::Bind(ram.path()), &place("bound"));
    all.push(up("bind", bound));
    let group = Group::create(scratch, 1 << 30);
    let group = group.and_then(|group| group.take(std::process::id()).map(|()| group));
    all.push(up("control group", group));
    all.push((Some(Box::new(ram)), None));
    all
}

/// A victim with everything up, the number of its guard, and what it has
/// registered.
struct Victim {
    process: Child,
    guard: u32,
    registered: String,
}

impl Victim {
    fn new(test: &str, folder: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                &full_test_name(module_path!(), "victim"),
                "--ignored",
                "--nocapture",
            ])
            .env(FOLDER, folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut guard, mut is_up) = (None, false);
        for line in BufReader::new(process.stdout.as_mut().unwrap()).lines() {
            let line = line.unwrap();
            match line.split_once(' ') {
                Some(("guard", number)) => guard = Some(number.parse().unwrap()),
                Some(("lacks", why)) => support::skip(test, why),
                _ if line == "up" => {
                    is_up = true;
                    break;
                }
                _ => {}
            }
        }
        assert!(is_up, "the victim did not come up");
        let scratch = names(folder).pop().unwrap();
        let registered = fs::read_to_string(scratch.join("registered")).unwrap_or_default();
        Self { process, guard: guard.unwrap(), registered }
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Returns what is left of the process outside its folder.
    fn left(&self, folder: &Path) -> Vec<String> {
        let mut left = Vec::new();
        for line in self.registered.lines() {
            let words: Vec<_> = line.split(' ').collect();
            let path = match words[0] {
                "zram" => PathBuf::from(format!("/sys/block/zram{}", words[1])),
                _ => PathBuf::from(words[1]),
            };
            if path.exists() {
                left.push(line.to_owned());
            }
        }
        let folder = folder.to_str().unwrap();
        for process in names(Path::new("/proc")) {
            for file in ["mountinfo", "cmdline"] {
                let text = fs::read(process.join(file)).unwrap_or_default();
                if String::from_utf8_lossy(&text).contains(folder) {
                    left.push(process.join(file).display().to_string());
                }
            }
        }
        left
    }
}

/// Waits until something is over.
fn wait_for(is_over: impl Fn() -> bool) {
    while !is_over() {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns true if a process has ended, even if its parent has not waited for it.
fn is_over(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"));
    stat.map_or(true, |stat| stat.contains(") Z "))
}

fn names(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn the_guard_cleans_up_behind_a_process_that_was_killed() {
    let _alone = crate::support::serial::alone();
    let _turn = support::serial::zram();
    let folder = tempfile::tempdir().unwrap();
    let mut victim = Victim::new("the_guard_cleans_up", folder.path());
    assert_eq!(names(folder.path()).len(), 1);
    victim.kill();
    wait_for(|| is_over(victim.guard));
    assert_eq!(names(folder.path()), Vec::<PathBuf>::new());
    // Servers end by themselves, in their own time.
    wait_for(|| victim.left(folder.path()).is_empty());
}

#[test]
fn the_next_run_sweeps_where_the_guard_was_killed_too() {
    let _alone = crate::support::serial::alone();
    let _turn = support::serial::zram();
    let folder = tempfile::tempdir().unwrap();
    let mut victim = Victim::new("the_next_run_sweeps", folder.path());
    let killed = Command::new("kill").args(["-9", &victim.guard.to_string()]).status().unwrap();
    assert!(killed.success());
    wait_for(|| is_over(victim.guard));
    victim.kill();
    assert_eq!(names(folder.path()).len(), 1);
    // What the kernel takes down by itself is down when no process has it mounted.
    wait_for(|| !victim.left(folder.path()).iter().any(|left| left.starts_with("/proc")));
    drop(Scratch::create(folder.path(), None).unwrap());
    assert_eq!(names(folder.path()), Vec::<PathBuf>::new());
    assert_eq!(victim.left(folder.path()), Vec::<String>::new());
}

#[test]
fn the_guard_goes_when_all_is_removed() {
    let _alone = crate::support::serial::alone();
    let _turn = support::serial::zram();
    let folder = tempfile::tempdir().unwrap();
    let mut victim = Victim::new("the_guard_goes", folder.path());
    drop(victim.process.stdin.take());
    assert!(victim.process.wait().unwrap().success());
    wait_for(|| is_over(victim.guard));
    assert_eq!(names(folder.path()), Vec::<PathBuf>::new());
    wait_for(|| victim.left(folder.path()).is_empty());
}
