//! `ram pin` as its users meet it: what is held stays in memory when the system
//! is asked to let go of it, new files are followed, and nothing outlives a kill.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::cache::{cool, pages};
use crate::support::settled::settle;
use crate::support::{Fault, FaultyFs, Run, code, fsure, or_skip, skip};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

fn folder() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn ram(what: &str, folder: &Path) -> Run {
    fsure(&["--json", "ram", what, folder.to_str().unwrap()])
}

/// Lets go at the end of a test, however it ends.
struct Pinned<'a>(&'a Path);

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        ram("unpin", self.0);
    }
}

fn reported(run: &Run) -> Value {
    assert_eq!(run.code, 0, "{}", run.stderr);
    serde_json::from_str(run.stdout.lines().nth(1).unwrap()).unwrap()
}

/// Pages of a file in memory after the system was asked to let go of it.
fn kept(file: &Path) -> u64 {
    cool(file);
    pages(&[file.to_owned()])[file]
}

/// Waits until it is so: the one that holds the folder follows on its own.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_is_pinned_stays_until_it_is_unpinned() {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, vec![b'x'; 10 * 4096]).unwrap();
    if kept(&file) > 0 {
        return skip("what_is_pinned_stays", "this file system keeps what it is to let go of");
    }
    let pinned = reported(&ram("pin", folder.path()));
    let _unpins = Pinned(folder.path());
    assert_eq!((&pinned["type"], &pinned["files"]), (&"pinned".into(), &1.into()), "{pinned}");
    assert_eq!(kept(&file), 10);
    let again = ram("pin", folder.path());
    assert_eq!(again.code, 2);
    assert!(again.stderr.contains("is already pinned"), "{}", again.stderr);
    let new = folder.path().join("below/new");
    fs::create_dir(new.parent().unwrap()).unwrap();
    fs::write(&new, vec![b'x'; 3 * 4096]).unwrap();
    until("the new file is not held", || kept(&new) == 3);
    assert_eq!(reported(&ram("unpin", folder.path()))["bytes"], 13 * 4096);
    assert_eq!((kept(&file), kept(&new)), (0, 0));
    assert_eq!(ram("unpin", folder.path()).code, 2);
}

#[test]
fn a_kill_lets_go_and_leaves_nothing_in_the_way() {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, vec![b'x'; 10 * 4096]).unwrap();
    let evicts = kept(&file) == 0;
    let _unpins = Pinned(folder.path());
    for _ in 0..3 {
        let process = reported(&ram("pin", folder.path()))["process"].to_string();
        assert!(!evicts || kept(&file) == 10);
        assert!(Command::new("kill").args(["-9", &process]).status().unwrap().success());
        if evicts {
            until("what was killed holds on", || kept(&file) == 0);
        }
    }
    reported(&ram("pin", folder.path()));
    fs::remove_dir_all(folder.path()).unwrap();
}

#[test]
fn a_limit_is_named_with_its_remedy() {
    let folder = folder();
    fs::write(folder.path().join("file"), vec![b'x'; 40 * 4096]).unwrap();
    // Root may lock what it likes, unless a limit forbids it.
    let output = Command::new("setpriv")
        .args(["--bounding-set=-ipc_lock", "prlimit", "--memlock=65536"])
        .args([env!("CARGO_BIN_EXE_fsure"), "ram", "pin"])
        .arg(folder.path())
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => return skip("a_limit_is_named", &format!("setpriv: {error}")),
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.starts_with("setpriv:") {
        return skip("a_limit_is_named", &stderr);
    }
    assert_eq!(code(output.status), 2, "{stderr}");
    assert!(stderr.contains("has 160.0 KiB, and RLIMIT_MEMLOCK allows 64.0 KiB"), "{stderr}");
    assert!(stderr.contains("LimitMEMLOCK="), "{stderr}");
}

/// Returns the state of the process that holds a folder; `None` if there is none.
fn holder(folder: &Path) -> Option<fsure_ram::Pinned> {
    let runtime = match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(runtime) if !rustix::process::geteuid().is_root() => {
            PathBuf::from(runtime).join("fsure")
        }
        _ => PathBuf::from("/run/fsure"),
    };
    let (living, _) = fsure_ram::pinned(&runtime).unwrap();
    living.into_iter().find(|pinned| pinned.folder == folder)
}

#[test]
fn what_was_empty_once_is_held_on_to_when_there_is_too_much() {
    let folder = folder();
    let output = Command::new("setpriv")
        .args(["--bounding-set=-ipc_lock", "prlimit", "--memlock=65536"])
        .args([env!("CARGO_BIN_EXE_fsure"), "ram", "pin"])
        .arg(folder.path())
        .output();
    match output {
        Ok(output) if output.status.success() => {}
        other => return skip("what_was_empty_once", &format!("{other:?}")),
    }
    let _unpins = Pinned(folder.path());
    fs::write(folder.path().join("large"), vec![b'x'; 40 * 4096]).unwrap();
    let is_reported = |held: fsure_ram::Pinned| held.left_out_count == 1;
    until("nobody says what is left out", || holder(folder.path()).is_some_and(is_reported));
    fs::write(folder.path().join("small"), vec![b'x'; 2 * 4096]).unwrap();
    until("it holds no more", || holder(folder.path()).is_some_and(|held| held.files == 1));
}

#[test]
fn folders_that_cannot_be_watched_are_refused_by_the_limit() {
    let folder = folder();
    for name in ["a", "b", "c", "d"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    // In a user namespace of its own the limit applies to no other process.
    let script = "echo 3 > /proc/sys/user/max_inotify_watches && exec \"$0\" ram pin \"$1\"";
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", script, env!("CARGO_BIN_EXE_fsure")])
        .arg(folder.path())
        .output();
    let test = "folders_that_cannot_be_watched_are_refused_by_the_limit";
    let output = match output {
        Ok(output) => output,
        Err(error) => return skip(test, &format!("unshare: {error}")),
    };
    let _unpins = Pinned(folder.path());
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.starts_with("unshare:") || stderr.starts_with("sh:") {
        return skip(test, &stderr);
    }
    assert_eq!(code(output.status), 2, "{stderr}");
    assert!(stderr.contains("more folders than fs.inotify.max_user_watches"), "{stderr}");
    assert!(stderr.contains("sysctl fs.inotify.max_user_watches="), "{stderr}");
}

/// A view of a folder with two files in it.
fn view(test: &str, folder: &Path) -> Option<FaultyFs> {
    for name in ["bad", "good"] {
        fs::write(folder.join(name), vec![b'x'; 4 * 4096]).unwrap();
    }
    or_skip(test, FaultyFs::new(folder))
}

#[test]
fn an_interrupted_command_leaves_no_process_that_takes_memory() {
    let folder = folder();
    let Some(view) = view("an_interrupted_command_leaves_no_process", folder.path()) else {
        return;
    };
    // Without an answer, it goes on filling.
    view.silence(&["bad"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
    command.args(["ram", "pin"]).arg(view.root()).stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    until("nobody answers while it is filled", || {
        holder(view.root()).is_some_and(|held| held.is_filling)
    });
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    // The thread that gets the signal is not the one that waits for the folder.
    settle(&child);
    view.silence(&[]);
    assert_eq!(code(child.wait().unwrap()), 130);
    let unpinned = ram("unpin", view.root());
    assert_eq!(unpinned.code, 2, "{}", unpinned.stdout);
}

#[test]
fn a_block_that_cannot_be_read_is_no_limit() {
    let folder = folder();
    let Some(view) = view("a_block_that_cannot_be_read", folder.path()) else { return };
    view.set([Fault::eio("bad", 0..u64::MAX)]);
    let pinned = reported(&ram("pin", view.root()));
    let _unpins = Pinned(view.root());
    assert_eq!((&pinned["files"], &pinned["left_out_count"]), (&1.into(), &1.into()), "{pinned}");
    assert_eq!(pinned["left_out"][0]["path"], "bad", "{pinned}");
    let why = pinned["left_out"][0]["why"].as_str().unwrap();
    assert!(why.contains("cannot be read into memory"), "{why}");
}

#[test]
fn another_folder_of_that_path_can_be_pinned() {
    let above = folder();
    let folder = above.path().join("folder");
    fs::create_dir(&folder).unwrap();
    reported(&ram("pin", &folder));
    let _unpins = Pinned(&folder);
    fs::rename(&folder, above.path().join("other")).unwrap();
    fs::create_dir(&folder).unwrap();
    until("it holds what has another path", || holder(&folder).is_none());
    let again = ram("pin", &folder);
    reported(&again);
    assert!(again.stderr.contains("now leads to another folder"), "{}", again.stderr);
}

#[test]
fn what_is_no_folder_is_refused() {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    for wrong in [file, folder.path().join("none")] {
        let run = ram("pin", &wrong);
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert!(run.stderr.contains("is not a folder"), "{}", run.stderr);
    }
}
