//! Tests the storage of the record and access by other processes: a medium that cannot be
//! written, a full disk, another process on the same record. Each must end with a clear
//! message and a record as good as before.
#![cfg(target_os = "linux")]

use crate::support;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{
    EXT4, Image, Mounted, Recorded, Report, Run, Tree, code, content, or_skip, path_verdicts,
};
use rustix::mount::MountFlags;
use rustix::process::{Pid, Signal, kill_process};

fn assert_clean(report: &Report, case: &str) {
    assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{case}: {report:?}");
}

#[test]
fn a_read_only_medium_is_verified_and_not_recorded_to() {
    let test = "a_read_only_medium_is_verified";
    let Some(image) = or_skip(test, Image::new(&EXT4, 32)) else { return };
    let beside = Tree::new();
    for number in 0..5 {
        let data = content(1 << 20, number);
        std::fs::write(image.root().join(format!("{number}")), data).expect("write");
    }
    let fresh = Recorded::inside(image.root());
    // A first record is refused, too, and nothing is left of the attempt.
    let read_only = || image.remount(MountFlags::RDONLY);
    let writable = || image.remount(MountFlags::empty());
    read_only();
    for (report, what) in [(fresh.update(), "first"), (fresh.update(), "again")] {
        assert_eq!(report.code, 5, "{what}: {report:?}");
        assert!(report.stderr.contains("--catalog"), "it says what to do: {report:?}");
    }
    assert!(!image.root().join(".fsure").exists());
    let elsewhere = Recorded::outside(image.root(), &beside.path("catalog.db"));
    elsewhere.record();
    assert_clean(&elsewhere.verify(), "a record kept elsewhere");
    writable();
    fresh.record();
    read_only();
    let before = fresh.catalog_bytes();
    let report = fresh.verify();
    assert_clean(&report, "read-only");
    assert_eq!(report.count("ok"), 5, "{report:?}");
    assert!(report.stderr.contains("cannot be written"), "it is said: {report:?}");
    assert_clean(&fresh.status(), "status");
    let report = fresh.update();
    assert_eq!(report.code, 5, "{report:?}");
    assert!(report.stderr.contains("mount the disk"), "it says what to do: {report:?}");
    // A second record would take for sound what this one knows to be damaged.
    assert!(!report.stderr.contains("--catalog"), "{report:?}");
    assert!(fresh.catalog_bytes() == before);
    writable();
}

#[test]
fn a_full_disk_ends_the_update_and_leaves_the_record_as_it_was() {
    let (tree, beside) = (Tree::new(), Tree::new());
    let mounted = or_skip("a_full_disk_ends_the_update", Mounted::tmpfs(beside.root(), 400));
    let Some(_mounted) = mounted else { return };
    for number in 0..20 {
        tree.write(format!("first/{number}"), content(100, number));
    }
    let recorded = Recorded::outside(tree.root(), &beside.path("catalog.db"));
    recorded.record();
    let rows = recorded.rows();
    for number in 0..3000 {
        tree.write(format!("many/{number:0100}"), "x");
    }
    for attempt in ["first", "second"] {
        let report = recorded.update();
        assert_eq!(report.code, 5, "{attempt}: {report:?}");
        let stopped = &report.summary()["stopped"];
        let message = stopped["message"].as_str().unwrap_or_default();
        assert!(message.contains("full"), "{attempt}: it says why: {stopped}");
        let text = recorded.text("update", &[""; 0]);
        assert!(text.stdout.contains("disk is full"), "{attempt}: {}", text.stdout);
        assert!(!text.stdout.contains("cannot write the record"), "said twice: {}", text.stdout);
        // What a commit has made durable stays; nothing that was there is lost.
        let now = recorded.rows();
        // A verification in between may have moved its date.
        let is_kept = |(path, row): (&Vec<u8>, &support::Row)| {
            let now = now.get(path).expect("a row");
            let same = |(column, value)| now.get(column) == Some(value);
            row.iter()
                .filter(|(column, _)| !["verified_s", "seal"].contains(&column.as_str()))
                .all(same)
        };
        assert!(rows.iter().all(is_kept), "{attempt}");
        let report = recorded.verify();
        assert!([0, 1, 5].contains(&report.code), "{attempt}: {report:?}");
        assert_eq!(report.count("ok") as usize, live_files(&recorded), "{attempt}: {report:?}");
        let damage = ["rotten", "altered", "damaged-copy", "record-bad", "missing"];
        assert!(damage.iter().all(|verdict| report.count(verdict) == 0), "{attempt}: {report:?}");
    }
    let space = Recorded::outside(tree.root(), &tree.path(".fsure-catalog.db"));
    space.record();
}

/// A run that has committed before the disk is full has a backup to bring in step, whose commit
/// must not store the totals of what was taken back.
#[test]
fn a_disk_that_is_full_after_a_commit_leaves_a_record_that_is_trusted() {
    let (tree, beside) = (Tree::new(), Tree::new());
    let mounted = Mounted::tmpfs(beside.root(), 800);
    let Some(_mounted) = or_skip("a_disk_that_is_full_after_a_commit", mounted) else { return };
    tree.write("first", "x");
    let recorded = Recorded::outside(tree.root(), &beside.path("catalog.db"));
    recorded.record();
    for number in 0..3000 {
        tree.write(format!("many/{number:0100}"), content(1000, number));
    }
    std::fs::remove_file(beside.path("catalog.db.backup")).expect("remove");
    let before = recorded.rows().len();
    // For some three seconds, with a commit after each.
    let report = recorded.run("update", &["--rate", "1MiB/s", "--threads", "1"]);
    assert_eq!(report.code, 5, "{report:?}");
    let is_full = |report: &Report| report.summary()["stopped"].to_string().contains("full");
    assert!(is_full(&report), "{report:?}");
    assert!(recorded.rows().len() > before, "it is full before the first commit: {report:?}");
    let report = recorded.verify();
    assert!([0, 1, 5].contains(&report.code), "{report:?}");
    assert_eq!(report.count("ok") as usize, live_files(&recorded), "{report:?}");
}

/// An interrupted run reports as saved only what is saved.
#[test]
fn an_interrupted_run_that_cannot_save_says_that() {
    const FINDINGS: usize = 400;
    let (tree, beside) = (Tree::new(), Tree::new());
    let mounted = Mounted::tmpfs(beside.root(), 2000);
    let Some(_mounted) = or_skip("an_interrupted_run_that_cannot_save", mounted) else { return };
    tree.write("first", "x");
    let recorded = Recorded::outside(tree.root(), &beside.path("catalog.db"));
    recorded.record();
    for number in 0..3000 {
        tree.write(format!("many/{number:0100}"), content(1000, number));
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
    let options = ["--rate", "1MiB/s", "--threads", "1", "--json"];
    command.args(recorded.arguments("update", &options)).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).spawn().expect("start");
    let output = child.stdout.take().expect("a pipe");
    // It is not to be far ahead of its reader.
    rustix::pipe::fcntl_setpipe_size(&output, 4096).expect("a small pipe");
    let mut lines = BufReader::new(output).lines().map(|line| line.expect("read"));
    assert_eq!(lines.by_ref().take(FINDINGS).count(), FINDINGS);
    fill(beside.root(), 0);
    // These are not saved yet, and need room. A commit that is due may end the run before.
    let before = lines.by_ref().take(FINDINGS).last();
    kill_process(Pid::from_child(&child), Signal::INT).expect("interrupt");
    let last = lines.last().or(before).expect("a summary");
    assert_eq!(code(child.wait().expect("wait")), 5, "{last}");
    let summary: serde_json::Value = serde_json::from_str(&last).expect("JSON");
    assert!(summary["stopped"].to_string().contains("full"), "{summary}");
    std::fs::remove_file(beside.path("ballast")).expect("make room");
    assert!(recorded.rows().len() < 3000);
    assert_eq!(recorded.update().code, 0, "with room");
}

/// Attributes are written behind everything else, and change the dates in the record.
#[test]
fn a_full_disk_at_the_end_of_an_update_costs_no_report() {
    let (tree, beside) = (Tree::new(), Tree::new());
    let mounted = Mounted::tmpfs(beside.root(), 2000);
    let Some(_mounted) = or_skip("a_full_disk_at_the_end", mounted) else { return };
    for number in 0..500 {
        tree.write(format!("{number:0100}"), "x");
    }
    let recorded = Recorded::outside(tree.root(), &beside.path("catalog.db"));
    recorded.record();
    let mut codes = BTreeSet::new();
    for pages in [2, 8, 16, 24, 32, 40, 56, 80] {
        fill(beside.root(), pages * 4096);
        let report = recorded.run("update", &["--layout", "xattr"]);
        assert_eq!(report.summary()["type"], "summary", "{pages} pages left: {report:?}");
        codes.insert(report.code);
        std::fs::remove_file(beside.path("ballast")).expect("make room");
        assert_eq!(recorded.run("update", &["--layout", "tree"]).code, 0);
    }
    assert!(codes.contains(&5), "{codes:?}");
}

/// Fills a file system to its last block, and leaves so many bytes.
fn fill(root: &Path, left: u64) {
    use std::io::Write as _;
    let ballast = root.join("ballast");
    let mut file = std::fs::File::create(&ballast).expect("create");
    while file.write(&[1; 4096]).is_ok_and(|bytes| bytes > 0) {}
    let size = file.metadata().expect("stat").len();
    file.set_len(size.saturating_sub(left)).expect("give back");
}

/// Nothing has to be written to judge: as on a read-only medium, the damage is
/// named and all of the rest judged, whatever write it is that fails.
#[test]
fn a_full_disk_keeps_no_file_from_being_judged() {
    const FILES: u64 = 300;
    let (tree, beside) = (Tree::new(), Tree::new());
    let mounted = Mounted::tmpfs(beside.root(), 2000);
    let Some(_mounted) = or_skip("a_full_disk_keeps_no_file", mounted) else { return };
    for number in 0..FILES {
        tree.write(format!("a folder/{number:0100}"), content(3000, number));
    }
    let damaged = format!("a folder/{:0100}", 150);
    let recorded = Recorded::outside(tree.root(), &beside.path("catalog.db"));
    recorded.record();
    tree.flip(&damaged, 5);
    let lock = beside.path("catalog.db.lock");
    for pages in [0, 1, 2, 3, 5, 8, 13, 40] {
        for command in ["verify", "scrub"] {
            std::fs::remove_file(&lock).ok();
            fill(beside.root(), pages * 4096);
            let report = recorded.run(command, &[""; 0]);
            let case = format!("{command}, {pages} pages left: {report:?}");
            assert_eq!(report.code, 3, "{case}");
            assert_eq!(
                report.path_verdicts(),
                path_verdicts(&[(damaged.as_str(), "altered")]),
                "{case}"
            );
            assert_eq!(report.count("ok"), FILES - 1, "{case}");
            let is_short = pages < 5;
            assert!(!is_short || report.stderr.contains("verification"), "{case}");
            std::fs::remove_file(beside.path("ballast")).expect("make room");
        }
    }
    let report = recorded.verify();
    assert_eq!((report.code, report.stderr.contains("verified")), (3, false), "{report:?}");
}

fn live_files(recorded: &Recorded) -> usize {
    let zero = rusqlite::types::Value::Integer(0);
    recorded.rows().values().filter(|row| row["kind"] == zero).count()
}

#[test]
fn a_first_record_that_does_not_fit_leaves_nothing_behind() {
    for kibibytes in [4, 12, 24] {
        let (tree, beside) = (Tree::new(), Tree::new());
        let mounted = Mounted::tmpfs(beside.root(), kibibytes);
        let Some(_mounted) = or_skip("a_first_record_that_does_not_fit", mounted) else { return };
        tree.write("a", "x");
        let recorded = Recorded::outside(tree.root(), &beside.path("catalog.db"));
        let report = recorded.update();
        assert_eq!(report.code, 5, "{kibibytes} KiB: {report:?}");
        assert!(report.stderr.contains("full"), "{kibibytes} KiB: it says why: {report:?}");
        let left: Vec<_> = std::fs::read_dir(beside.root()).expect("list").collect();
        assert!(left.is_empty(), "{kibibytes} KiB: {left:?} were left behind");
    }
}

/// Starts the command.
fn start(arguments: &[OsString]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("start fsure")
}

fn finish(child: Child) -> Report {
    let output = child.wait_with_output().expect("wait for fsure");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    Report::new(Run { code: code(output.status), stdout, stderr })
}

#[test]
fn the_second_of_two_processes_waits_and_reports_it() {
    for (first, second) in [("update", "update"), ("update", "verify"), ("verify", "verify")] {
        let tree = Tree::new();
        for number in 0..300 {
            tree.write(format!("many/{number}"), content(100, number));
        }
        let recorded = Recorded::inside(tree.root());
        recorded.record();
        for number in 300..600 {
            tree.write(format!("many/{number}"), content(100, number));
        }
        // No I/O, but a second or so of hashing: they meet for sure.
        let file = std::fs::File::create(tree.path("sparse")).expect("create");
        file.set_len(4 << 30).expect("size");
        if first == "verify" {
            recorded.record();
        }
        let arguments = |command| recorded.arguments(command, &["--json"]);
        let children = [start(&arguments(first)), start(&arguments(second))];
        // Both are listened to at once: one that cannot get rid of its report
        // would keep the other waiting for ever.
        let listeners = children.map(|child| std::thread::spawn(|| finish(child)));
        let reports = listeners.map(|listener| listener.join().expect("finish"));
        let case = format!("{first} beside {second}");
        let waited: Vec<_> = reports.iter().map(|r| r.stderr.contains("waiting")).collect();
        assert_eq!(waited.iter().filter(|waited| **waited).count(), 1, "{case}: {reports:?}");
        // A verify that came first finds the new files new.
        let codes: Vec<_> = reports.iter().map(|report| report.code).collect();
        let is_well = codes == [0, 0] || second == "verify" && codes == [0, 1];
        assert!(is_well, "{case}: {reports:?}");
        let report = recorded.verify();
        assert_clean(&report, &case);
        assert_eq!(report.count("ok"), 601, "{case}: {report:?}");
    }
}

#[test]
fn a_record_that_does_not_exist_is_named_with_the_command_that_makes_one() {
    let tree = Tree::new();
    tree.write("a/file", "x");
    for command in ["verify", "status"] {
        let run = Recorded::inside(tree.root()).text(command, &[""; 0]);
        assert_eq!(run.code, 5, "{command}: {}", run.stderr);
        assert!(run.stderr.contains("fsure update"), "{command}: {}", run.stderr);
    }
    for command in ["verify", "status", "update"] {
        for path in ["a/file", "none"] {
            let run = Recorded::inside(&tree.path(path)).text(command, &[""; 0]);
            assert_eq!(run.code, 5, "{command} {path}: {}", run.stderr);
            assert!(!run.stderr.is_empty(), "{command} {path}");
        }
    }
    assert!(!tree.path(".fsure").exists() && !tree.path("a/.fsure").exists(), "nothing was made");
}

#[test]
fn a_file_or_folder_below_a_root_is_judged_by_the_root_s_record() {
    let tree = Tree::new();
    for path in ["a/one", "a/two", "b/one"] {
        tree.write(path, path);
    }
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    tree.flip("a/one", 0);
    tree.flip("b/one", 0);
    let cases: &[(&str, &[&str])] = &[
        ("a/one", &["a/one"]),
        ("a/two", &[]),
        ("a", &["a/one"]),
        ("b", &["b/one"]),
        ("", &["a/one", "b/one"]),
    ];
    for (path, damaged) in cases {
        for command in ["verify", "update"] {
            let path: &Path = &tree.path(path);
            let report = support::fsure_json(&[Path::new(command), path]);
            let expected: Vec<_> = damaged.iter().map(|path| (*path, "altered")).collect();
            assert_eq!(
                report.path_verdicts(),
                path_verdicts(&expected),
                "{command} {path:?}: {report:?}"
            );
            let code = if damaged.is_empty() { 0 } else { 3 };
            assert_eq!(report.code, code, "{command} {path:?}: {report:?}");
        }
    }
}
