//! Files under another name. A rename must not cost a reading, must not look
//! like a loss, and must not be a way to bury damage; what could be several
//! files is none of them.
#![cfg(unix)]

use crate::support;
use std::fs;

use crate::support::{Recorded, Report, Tree, content, path_verdicts};
use rusqlite::types::Value;
use serde_json::json;

const MIB: usize = 1 << 20;
const AMBIGUOUS: &str = "a moved file? Several names that came or went could be it";

fn read(report: &Report) -> u64 {
    report.summary()["bytes_read"].as_u64().expect("a number")
}

/// A tree with space for changes below half of it.
fn tree() -> (Tree, Recorded) {
    let tree = Tree::new();
    for number in 0..6_u64 {
        tree.write(format!("keep/{number}"), content(10 + number as usize, 50 + number));
    }
    tree.write("a", content(3000, 1));
    tree.write("b", content(4000, 2));
    tree.write("dir/large", content(2 * MIB + 5, 3));
    std::os::unix::fs::symlink("large", tree.path("dir/link")).expect("make a link");
    for path in ["a", "b", "dir/large"] {
        tree.age(path);
    }
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    (tree, recorded)
}

fn rename(tree: &Tree, from: &str, to: &str) {
    fs::create_dir_all(tree.path(to).parent().expect("a folder")).expect("make folders");
    fs::rename(tree.path(from), tree.path(to)).expect("rename");
}

/// A copy with its date under another name, and the file gone.
fn move_by_copy(tree: &Tree, from: &str, to: &str) {
    let date = tree.mtime(from);
    fs::copy(tree.path(from), tree.path(to)).expect("copy");
    tree.set_mtime(to, date);
    fs::remove_file(tree.path(from)).expect("remove");
}

fn moved_from(report: &Report, path: &str) -> Option<String> {
    Some(report.finding(path)?["moved_from"].as_str()?.to_owned())
}

fn assert_clean(recorded: &Recorded, case: &str) {
    for command in ["status", "verify", "update"] {
        let report = recorded.run(command, &[""; 0]);
        assert_eq!(
            (report.code, report.path_verdicts()),
            (0, vec![]),
            "{case}, {command}: {report:?}"
        );
    }
}

/// Columns that a move must not touch.
const KEPT: [&str; 7] =
    ["size", "mtime_ns", "inode", "blake3", "hashed_ns", "verified_s", "blocks"];

#[test]
fn a_renamed_folder_of_ten_thousand_files_is_not_read() {
    let tree = Tree::new();
    for number in 0..9_999_u64 {
        tree.write(format!("top/{:02}/{number:04}", number % 50), content(100, number));
    }
    tree.write("top/large", content(3 * MIB + 1, 7));
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    let before = recorded.rows();
    rename(&tree, "top", "other");
    let report = recorded.status();
    assert_eq!((report.code, report.count("moved")), (1, 10_000), "{}", report.summary());
    let report = recorded.update();
    let seen = (report.code, report.count("moved"), read(&report));
    assert_eq!(seen, (0, 10_000, 0), "{}", report.summary());
    assert_eq!(report.summary()["folders"]["moved"], 51, "{}", report.summary());
    assert_eq!(moved_from(&report, "other/large").as_deref(), Some("top/large"));
    let after = recorded.rows();
    assert_eq!(after.len(), before.len(), "no row was left behind");
    for (path, row) in &after {
        let old = [b"top", path.strip_prefix(b"other").expect("a new name")].concat();
        let same = KEPT.iter().all(|column| {
            // A folder is recorded anew.
            row["kind"] == Value::Integer(1) || row[*column] == before[&old][*column]
        });
        assert!(same, "{row:?} was {:?}", before[&old]);
    }
    let report = recorded.verify();
    assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{}", report.summary());
    rename(&tree, "other", "top");
    let report = recorded.update();
    let seen = (report.code, report.count("moved"), read(&report));
    assert_eq!(seen, (0, 10_000, 0), "and back: {}", report.summary());
    let back: Vec<_> = recorded.rows().into_keys().collect();
    assert_eq!(back, before.into_keys().collect::<Vec<_>>());
}

type Edit = fn(&Tree);
/// The findings: path, verdict, and the name under which the file is recorded.
type ExpectedFindings = &'static [(&'static str, &'static str, Option<&'static str>)];

/// An edit, the findings of `status`, which reads no data, the findings of `verify` and
/// `update`, and the bytes that `update` reads.
struct Case {
    name: &'static str,
    edit: Edit,
    status: ExpectedFindings,
    full: ExpectedFindings,
    reads: u64,
}

const A_TO_C: ExpectedFindings = &[("c", "moved", Some("a"))];

const CASES: &[Case] = &[
    Case {
        // The change time moved: a rename explains it, and so would a rewrite.
        name: "renamed by itself",
        edit: |t| rename(t, "a", "c"),
        status: A_TO_C,
        full: A_TO_C,
        reads: 3000,
    },
    Case {
        name: "renamed and touched",
        edit: |t| {
            rename(t, "a", "c");
            t.set_mtime("c", 1_000_000_000);
        },
        status: &[("a", "missing", None), ("c", "new", None)],
        full: A_TO_C,
        reads: 3000,
    },
    Case {
        name: "copied and removed",
        edit: |t| move_by_copy(t, "a", "c"),
        status: &[("a", "missing", None), ("c", "new", None)],
        full: A_TO_C,
        reads: 3000,
    },
    Case {
        name: "into another folder, before its old name in the order of paths",
        edit: |t| rename(t, "keep/3", "aa/x"),
        status: &[("aa", "new", None), ("aa/x", "moved", Some("keep/3"))],
        full: &[("aa", "new", None), ("aa/x", "moved", Some("keep/3"))],
        reads: 13,
    },
    Case {
        name: "a folder with a file and a link",
        edit: |t| rename(t, "dir", "keep/dir"),
        status: DIR,
        full: DIR,
        reads: 0,
    },
    Case {
        name: "renamed and edited",
        edit: |t| {
            rename(t, "a", "c");
            t.write("c", content(3001, 4));
        },
        status: &[("a", "missing", None), ("c", "new", None)],
        full: &[("a", "missing", None), ("c", "new", None)],
        reads: 3001,
    },
    Case {
        name: "moved over an existing name",
        edit: |t| {
            t.set_mtime("a", t.mtime("b") + 10_000_000_000);
            rename(t, "a", "b");
        },
        status: &[("a", "missing", None), ("b", "modified", None)],
        full: &[("a", "missing", None), ("b", "modified", None)],
        reads: 3000,
    },
    Case {
        name: "a hard link more",
        edit: |t| fs::hard_link(t.path("a"), t.path("c")).expect("link"),
        status: &[("c", "new", None)],
        full: &[("c", "new", None)],
        // Its change time moved, under both names; read once.
        reads: 3000,
    },
    Case {
        name: "a hard link in the place of a name",
        edit: |t| {
            fs::hard_link(t.path("a"), t.path("c")).expect("link");
            fs::remove_file(t.path("a")).expect("remove");
        },
        status: A_TO_C,
        full: A_TO_C,
        reads: 3000,
    },
    Case {
        name: "an empty file's content proves nothing",
        edit: |t| {
            _ = t.write("c", []);
            fs::remove_file(t.path("keep/0")).expect("remove");
        },
        status: &[("c", "new", None), ("keep/0", "missing", None)],
        full: &[("c", "new", None), ("keep/0", "missing", None)],
        reads: 0,
    },
];

const DIR: ExpectedFindings = &[
    ("keep/dir", "moved", Some("dir")),
    ("keep/dir/large", "moved", Some("dir/large")),
    ("keep/dir/link", "moved", Some("dir/link")),
];

fn seen(report: &Report) -> Vec<(String, String, Option<String>)> {
    let reported = report.path_verdicts().into_iter();
    reported
        .map(|(path, verdict)| {
            let from = moved_from(report, &path);
            (path, verdict, from)
        })
        .collect()
}

fn expected(reported: ExpectedFindings) -> Vec<(String, String, Option<String>)> {
    let reported = reported.iter();
    reported
        .map(|(path, verdict, from)| {
            ((*path).to_owned(), (*verdict).to_owned(), from.map(str::to_owned))
        })
        .collect()
}

#[test]
fn a_moved_file_is_reported_and_recorded_once() {
    for Case { name, edit, status, full, reads } in CASES {
        let (tree, recorded) = tree();
        edit(&tree);
        std::thread::sleep(std::time::Duration::from_millis(60));
        for (command, reported) in [("status", status), ("verify", full)] {
            let report = recorded.run(command, &[""; 0]);
            assert_eq!((report.code, seen(&report)), (1, expected(reported)), "{name}: {report:?}");
        }
        let before = recorded.rows();
        let report = recorded.update();
        let result = (report.code, seen(&report), read(&report));
        assert_eq!(result, (0, expected(full), *reads), "{name}: {report:?}");
        let rows = recorded.rows();
        for (path, _, from) in full.iter().filter(|reported| reported.1 == "moved") {
            let from = from.expect("an old name");
            assert!(!rows.contains_key(from.as_bytes()), "{name}: {from} is still recorded");
            let digest = |row: &support::Row| row["blake3"].clone();
            let (now, then) = (&rows[path.as_bytes()], &before[from.as_bytes()]);
            assert_eq!(digest(now), digest(then), "{name}");
        }
        assert_clean(&recorded, name);
    }
}

#[test]
fn two_files_that_changed_names_are_two_changed_files() {
    let (tree, recorded) = tree();
    tree.set_mtime("a", 1_000_000_000_000_000_000);
    tree.set_mtime("b", 1_100_000_000_000_000_000);
    assert_eq!(recorded.update().code, 0);
    rename(&tree, "a", "x");
    rename(&tree, "b", "a");
    rename(&tree, "x", "b");
    let swapped = path_verdicts(&[("a", "modified"), ("b", "reverted")]);
    let report = recorded.verify();
    assert_eq!((report.code, report.path_verdicts()), (1, swapped.clone()), "{report:?}");
    let report = recorded.update();
    assert_eq!((report.code, report.path_verdicts()), (0, swapped), "{report:?}");
    assert_clean(&recorded, "swapped");
}

#[test]
fn what_could_be_several_files_is_none_of_them() {
    let by_content: Edit = |tree| {
        move_by_copy(tree, "same/1", "c");
        move_by_copy(tree, "same/2", "d");
    };
    let by_inode: Edit = |tree| {
        rename(tree, "linked/1", "c");
        rename(tree, "linked/2", "d");
    };
    let two_copies: Edit = |tree| {
        fs::copy(tree.path("same/1"), tree.path("c")).expect("copy");
        fs::copy(tree.path("same/1"), tree.path("d")).expect("copy");
        fs::remove_file(tree.path("same/1")).expect("remove");
    };
    for (case, edit, gone) in [
        ("two contents", by_content, &["same/1", "same/2"][..]),
        ("two names of one inode", by_inode, &["linked/1", "linked/2"]),
        ("one gone, two copies", two_copies, &["same/1"]),
    ] {
        let (tree, recorded) = tree();
        tree.write("same/1", content(5000, 9));
        tree.write("same/2", content(5000, 9));
        tree.write("linked/1", content(6000, 10));
        fs::hard_link(tree.path("linked/1"), tree.path("linked/2")).expect("link");
        recorded.record();
        edit(&tree);
        let came = [("c", "new"), ("d", "new")];
        let all = path_verdicts(
            &came.into_iter().chain(gone.iter().map(|path| (*path, "missing"))).collect::<Vec<_>>(),
        );
        for (command, code) in [("verify", 1), ("update", 0)] {
            let report = recorded.run(command, &[""; 0]);
            assert_eq!(
                (report.code, report.path_verdicts()),
                (code, all.clone()),
                "{case}: {report:?}"
            );
            for finding in report.findings() {
                assert_eq!(finding["reason"], AMBIGUOUS, "{case}, {command}: {finding}");
            }
        }
        assert_clean(&recorded, case);
    }
}

#[test]
fn damage_does_not_hide_behind_another_name() {
    let (tree, recorded) = tree();
    rename(&tree, "dir", "other");
    tree.flip("other/large", (MIB + 7) as u64);
    let row = recorded.row("dir/large");
    for command in ["verify", "update", "verify"] {
        let report = recorded.run(command, &[""; 0]);
        assert_eq!(report.code, 3, "{command}: {report:?}");
        let finding = report.finding("other/large").expect("told");
        assert_eq!(finding["verdict"], "altered", "{command}: {finding}");
        assert_eq!(finding["moved_from"], "dir/large", "{command}: {finding}");
        assert_eq!(finding["blocks"], json!([[MIB, 2 * MIB]]), "{command}: {finding}");
        assert_eq!(report.finding("dir/large"), None, "{command}: {report:?}");
        assert_eq!(recorded.row("dir/large"), row, "{command}: the evidence is kept");
        assert!(!recorded.rows().contains_key(&b"other/large"[..]), "{command}");
    }
    let text = recorded.text("verify", &["--quiet"]).stdout;
    assert!(text.contains("/dir/large; damaged bytes 1048576-2097152"), "{text}");
    let accept = ["--accept".into(), tree.path("other/large")];
    let report = recorded.run("update", &accept);
    assert_eq!(report.code, 0, "{report:?}");
    assert!(!recorded.rows().contains_key(&b"dir/large"[..]), "its old name is gone");
    assert_clean(&recorded, "accepted");
}

#[test]
#[cfg(target_os = "linux")]
fn rot_is_rot_under_another_name() {
    let image = support::or_skip("rot_under_another_name", support::Image::new(&support::EXT4, 32));
    let Some(mut image) = image else { return };
    let data = content(3 * MIB, 5);
    fs::create_dir(image.root().join("dir")).expect("make a folder");
    fs::write(image.root().join("dir/file"), &data).expect("write");
    fs::write(image.root().join("good"), content(5, 5)).expect("write");
    let recorded = Recorded::inside(image.root());
    recorded.record();
    recorded.age_records();
    fs::rename(image.root().join("dir"), image.root().join("new")).expect("rename");
    image.flip_in_image(&data[MIB..MIB + 32], 0);
    let report = recorded.verify();
    let finding = report.finding("new/file").expect("told");
    assert_eq!((&finding["verdict"], report.code), (&json!("rotten"), 3), "{report:?}");
    assert_eq!(finding["moved_from"], "dir/file");
    // Its stat is as recorded, and so `update` would not read it, but its damage is known.
    let report = recorded.update();
    assert_eq!((report.code, report.count("rotten")), (3, 1), "{report:?}");
    assert!(recorded.rows().contains_key(&b"dir/file"[..]), "the evidence is kept");
    let report = recorded.verify();
    assert_eq!(
        (report.code, report.path_verdicts()),
        (3, path_verdicts(&[("new/file", "rotten")])),
        "{report:?}"
    );
    assert_eq!(report.finding("new/file").expect("told")["blocks"], json!([[MIB, 2 * MIB]]));
}

#[test]
fn a_renamed_top_folder_is_there_and_a_lost_one_is_not() {
    let tree = Tree::new();
    for number in 0..30_u64 {
        tree.write(format!("top/{number}"), content(100, number));
    }
    tree.write("edited", b"before");
    tree.age("edited");
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    // The first write comes before the names that moved are all known.
    tree.write("edited", b"after it");
    rename(&tree, "top", "zzz");
    fs::remove_file(tree.path("zzz/7")).expect("remove");
    for (command, code) in [("status", 1), ("verify", 1)] {
        let report = recorded.run(command, &[""; 0]);
        let counts = (report.code, report.count("moved"), report.count("missing"));
        assert_eq!(counts, (code, 29, 1), "{command}: {report:?}");
    }
    // With the second in which it was verified.
    let rows = recorded.rows();
    // Gone for good: the same names, and none of the inodes.
    let kept = tree.path("../kept");
    let beside = Tree::new();
    let kept = beside.path(kept.file_name().expect("a name"));
    fs::rename(tree.path("zzz"), &kept).expect("rename");
    for command in ["status", "verify", "update"] {
        let report = recorded.run(command, &[""; 0]);
        let why = &report.summary()["offline"]["why"];
        assert_eq!((report.code, why), (5, &json!("mostly-missing")), "{command}: {report:?}");
        assert_eq!(recorded.rows(), rows, "{command} wrote");
    }
    fs::rename(&kept, tree.path("zzz")).expect("rename");
    let report = recorded.update();
    let counts = (report.code, report.count("moved"), report.count("missing"), read(&report));
    assert_eq!(counts, (0, 29, 1, 8), "{report:?}");
    assert_clean(&recorded, "moved");
}

#[test]
fn a_tombstone_at_the_new_name_gives_way() {
    let (tree, recorded) = tree();
    fs::remove_file(tree.path("dir/large")).expect("remove");
    assert_eq!(recorded.update().path_verdicts(), path_verdicts(&[("dir/large", "missing")]));
    rename(&tree, "b", "dir/large");
    let report = recorded.update();
    assert_eq!(seen(&report), expected(&[("dir/large", "moved", Some("b"))]), "{report:?}");
    assert_clean(&recorded, "over a tombstone");
    let blocks = recorded.connect().query_row("SELECT count(*) FROM block", [], |row| row.get(0));
    assert_eq!(blocks, Ok(0), "block values of a file that is no more");
}

#[test]
fn a_part_of_a_root_knows_the_moves_within_it() {
    let (tree, recorded) = tree();
    rename(&tree, "keep/1", "keep/sub/x");
    rename(&tree, "a", "keep/y");
    let scope = Recorded::inside(&tree.path("keep"));
    let report = scope.update();
    let within: ExpectedFindings = &[
        ("keep/sub", "new", None),
        ("keep/sub/x", "moved", Some("keep/1")),
        ("keep/y", "new", None),
    ];
    assert_eq!(seen(&report), expected(within), "{report:?}");
    let report = recorded.update();
    assert_eq!(seen(&report), expected(&[("a", "missing", None)]), "{report:?}");
    assert_clean(&recorded, "both");
}

#[test]
fn another_root_is_another_record() {
    let tree = Tree::new();
    tree.write("inner/file", content(50, 1));
    Recorded::inside(&tree.path("inner")).record();
    for number in 0..3 {
        tree.write(["a", "b", "c"][number], content(3000 + number, 1));
    }
    let outer = Recorded::inside(tree.root());
    outer.record();
    rename(&tree, "a", "inner/a");
    let report = outer.update();
    let by_root = report.findings().map(|f| (f["path"].clone(), f["verdict"].clone()));
    let by_root: Vec<_> = by_root.collect();
    let expected = [("a", "missing"), ("a", "new")];
    assert_eq!(
        by_root,
        expected.map(|(path, verdict)| (json!(path), json!(verdict))),
        "{report:?}"
    );
}

#[test]
fn further_digests_move_with_a_file_that_was_copied() {
    let (tree, recorded) = tree();
    assert_eq!(recorded.run("update", &["--digest", "blake3,sha512"]).code, 0);
    assert_eq!(recorded.run("update", &["--digest", "blake3"]).code, 0);
    let sha512 = recorded.row("a")["sha512"].clone();
    move_by_copy(&tree, "a", "c");
    assert_eq!(recorded.update().path_verdicts(), path_verdicts(&[("c", "moved")]));
    assert_eq!(recorded.row("c")["sha512"], sha512);
    assert_ne!(sha512, Value::Null);
    assert_clean(&recorded, "copied");
}
