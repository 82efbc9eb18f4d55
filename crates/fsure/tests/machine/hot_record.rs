//! `fsure hot record` and `--history`: what is recorded is answered from later, and neither a
//! signal, a kill nor a full disk spoils the store.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use crate::support::{EXT4, Image, code, fsure, or_skip, skip};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A recorder, which is killed where a test fails.
struct Recorder {
    child: Child,
    messages: Receiver<String>,
}

impl Recorder {
    /// Starts one that makes an interval of each second, and waits until it records; the reason if
    /// it cannot.
    fn start(store: &Path) -> Result<Self, String> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
        command.args(["hot", "record", "--interval", "1s", "--store", text(store)]);
        command.env("XDG_CONFIG_HOME", "/nonexistent");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("start fsure");
        let errors = BufReader::new(child.stderr.take().expect("a pipe"));
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for line in errors.lines().map_while(Result::ok) {
                // The test may have ended.
                let _ = sender.send(line);
            }
        });
        let recorder = Self { child, messages };
        match recorder.messages.recv() {
            Ok(line) if line.contains("recording into") => Ok(recorder),
            other => Err(format!("{other:?}")),
        }
    }

    /// Waits until it says so.
    fn says(&self, words: &str) {
        let mut said = Vec::new();
        loop {
            let line = self.messages.recv();
            let line = line.unwrap_or_else(|_| panic!("it ended without {words}: {said:?}"));
            if line.contains(words) {
                return;
            }
            said.push(line);
        }
    }

    fn end_by(mut self, signal: Signal) -> i32 {
        kill_process(Pid::from_child(&self.child), signal).expect("send a signal");
        code(self.child.wait().expect("wait for fsure"))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// A folder on the file system of the build, whose path has no link in it.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("make a folder");
    let path = folder.path().canonicalize().expect("resolve it");
    (folder, path)
}

fn intervals_file(store: &Path) -> PathBuf {
    store.join("intervals.jsonl")
}

/// The whole lines of intervals in a store.
fn intervals(store: &Path) -> Vec<Value> {
    let text = fs::read_to_string(intervals_file(store)).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let lines = whole.lines().map(|line| serde_json::from_str(line).expect("a JSON line"));
    lines.filter(|line: &Value| line["type"] == "interval").collect()
}

fn flushes_in(store: &Path, folder: &Path) -> u64 {
    let all = intervals(store);
    let folders = all.iter().flat_map(|one| one["folders"].as_array().expect("folders"));
    let own = folders.filter(|line| line["path"] == text(folder));
    own.filter_map(|line| line["fsyncs"].as_u64()).sum()
}

fn flush(folder: &Path) {
    let mut file = File::create(folder.join("file")).expect("make a file");
    file.write_all(b"written").expect("write");
    file.sync_all().expect("sync");
}

fn history(args: &[&str], store: &Path) -> Vec<Value> {
    let run = fsure(&[args, &["--history", "--json", "--store", text(store)]].concat());
    assert_eq!(run.code, 0, "{run:?}");
    run.stdout.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
}

#[test]
fn what_is_recorded_is_answered_from_later() {
    let name = "what_is_recorded_is_answered_from_later";
    let ((_kept, place), (_store, store)) = (folder(), folder());
    let store = store.join("a/store");
    let Some(recorder) = or_skip(name, Recorder::start(&store)) else { return };
    let mut flushed = 0;
    while flushes_in(&store, &place) == 0 {
        flush(&place);
        flushed += 1;
    }
    let second = fsure(&["hot", "record", "--store", text(&store)]);
    assert_eq!(second.code, 2, "{second:?}");
    assert!(second.stderr.contains("already"), "{second:?}");
    let running = history(&["hot", "advise"], &store);
    assert_eq!(running.last().expect("a line")["history"]["is_recording"], true);
    flush(&place);
    assert_eq!(recorder.end_by(Signal::TERM), 0);

    let seen = flushes_in(&store, &place);
    assert!(seen <= flushed + 1, "{seen} of {flushed} and one");
    let lines = history(&["hot", text(&place)], &store);
    let own = lines.iter().find(|line| line["path"] == text(&place) && line["type"] == "folder");
    assert_eq!(own.expect("the folder")["fsyncs"], seen);
    let last = &lines.last().expect("a summary");
    assert_eq!(last["history"]["is_recording"], false);
    assert_eq!(last["history"]["intervals"], intervals(&store).len());
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(&store), mode(&intervals_file(&store))), (0o700, 0o600));
}

#[test]
fn a_kill_costs_the_interval_that_was_under_way() {
    let name = "a_kill_costs_the_interval_that_was_under_way";
    let (_kept, store) = folder();
    let Some(recorder) = or_skip(name, Recorder::start(&store)) else { return };
    while intervals(&store).is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(recorder.end_by(Signal::KILL), 137);
    let before = intervals(&store).len();
    let mut file = File::options().append(true).open(intervals_file(&store)).expect("open");
    file.write_all(b"{\"type\":\"interval\",\"time").expect("write");
    let torn = history(&["hot", "advise"], &store);
    let of = |lines: &[Value]| lines.last().expect("a summary")["history"].clone();
    assert_eq!((&of(&torn)["damaged_lines"], &of(&torn)["intervals"]), (&0.into(), &before.into()));
    let Some(recorder) = or_skip(name, Recorder::start(&store)) else { return };
    assert_eq!(recorder.end_by(Signal::INT), 0);
    assert_eq!(intervals(&store).len(), before + 1, "every line is whole");
}

#[test]
fn a_full_disk_is_reported_and_ends_nothing() {
    let name = "a_full_disk_is_reported_and_ends_nothing";
    let Some(image) = or_skip(name, Image::new(&EXT4, 32)) else { return };
    let store = image.root().join("store");
    let Some(recorder) = or_skip(name, Recorder::start(&store)) else { return };
    let filler = image.root().join("filler");
    let mut file = File::create(&filler).expect("make a file");
    let block = vec![1; 1 << 12];
    while file.write_all(&block).and_then(|()| file.sync_all()).is_ok() {}
    recorder.says("recording goes on");
    fs::remove_file(&filler).expect("make room");
    drop(file);
    recorder.says("the history is stored again");
    assert_eq!(recorder.end_by(Signal::TERM), 0);
    let all = intervals(&store);
    let merged = all.iter().filter_map(|one| one["intervals"].as_u64()).max();
    assert!(merged > Some(1), "the pending ones are stored as one: {all:?}");
    let gaps = &history(&["hot", "advise"], &store).pop().expect("a summary")["history"]["gaps"];
    assert_eq!(gaps.as_array().map(Vec::len), Some(0), "nothing is missing");
}

#[test]
fn the_unit_is_as_systemd_wants_it() {
    let name = "the_unit_is_as_systemd_wants_it";
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist/systemd/fsure-hot.service");
    let unit = fs::read_to_string(unit).expect("a unit");
    let unit = unit.replace("/usr/bin/fsure", env!("CARGO_BIN_EXE_fsure"));
    let (_kept, place) = folder();
    let file = place.join("fsure-hot.service");
    fs::write(&file, unit).expect("write");
    let output = Command::new("systemd-analyze").arg("verify").arg(&file).output();
    let Some(output) = or_skip(name, output.map_err(|error| error.to_string())) else { return };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
}

#[test]
fn without_a_history_there_is_advice_on_how_to_record() {
    let (_kept, place) = folder();
    let run = fsure(&["hot", "advise", "--history", "--store", text(&place.join("none"))]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("sudo fsure hot record"), "{run:?}");
    for args in [
        &["hot", "--since", "7d"][..],
        &["hot", "--history", "--top"],
        &["hot", "--history", "--log"],
        &["hot", "--history", "--for", "1s"],
        &["hot", "--history", "--since", "7"],
        &["hot", "record", "--interval", "10ms"],
        &["hot", "record", "--max-size", "1K"],
    ] {
        let run = fsure(args);
        assert_eq!(run.code, 2, "{args:?}: {run:?}");
    }
}

#[test]
fn a_user_without_rights_is_told_what_to_do() {
    let name = "a_user_without_rights_is_told_what_to_do";
    if !rustix::process::geteuid().is_root() {
        return skip(name, "it needs root, to become another user");
    }
    let (_kept, store) = folder();
    fs::set_permissions(&store, fs::Permissions::from_mode(0o700)).expect("close it");
    let as_user = |args: &[&str]| {
        let user = ["--reuid=65534", "--regid=65534", "--clear-groups"];
        let mut command = Command::new("setpriv");
        command.args(user).arg(env!("CARGO_BIN_EXE_fsure")).args(args);
        let output = command.env("XDG_CONFIG_HOME", "/nonexistent").output();
        output.map(|output| (code(output.status), String::from_utf8_lossy(&output.stderr).into()))
    };
    for (args, remedy) in [
        (
            &["hot", "record", "--store", text(&store)][..],
            "run it as root: 'sudo fsure hot record'",
        ),
        (&["hot", "advise", "--history", "--store", text(&store)], "sudo chgrp -R 65534"),
    ] {
        let run = as_user(args).map_err(|error| error.to_string());
        let Some((code, stderr)) = or_skip(name, run) else { return };
        let stderr: String = stderr;
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains(remedy), "{stderr}");
    }
}
