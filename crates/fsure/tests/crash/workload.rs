//! The workloads of `fsure crash` as the processes that they are there: each says
//! what is safe, line by line, and survives being killed on a file system that
//! goes on, since what was written is with the system then. What does not survive
//! a kill would be called lost in every cut.
#![cfg(target_os = "linux")]

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Mounted, Run, fsure, or_skip, skip};
use fsure::workload::WORKLOADS;

fn check(name: &str, folder: &str) -> Run {
    fsure(&["workload", "check", name, folder])
}

/// The number of the last line on standard output.
fn last(run: &Run) -> u64 {
    let number = run.stdout.trim().strip_prefix("LAST ").and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("{run:?}"))
}

#[test]
fn each_killed_workload_is_found_up_to_its_acknowledgements() {
    for workload in WORKLOADS {
        if workload.name.starts_with("ram:") && !rustix::process::geteuid().is_root() {
            skip(workload.name, "needs root, to mount");
            continue;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().to_str().expect("UTF-8");
        let mut child = Command::new(env!("CARGO_BIN_EXE_fsure"))
            .args(["workload", "run", workload.name, folder])
            .stdout(Stdio::piped())
            .spawn()
            .expect("start fsure");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut acked = 0;
        let began = Instant::now();
        for line in lines.map_while(Result::ok) {
            let number = line.strip_prefix("ACK ").and_then(|number| number.parse().ok());
            let number: u64 = number.unwrap_or_else(|| panic!("{line:?}"));
            assert!(number > acked, "{}: {number} after {acked}", workload.name);
            acked = number;
            if acked >= 30 && began.elapsed() > Duration::from_millis(500) {
                break;
            }
        }
        child.kill().expect("kill");
        child.wait().expect("wait");
        assert!(acked > 0, "{}: nothing was acknowledged", workload.name);
        let checked = check(workload.name, folder);
        assert_eq!(checked.code, 0, "{}: {checked:?}", workload.name);
        // What was reported is not what is committed.
        let least = if workload.name.ends_with(":told") { 0 } else { acked };
        assert!(last(&checked) >= least, "{}: {checked:?} of {acked}", workload.name);
    }
}

#[test]
fn the_check_reports_corruption_by_its_code_and_its_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().to_str().expect("UTF-8");
    std::fs::write(folder.path().join("file-0000"), "").expect("write");
    let checked = check("rename:bare", at);
    assert_eq!((checked.code, &*checked.stdout), (1, ""));
    assert_eq!(checked.stderr, "file-0000 is empty\n");
    let checked = check("sqlite:off", at);
    assert_eq!((checked.code, &*checked.stdout), (0, "LAST 0\n"), "none, so all is lost");
    assert_eq!(last(&check("append:fsync", at)), 0);
}

#[test]
fn what_is_there_is_not_written_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().to_str().expect("UTF-8");
    std::fs::write(folder.path().join("log"), "precious").expect("write");
    let run = fsure(&["workload", "run", "append", at]);
    assert_eq!(run.code, 5, "{run:?}");
    assert!(run.stderr.contains("File exists"), "{run:?}");
    let run = fsure(&["workload", "run", "append:often", at]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("possible values: append:fsync, "), "{run:?}");
}

/// A disk that is full ends it, and what was said holds.
#[test]
fn a_full_disk_is_an_end_like_any_other() {
    let at = tempfile::tempdir().expect("a folder");
    let small = Mounted::tmpfs(at.path(), 512);
    let Some(_small) = or_skip("a_full_disk_is_an_end", small) else { return };
    for name in ["append:fsync", "rename:file-new", "sqlite:wal-full", "sqlite:delete-extra"] {
        let folder = tempfile::tempdir_in(&at).expect("a folder");
        let at = folder.path().to_str().expect("UTF-8");
        let run = fsure(&["workload", "run", name, at]);
        assert_eq!((run.code, &*run.stderr), (0, "there is no room left\n"), "{name}");
        let acked = run.stdout.lines().last().and_then(|line| line.strip_prefix("ACK "));
        let acked: u64 = acked.expect("some").parse().expect("a number");
        let checked = check(name, at);
        assert_eq!(checked.code, 0, "{name}: {checked:?}");
        assert!(last(&checked) >= acked, "{name}: {checked:?} of {acked}");
    }
}
