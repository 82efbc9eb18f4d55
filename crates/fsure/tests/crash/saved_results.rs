//! `--save` of `crash`, `powercut check`, `defer`, `hot`, `flush trace` and `ram status`: the
//! lines of `--json`, in a file of their own that the page shows.
#![cfg(target_os = "linux")]

use std::path::Path;

use crate::support::powercut::{Place, Talking, witness, witnessed_writes};
use crate::support::{Run, cannot_crash, fsure, fsure_of, skip};
use serde_json::Value;

const TEST: &str = "each_command_saves_what_the_page_shows";

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// The lines of fsure in an output.
fn lines(output: &str) -> Vec<Value> {
    output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Runs a command with `--save`, and checks the file against what is printed; `None`, loudly,
/// if it cannot run on this machine.
fn saved(home: &Path, file: &Path, command: &str, args: &[&str]) -> Option<Run> {
    let (before, behind) = match args.iter().position(|arg| *arg == "--") {
        Some(place) => args.split_at(place),
        None => (args, &[][..]),
    };
    let run = fsure_of(home, &[before, &["--json", "--save", text(file)], behind].concat());
    if cannot_crash(&run) || run.code == 2 {
        assert!(!run.stderr.contains("Usage:"), "{}", run.stderr);
        skip(&format!("{TEST}: {command}"), &run.stderr);
        assert!(!file.exists(), "{command} was refused and left a file");
        return None;
    }
    let content = std::fs::read_to_string(file).expect("it is saved");
    let (printed, kept) = (lines(&run.stdout), lines(&content));
    assert_eq!(kept.len(), content.lines().count(), "only lines of fsure: {content}");
    assert_eq!(kept[0]["type"], "start", "{content}");
    assert_eq!(kept[0]["command"], command);
    assert_eq!(kept[1..], printed[1..], "{command}: {}", run.stderr);
    assert_eq!(kept.last().expect("a line")["type"], "summary");
    let page = fsure(&["report", text(file), "-o", "-"]);
    assert_eq!((page.code, &*page.stderr), (0, ""), "{command}");
    assert!(page.stdout.contains("<header class=\"band "), "{command}");
    // It is there now, and is not written over.
    let again = fsure_of(home, &[before, &["--save", text(file)], behind].concat());
    assert_eq!(again.code, 5, "{command}: {}", again.stderr);
    assert!(again.stderr.contains("it is there already"), "{}", again.stderr);
    assert_eq!(std::fs::read_to_string(file).expect("it is still there"), content);
    Some(run)
}

#[test]
fn each_command_saves_what_the_page_shows() {
    let folder = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("make a folder");
    let home = folder.path();
    let cuts = ["--workload", "append:none", "--cuts", "1", "--pause", "0.15s"];
    let matrix = [&["crash", "--matrix", "--drive", "honest", "--fs", "folder"], &cuts[..]];
    let place = text(home);
    let defer = ["defer", "--max-loss", "1s", "--force-unordered", "--dir", place];
    for (name, command, args) in [
        ("crash", "crash", [&["crash"], &cuts[..]].concat()),
        ("matrix", "crash", matrix.concat()),
        ("defer", "defer", [&defer[..], &["--", "echo", "of the command"]].concat()),
        ("flushes", "flush trace", vec!["flush", "trace", "--", "sync", place]),
        ("hot", "hot", vec!["hot", "--", "sync", place]),
        ("advice", "hot", vec!["hot", "advise", "--", "sync", place]),
        ("status", "ram", vec!["ram", "status"]),
    ] {
        saved(home, &home.join(name), command, &args);
    }
}

#[test]
fn a_check_after_a_power_cut_is_saved() {
    let place = Place::new();
    let (_witness, address) = witness(place.home(), "127.0.0.1:0");
    let write = ["write", text(&place.disk), "--witness", &address, "--methods", "fsync"];
    let writer = Talking::start(place.home(), &write);
    let run = writer.first_line["run"].as_str().expect("a name").to_owned();
    while witnessed_writes(place.home(), &run) == 0 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    writer.kill();
    let check = ["powercut", "check", text(&place.disk), "--witness", &address];
    saved(place.home(), &place.home().join("check"), "powercut", &check);
}

/// A file would be in the way of the next attempt.
#[test]
fn a_refused_run_leaves_no_file_and_a_full_disk_is_told() {
    let folder = tempfile::tempdir().expect("make a folder");
    let file = folder.path().join("saved");
    // A file system in memory is never deferred for.
    for args in [
        &["defer", "--max-loss", "1s", "--dir", "/dev/shm", "--save", text(&file), "--", "true"][..],
        &["defer", "--max-loss", "1ms", "--save", text(&file), "--", "true"],
        &["flush", "trace", "--save", text(&file), "--", "/no/such/program"],
        &["ram", "status", "/no/such/folder", "--save", text(&file)],
    ] {
        let run = fsure(args);
        assert_ne!(run.code, 0, "{args:?}");
        assert!(!file.exists(), "{args:?}: {}", run.stderr);
    }
    let run = fsure(&["ram", "status", "--save", "/dev/full"]);
    assert_eq!(run.code, 5, "{run:?}");
    let standard_output = fsure(&["ram", "status", "--save", "-"]);
    assert!(standard_output.stdout.starts_with("{\"type\":\"start\""), "{standard_output:?}");
}
