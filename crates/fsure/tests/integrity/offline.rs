//! A disk that is not there is not a disk whose files were deleted. An empty
//! mount point, another disk at the same place, a tree of which most is gone:
//! nothing is judged, and the record stays as it is to the byte. A copy that
//! brought its record along is another matter: it can be judged, and is.
#![cfg(target_os = "linux")]

use crate::support;
use std::io::{Read as _, Seek as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{Mounted, Recorded, Report, Tree, code, content, or_skip, path_verdicts};
use rusqlite::types::Value;

fn fill(root: &Path, files: usize) {
    for number in 0..files {
        std::fs::write(root.join(format!("{number}")), content(100, number as u64)).expect("write");
    }
}

/// Each command says `offline` and why, and the catalog stays as it is.
fn assert_offline(recorded: &Recorded, why: &str, case: &str) {
    let before = recorded.catalog_bytes();
    for command in ["verify", "update", "status", "scrub"] {
        let report = recorded.run(command, &[""; 0]);
        assert_eq!(report.code, 5, "{case}, {command}: {report:?}");
        assert_eq!(report.summary()["offline"]["why"], why, "{case}, {command}: {report:?}");
        assert!(recorded.catalog_bytes() == before, "{case}: {command} wrote to the catalog");
        let text = recorded.text(command, &[""; 0]);
        assert!(text.stdout.contains("OFFLINE"), "{case}, {command}: {}", text.stdout);
    }
}

fn assert_clean(report: &Report, case: &str) {
    assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{case}: {report:?}");
}

#[test]
fn an_empty_mount_point_is_offline() {
    let (tree, beside) = (Tree::new(), Tree::new());
    let mounted = or_skip("an_empty_mount_point_is_offline", Mounted::tmpfs(tree.root(), 16_384));
    let Some(mounted) = mounted else { return };
    fill(tree.root(), 5);
    let recorded = Recorded::outside(tree.root(), &beside.path("catalog.db"));
    recorded.record();
    assert_clean(&recorded.verify(), "mounted");
    drop(mounted);
    assert_offline(&recorded, "other-file-system", "nothing mounted");

    let _other = Mounted::tmpfs(tree.root(), 16_384).expect("once more");
    let before = recorded.catalog_bytes();
    for command in ["verify", "update", "status", "scrub"] {
        // Known by its UUID, or (older kernels) by its emptiness.
        let report = recorded.run(command, &[""; 0]);
        let why = &report.summary()["offline"]["why"];
        assert!(why == "other-file-system" || why == "empty", "{command}: {report:?}");
        assert_eq!(report.code, 5, "{command}: {report:?}");
        assert!(recorded.catalog_bytes() == before, "{command} wrote to the catalog");
    }
}

#[test]
fn another_disk_at_the_same_place_is_offline_unless_forced() {
    let (tree, beside) = (Tree::new(), Tree::new());
    fill(tree.root(), 5);
    let recorded = Recorded::outside(tree.root(), &beside.path("catalog.db"));
    recorded.record();
    let mounted = or_skip("another_disk_at_the_same_place", Mounted::tmpfs(tree.root(), 16_384));
    let Some(mounted) = mounted else { return };
    fill(tree.root(), 5);
    assert_offline(&recorded, "other-file-system", "another file system");
    let report = recorded.run("verify", &["--force"]);
    assert_eq!((report.code, report.count("touched")), (0, 5), "{report:?}");
    drop(mounted);
    assert_clean(&recorded.verify(), "the recorded disk is back");
}

#[test]
fn a_tree_that_lost_everything_but_its_record_is_offline() {
    let tree = Tree::new();
    fill(tree.root(), 5);
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    for number in 0..5 {
        std::fs::remove_file(tree.path(format!("{number}"))).expect("remove");
    }
    assert_offline(&recorded, "empty", "all gone");
    let report = recorded.run("update", &["--force"]);
    assert_eq!((report.code, report.count("missing")), (0, 5), "{report:?}");
    assert!(recorded.rows().values().all(|row| row["gone_s"] != Value::Null), "tombstones");
    assert_clean(&recorded.verify(), "nothing is recorded, nothing is there");
}

/// Files, files gone, and whether that is too much.
const LOSSES: &[(usize, usize, bool)] = &[
    (1, 1, true),
    (2, 1, false),
    (2, 2, true),
    (3, 1, false),
    (3, 2, true),
    (10, 5, false),
    (10, 6, true),
    (2400, 1200, false),
    (2400, 1201, true),
];

#[test]
fn more_than_half_missing_is_offline_and_half_is_missing() {
    for case @ (files, gone, is_offline) in LOSSES {
        let tree = Tree::new();
        std::fs::create_dir(tree.path("sub")).expect("a folder that stays");
        fill(&tree.path("sub"), *files);
        let recorded = Recorded::inside(tree.root());
        recorded.record();
        let rows = recorded.rows();
        for number in 0..*gone {
            std::fs::remove_file(tree.path(format!("sub/{number}"))).expect("remove");
        }
        if *is_offline {
            assert_offline(&recorded, "mostly-missing", &format!("{case:?}"));
            let report = recorded.run("verify", &["--force"]);
            assert_eq!(report.count("missing"), *gone as u64, "{case:?}, forced");
            assert_eq!(recorded.rows().len(), rows.len(), "{case:?}: no row was lost");
        } else {
            let report = recorded.verify();
            let seen = (report.code, report.count("missing"), report.count("ok"));
            assert_eq!(seen, (1, *gone as u64, (files - gone) as u64), "{case:?}");
            let report = recorded.update();
            assert_eq!((report.code, report.count("missing")), (0, *gone as u64), "{case:?}");
        }
    }
}

#[test]
fn a_copy_with_its_record_is_judged_by_content_and_date() {
    let (tree, beside) = (Tree::new(), Tree::new());
    fill(tree.root(), 3);
    tree.write("sub/large", content(3 << 20, 5));
    Recorded::inside(tree.root()).record();
    let copy = beside.path("copy");
    let done = Command::new("cp").arg("-a").args([tree.root(), &copy]).status().expect("cp");
    assert!(done.success());
    let recorded = Recorded::inside(&copy);
    assert_clean(&recorded.verify(), "a copy");
    let (row, flipped) = (recorded.row("sub/large"), copy.join("sub/large"));
    let date = support::mtime_ns(&flipped);
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&flipped);
    support::flip_byte(&mut file.expect("open"), 1 << 20);
    support::set_mtime_ns(&flipped, date);
    let damaged = path_verdicts(&[("sub/large", "damaged-copy")]);
    for (command, code) in [("verify", 3), ("update", 3), ("verify", 3)] {
        let report = recorded.run(command, &[""; 0]);
        assert_eq!(
            (report.code, report.path_verdicts()),
            (code, damaged.clone()),
            "{command}: {report:?}"
        );
        let blocks = &report.finding("sub/large").expect("told")["blocks"];
        assert_eq!(*blocks, serde_json::json!([[1 << 20, 2 << 20]]), "{command}");
    }
    assert_eq!(recorded.row("sub/large"), row, "damage was recorded");
    // The update has made the rest of the copy a root like any other.
    let report = recorded.update();
    let size = (3_u64 << 20) + (1 << 20);
    let read = report.summary()["bytes_read"].as_u64().expect("a number");
    assert!(read <= size + 4096, "only what differs is read again: {report:?}");
    assert_clean(&Recorded::inside(tree.root()).verify(), "the original");
}

#[test]
fn a_copy_on_another_file_system_is_bound_anew_by_update() {
    let (tree, beside) = (Tree::new(), Tree::new());
    let mounted = or_skip("a_copy_on_another_file_system", Mounted::tmpfs(beside.root(), 16_384));
    let Some(_mounted) = mounted else { return };
    fill(tree.root(), 3);
    Recorded::inside(tree.root()).record();
    let copy = beside.path("copy");
    let done = Command::new("cp").arg("-a").args([tree.root(), &copy]).status().expect("cp");
    assert!(done.success());
    let recorded = Recorded::inside(&copy);
    let report = recorded.verify();
    assert_clean(&report, "a copy elsewhere");
    assert!(report.stderr.contains("copy"), "it is said: {report:?}");
    let report = recorded.update();
    assert_clean(&report, "update in a copy");
    assert_eq!(report.summary()["bytes_read"], 300, "every file was read: {report:?}");
    let report = recorded.verify();
    assert_clean(&report, "bound");
    assert!(!report.stderr.contains("copy"), "no copy any more: {report:?}");
    let report = recorded.update();
    assert_clean(&report, "bound");
    assert!(report.summary()["bytes_read"].as_u64() <= Some(300), "{report:?}");
}

/// No file gets a tombstone, and the report says that not all is as it was.
#[test]
fn files_that_vanish_during_an_update_are_not_taken_for_removed() {
    let (tree, beside) = (Tree::new(), Tree::new());
    for number in 0..3_000 {
        tree.write(format!("a/{number}"), content(1_000, number));
    }
    for number in 0..6_000 {
        tree.write(format!("z/{number}"), "z");
    }
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    for number in 0..3_000 {
        tree.write(format!("a/{number}"), content(1_000, number + 1));
    }
    let count = |sql: &str| -> i64 {
        recorded.connect().query_row(sql, [], |row| row.get(0)).expect("count")
    };
    let generations = || count("SELECT count(*) FROM generation");
    let before = generations();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
    let options = ["--full", "--rate", "1MiB/s", "--threads", "1", "--accept-all"];
    command.args(recorded.arguments("update", &options)).stdin(Stdio::null());
    let mut output = tempfile::tempfile().expect("make");
    command.stdout(output.try_clone().expect("clone")).stderr(Stdio::null());
    let mut child = command.spawn().expect("start");
    while generations() == before {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::fs::rename(tree.path("z"), beside.path("z")).expect("take away");
    let status = child.wait().expect("wait");
    let mut stdout = String::new();
    output.rewind().and_then(|()| output.read_to_string(&mut stdout)).expect("read");
    assert_eq!(code(status), 5, "{stdout}");
    let saved = "recorded files are gone. What this run had recorded before that is saved.";
    assert!(stdout.contains("OFFLINE: ") && stdout.contains(saved), "{stdout}");
    assert_eq!(count("SELECT count(*) FROM record WHERE gone_s IS NOT NULL"), 0, "{stdout}");
}
