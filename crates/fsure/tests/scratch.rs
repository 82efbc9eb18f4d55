//! Nothing of a measurement is left behind: a process with everything up is
//! killed, and its guard with it.

#![cfg(unix)]

mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use fsure_os::scratch::Scratch;

/// Where the process that is killed makes its folder.
const FOLDER: &str = "FSURE_TEST_FOLDER";

/// Not a test: the process that is killed, started by the tests below.
#[test]
#[ignore = "the process that the other tests kill"]
fn victim() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let guard = Path::new(env!("CARGO_BIN_EXE_fsure"));
    let scratch = Scratch::create(Path::new(&folder), Some(guard)).unwrap();
    std::fs::create_dir(scratch.path().join("folder")).unwrap();
    std::fs::write(scratch.path().join("folder/file"), "x").unwrap();
    // In one piece: the harness writes to the same stream.
    let up = format!("\nguard {}\nup\n", scratch.guard_id().unwrap());
    std::io::stdout().write_all(up.as_bytes()).unwrap();
    let _ = std::io::stdin().read(&mut [0]);
}

/// A victim with everything up, and the number of its guard.
fn start(folder: &Path) -> (Child, u32) {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "victim", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut guard, mut is_up) = (None, false);
    let output = BufReader::new(victim.stdout.as_mut().unwrap());
    for line in output.lines().map(Result::unwrap) {
        match line.split_once(' ') {
            Some(("guard", number)) => guard = Some(number.parse().unwrap()),
            _ if line == "up" => {
                is_up = true;
                break;
            }
            _ => {}
        }
    }
    assert!(is_up, "the victim did not come up");
    (victim, guard.unwrap())
}

/// Waits for the end of a process that is not our child.
fn wait_for_end(process: u32) {
    while fsure_os::path::exists(&PathBuf::from(format!("/proc/{process}/fd"))) {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        if stat.contains(") Z ") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

fn names(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn the_guard_cleans_up_behind_a_process_that_was_killed() {
    if !cfg!(target_os = "linux") {
        return support::skip("the_guard_cleans_up", "there is no /proc");
    }
    let folder = tempfile::tempdir().unwrap();
    let (mut victim, guard) = start(folder.path());
    assert_eq!(names(folder.path()).len(), 1);
    victim.kill().unwrap();
    victim.wait().unwrap();
    wait_for_end(guard);
    assert_eq!(names(folder.path()), Vec::<PathBuf>::new());
}

#[test]
fn the_next_run_sweeps_where_the_guard_was_killed_too() {
    if !cfg!(target_os = "linux") {
        return support::skip("the_next_run_sweeps", "there is no /proc");
    }
    let folder = tempfile::tempdir().unwrap();
    let (mut victim, guard) = start(folder.path());
    let killed = Command::new("kill").args(["-9", &guard.to_string()]).status().unwrap();
    assert!(killed.success());
    wait_for_end(guard);
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert_eq!(names(folder.path()).len(), 1);
    drop(Scratch::create(folder.path(), None).unwrap());
    assert_eq!(names(folder.path()), Vec::<PathBuf>::new());
}

#[test]
fn the_guard_goes_when_all_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (mut victim, guard) = start(folder.path());
    drop(victim.stdin.take());
    assert!(victim.wait().unwrap().success());
    wait_for_end(guard);
    assert_eq!(names(folder.path()), Vec::<PathBuf>::new());
}
