//! Runs of `speed` that are stopped: started until a file of theirs is in use, then interrupted or
//! killed, and what they leave in the folder.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Returns the names in a folder, sorted.
pub(super) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("list");
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("list").file_name();
    let mut names: Vec<_> =
        entries.map(|entry| name(entry).into_string().expect("UTF-8")).collect();
    names.sort();
    names
}

/// Starts `fsure speed` with these arguments, and waits until `file` is in its scratch folder.
pub(super) fn start(folder: &Path, args: &[&str], file: &str, output: Stdio) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
    command.arg("speed").arg(folder).arg("--json").args(args);
    let child = command.stdin(Stdio::null()).stdout(output).spawn().expect("start fsure");
    wait_until("its file is in use", || {
        let scratch = names(folder).into_iter().find(|name| name.starts_with(".fsure-scratch-"));
        scratch.is_some_and(|name| folder.join(name).join(file).exists())
    });
    child
}

/// Interrupts a run whose output is a pipe. Returns the rows of its summary, which is its last line
/// and has the exit code.
pub(super) fn interrupt(child: Child) -> u64 {
    kill_process(Pid::from_child(&child), Signal::INT).expect("interrupt");
    let output = child.wait_with_output().expect("wait");
    assert_eq!(output.status.code(), Some(130));
    let text = String::from_utf8(output.stdout).expect("text");
    let last: Value = serde_json::from_str(text.lines().last().expect("lines")).expect("JSON");
    assert_eq!((&last["type"], &last["exit_code"]), (&"summary".into(), &130.into()), "{text}");
    last["measured"].as_u64().unwrap() + last["not_run"].as_u64().unwrap()
}

/// Kills a run, and waits until its guard has left these names in the folder.
pub(super) fn kill(mut child: Child, folder: &Path, left: &[&str]) {
    child.kill().expect("kill");
    child.wait().expect("wait");
    wait_until("the guard has cleaned up", || names(folder) == left);
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(120), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
