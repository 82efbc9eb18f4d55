//! Records that travel with the data, in a file of each folder: written from the
//! catalog without reading a byte, believed only as far as their own digests go,
//! and good for judging a folder that was taken away from its catalog.
#![cfg(target_os = "linux")]

use crate::support;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::support::layout::*;
use crate::support::{Mounted, Recorded, Tree, content, mtime_ns, or_skip, path_verdicts};
use serde_json::json;

#[test]
fn folders_carry_their_records_and_nothing_is_read_for_it() {
    let (tree, recorded) = recorded();
    let report = recorded.run("update", &FOLDER);
    assert_eq!(seen(&report), (0, 0, counts(&[("written", 4)])), "{report:?}");
    assert_eq!(files_of_folders(&tree).len(), 4);
    let lines = parse(&tree.read(Path::new("sub").join(FILE)));
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!((&lines[0]["path"], &lines[1]["path_bytes"]), (&json!("b"), &json!("YmFk/w==")));
    assert_eq!(lines[0]["size"], 2_000_000);
    assert_eq!(lines[0]["mtime_ns"], tree.mtime("sub/b"));
    let digest = blake3::hash(&content(2_000_000, 2)).to_hex().to_string();
    assert_eq!(lines[0]["blake3"], digest);
    let untouched = mtime_ns(&tree.path(Path::new("sub").join(FILE)));
    for command in ["status", "verify", "update"] {
        let report = recorded.run(command, &PLAIN);
        assert_eq!(
            (report.code, report.path_verdicts(), carriers(&report).len()),
            (0, vec![], 0),
            "{command}"
        );
    }
    assert_eq!(mtime_ns(&tree.path(Path::new("sub").join(FILE))), untouched);
    // What changes is followed, what goes leaves.
    tree.write("sub/deep/c", "other");
    tree.write("sub/deep/new", "new");
    fs::remove_file(tree.path("sub-2/d")).expect("remove");
    let report = recorded.update();
    assert_eq!(carriers(&report), counts(&[("removed", 1), ("written", 1)]).into_iter().collect());
    assert_eq!(parse(&tree.read(Path::new("sub/deep").join(FILE))).len(), 2);
    assert!(!tree.path("sub-2").join(FILE).exists());
    // A run that was cut off, and one that was lost.
    fs::write(tree.path("sub/.fsure-folder.jsonl.making"), "{\"type\":").expect("write");
    fs::remove_file(tree.path("sub").join(FILE)).expect("remove");
    let report = recorded.verify();
    assert_eq!(seen(&report).2, counts(&[("behind", 1)]), "{report:?}");
    assert_eq!((report.code, report.path_verdicts()), (1, vec![]), "{report:?}");
    assert_eq!(seen(&recorded.update()).2, counts(&[("written", 1)]));
    assert!(!tree.path("sub/.fsure-folder.jsonl.making").exists());
    let report = recorded.run("update", &TREE);
    assert_eq!(seen(&report), (0, 0, counts(&[("removed", 3)])), "{report:?}");
    assert_eq!(files_of_folders(&tree), Vec::<PathBuf>::new());
    assert_eq!(recorded.verify().code, 0);
}

#[test]
fn a_folder_moved_alone_is_judged_by_what_it_carries() {
    let (tree, recorded) = recorded();
    assert_eq!(recorded.run("update", &FOLDER).code, 0);
    let elsewhere = Tree::new();
    copy(&tree.path("sub"), &elsewhere.path("sub"));
    let alone = Recorded::inside(&elsewhere.path("sub"));
    let report = alone.verify();
    assert_eq!(
        (report.code, report.path_verdicts(), report.count("ok")),
        (0, vec![], 3),
        "{report:?}"
    );
    assert!(report.stderr.contains("no catalog is here"), "{}", report.stderr);
    assert_eq!(carriers(&report), counts(&[("used", 3)]).into_iter().collect());
    assert!(!alone.root.join(".fsure").exists(), "verify writes nothing");
    elsewhere.flip("sub/b", 1_500_000);
    elsewhere.write("sub/deep/c", "edited");
    fs::remove_file(elsewhere.path(OsStr::from_bytes(b"sub/bad\xff"))).expect("remove");
    let expected =
        path_verdicts(&[("b", "damaged-copy"), ("bad\u{fffd}", "missing"), ("deep/c", "modified")]);
    let report = alone.verify();
    assert_eq!((report.code, report.path_verdicts()), (3, expected), "{report:?}");
    // `update` does not bury it.
    let report = alone.update();
    assert_eq!(
        (report.code, report.verdict("b").as_deref()),
        (3, Some("damaged-copy")),
        "{report:?}"
    );
    let report = alone.verify();
    assert_eq!(
        (report.code, report.path_verdicts()),
        (3, path_verdicts(&[("b", "damaged-copy")])),
        "{report:?}"
    );
    elsewhere.flip("sub/b", 1_500_000);
    let report = alone.update();
    assert_eq!(report.code, 0, "{report:?}");
    assert_eq!(alone.verify().code, 0);
}

#[test]
fn what_carries_none_is_no_record() {
    let tree = Tree::new();
    fill(&tree);
    let report = Recorded::inside(tree.root()).verify();
    assert_eq!(report.code, 5, "{report:?}");
}

#[test]
fn a_damaged_file_of_a_folder_is_never_believed() {
    let (tree, recorded) = recorded();
    assert_eq!(recorded.run("update", &FOLDER).code, 0);
    let path = tree.path("sub").join(FILE);
    let sound = fs::read(&path).expect("read");
    let at = sound.len() as u64 / 2;
    let mut file = fs::OpenOptions::new().read(true).write(true).open(&path).expect("open");
    support::flip_byte(&mut file, at);
    let elsewhere = Tree::new();
    copy(&tree.path("sub"), &elsewhere.path("sub"));
    let alone = Recorded::inside(&elsewhere.path("sub"));
    let report = alone.verify();
    let expected = path_verdicts(&[("b", "new"), ("bad\u{fffd}", "new")]);
    assert_eq!((report.code, report.path_verdicts()), (6, expected), "{report:?}");
    assert!(report.stderr.contains("fails its own digest"), "{}", report.stderr);
    let report = alone.update();
    assert_eq!(report.code, 6, "{report:?}");
    assert!(!alone.root.join(".fsure").exists(), "nothing is recorded");
    // Beside its catalog it is reported and made anew.
    for (command, counted) in [("verify", "behind"), ("update", "written")] {
        let report = recorded.run(command, &PLAIN);
        assert_eq!(
            (report.code, seen(&report).2),
            (
                6,
                counts(&[(counted, 1), ("damaged", 1)])
                    .into_iter()
                    .collect::<BTreeMap<_, _>>()
                    .into_iter()
                    .collect()
            ),
            "{report:?}"
        );
    }
    assert_eq!(fs::read(&path).expect("read"), sound);
    assert_eq!(recorded.verify().code, 0);
}

#[test]
fn a_conflict_is_reported_and_left_until_the_user_decides() {
    let (tree, recorded) = recorded();
    assert_eq!(recorded.run("update", &FOLDER).code, 0);
    let path = tree.path("sub").join(FILE);
    let sound = fs::read(&path).expect("read");
    forge(&path, "b");
    let forged = fs::read(&path).expect("read");
    assert_ne!(forged, sound);
    for command in ["verify", "update"] {
        let report = recorded.run(command, &PLAIN);
        assert_eq!((report.code, seen(&report).2), (6, counts(&[("conflicts", 1)])), "{report:?}");
        assert!(
            report.stderr.contains("sub/b: its sidecar and the record give different content"),
            "{}",
            report.stderr
        );
    }
    assert_eq!(fs::read(&path).expect("read"), forged, "left as it is");
    // The word of a user who has not had it read settles nothing.
    let accept = ["--accept".into(), tree.path("sub/b")];
    let report = recorded.run("update", &accept);
    assert_eq!((report.code, seen(&report).2), (6, counts(&[("conflicts", 1)])), "{report:?}");
    let report = recorded.run("update", &[&accept[..], &["--full".into()]].concat());
    assert_eq!((report.code, seen(&report).2), (0, counts(&[("written", 1)])), "{report:?}");
    assert_eq!(fs::read(&path).expect("read"), sound);
}

/// Damage on the way into a tree that has a record: the new place records what
/// it finds, and the file that came with it says otherwise.
#[test]
fn a_damaged_folder_moved_into_a_recorded_one_is_a_conflict() {
    let (tree, one) = recorded();
    assert_eq!(one.run("update", &FOLDER).code, 0);
    let (other, into) = recorded();
    assert_eq!(into.run("update", &FOLDER).code, 0);
    copy(&tree.path("sub"), &other.path("came"));
    other.flip("came/b", 9);
    let report = into.update();
    assert_eq!((report.code, carriers(&report)["conflicts"]), (6, 1), "{report:?}");
}

/// A file that came with its record and is not recorded here must not lose it.
#[test]
fn what_is_not_recorded_keeps_what_came_with_it() {
    let (tree, one) = recorded();
    assert_eq!(one.run("update", &FOLDER).code, 0);
    let (other, into) = recorded();
    copy(&tree.path("sub"), &other.path("came"));
    let path = other.path("came").join(FILE);
    let sound = fs::read(&path).expect("read");
    for excluded in ["came/b", "came/*"] {
        let report = into.run("update", &["--layout", "folder", "--exclude", excluded]);
        assert_eq!(report.code, 0, "{report:?}");
        assert_eq!(fs::read(&path).expect("read"), sound, "{excluded}");
    }
}

#[test]
fn a_user_s_own_file_of_that_name_is_left_alone() {
    let (tree, recorded) = recorded();
    tree.write(Path::new("sub").join(FILE), "mine");
    for (layout, others) in [(FOLDER, ("written", 3)), (TREE, ("removed", 3))] {
        let report = recorded.run("update", &layout);
        let expected = BTreeMap::from([(others.0.to_owned(), others.1), ("refused".to_owned(), 1)]);
        assert_eq!((report.code, carriers(&report)), (5, expected), "{report:?}");
        assert_eq!(tree.read(Path::new("sub").join(FILE)), b"mine");
    }
}

/// A folder cannot hide behind the name of a carrier.
#[test]
fn a_folder_of_that_name_is_recorded_as_any_other() {
    let (tree, recorded) = recorded();
    let inside = Path::new("sub").join(FILE).join("data");
    tree.write(&inside, content(100, 9));
    tree.age(&inside);
    let folder = "sub/.fsure-folder.jsonl";
    let new = path_verdicts(&[(folder, "new"), ("sub/.fsure-folder.jsonl/data", "new")]);
    let report = recorded.verify();
    assert_eq!((report.code, report.path_verdicts()), (1, new), "{report:?}");
    assert_eq!(recorded.update().code, 0);
    tree.flip(&inside, 5);
    let report = recorded.verify();
    let damaged = path_verdicts(&[("sub/.fsure-folder.jsonl/data", "altered")]);
    assert_eq!((report.code, report.path_verdicts()), (3, damaged), "{report:?}");
    tree.flip(&inside, 5);
    let report = recorded.run("update", &FOLDER);
    assert_eq!((report.code, carriers(&report)["refused"]), (5, 1), "{report:?}");
    assert_eq!(tree.read(&inside), content(100, 9));
}

#[test]
fn where_a_file_is_made_only_what_a_killed_run_left_is_replaced() {
    let (tree, recorded) = recorded();
    let making = Path::new("sub/.fsure-folder.jsonl.making");
    tree.write(making, "mine");
    let report = recorded.run("update", &FOLDER);
    let expected = counts(&[("refused", 1), ("written", 3)]);
    assert_eq!((report.code, seen(&report).2), (5, expected), "{report:?}");
    let report = recorded.run("update", &TREE);
    let expected = counts(&[("refused", 1), ("removed", 3)]);
    assert_eq!((report.code, seen(&report).2), (5, expected), "{report:?}");
    assert_eq!(tree.read(making), b"mine");
    for left in ["", "\0\0", "{\"type\":\"fsu", "{\"type\":\"fsure-folder\",\"version\":1}\n{"] {
        fs::remove_file(tree.path(making)).expect("remove");
        assert_eq!(recorded.run("update", &FOLDER).code, 0);
        tree.write(making, left);
        let report = recorded.run("update", &TREE);
        assert_eq!(report.code, 0, "{left}: {report:?}");
        assert!(!tree.path(making).exists(), "{left}");
        tree.write(making, left);
    }
}

/// The catalog itself is what such a record would be of.
#[test]
fn what_names_fsure_s_own_is_damaged() {
    let (tree, recorded) = recorded();
    assert_eq!(recorded.run("update", &FOLDER).code, 0);
    let text = fs::read_to_string(tree.path(FILE)).expect("read");
    let text = text.replace("\"path\":\"a\"", "\"path\":\".fsure\"");
    fs::write(tree.path(FILE), text).expect("write");
    forge(&tree.path(FILE), "none");
    fs::remove_dir_all(tree.path(".fsure")).expect("remove");
    let report = recorded.verify();
    assert_eq!((report.code, carriers(&report)["damaged"]), (6, 1), "{report:?}");
    assert_eq!(recorded.update().code, 6);
    assert!(!tree.path(".fsure").exists());
}

#[test]
fn a_record_that_lost_rows_takes_nothing_from_what_travels() {
    let (tree, recorded) = recorded();
    assert_eq!(recorded.run("update", &FOLDER).code, 0);
    let path = tree.path("sub").join(FILE);
    let sound = fs::read(&path).expect("read");
    recorded
        .connect()
        .execute("DELETE FROM record WHERE path = CAST('sub/b' AS BLOB)", [])
        .expect("lose a row");
    // Without its file nothing is to be recorded, and nothing else would tell.
    fs::remove_file(tree.path("sub/b")).expect("remove");
    let report = recorded.update();
    assert_eq!((report.code, report.path_verdicts()), (6, vec![]), "{report:?}");
    assert_eq!(fs::read(&path).expect("read"), sound);
}

#[test]
fn a_root_below_keeps_what_is_its_own() {
    let (tree, outer) = recorded();
    let inner = Recorded::inside(&tree.path("sub"));
    fs::create_dir(tree.path("sub/.fsure")).expect("make a folder");
    // By name, or the outer record would be found.
    let named = Recorded::outside(&inner.root, &inner.catalog);
    assert_eq!(named.run("update", &FOLDER).code, 0);
    let kept = fs::read(tree.path("sub").join(FILE)).expect("read");
    let report = outer.run("update", &["--layout", "folder", "--accept-all"]);
    assert!(report.code < 2, "{report:?}");
    let report = outer.update();
    assert_eq!((report.code, carriers(&report).len()), (0, 0), "{report:?}");
    let report = outer.run("update", &TREE);
    assert!(report.code < 2, "{report:?}");
    assert!(!tree.path(FILE).exists());
    // The inner root was asked for the layout too, as any option is for all.
    let report = inner.run("update", &FOLDER);
    assert_eq!(report.code, 0, "{report:?}");
    assert_eq!(fs::read(tree.path("sub").join(FILE)).expect("read"), kept);
    let report = outer.update();
    assert_eq!(report.code, 0, "{report:?}");
    assert_eq!(fs::read(tree.path("sub").join(FILE)).expect("read"), kept);
}

/// The outer record of a folder dates from before the folder was a root.
#[test]
fn nothing_is_written_into_a_root_below() {
    let (tree, outer) = recorded();
    let inner = Recorded::inside(&tree.path("sub"));
    fs::create_dir(tree.path("sub/.fsure")).expect("make a folder");
    assert_eq!(Recorded::outside(&inner.root, &inner.catalog).run("update", &PLAIN).code, 0);
    // The run goes on to the inner root; its layout is to be another one.
    assert_eq!(outer.run("update", &FOLDER).code, 5, "recorded files are left out");
    assert_eq!(inner.run("update", &TREE).code, 0);
    let report = outer.update();
    assert_eq!((report.code, carriers(&report).len()), (5, 0), "{report:?}");
    assert_eq!(files_of_folders(&tree), [Path::new(FILE), &Path::new("sub-2").join(FILE)]);
    assert_eq!(carriers(&outer.verify()).len(), 0);
}

#[test]
fn nothing_is_written_where_a_file_system_is_not_mounted() {
    let test = "nothing_is_written_where_a_file_system_is_not_mounted";
    let (tree, recorded) = recorded();
    let mounted = or_skip(test, Mounted::tmpfs(&tree.path("empty"), 16_384));
    let Some(mounted) = mounted else { return };
    tree.write("empty/below", content(100, 9));
    let report = recorded.run("update", &["--layout", "folder", "--cross-file-systems"]);
    assert_eq!((report.code, seen(&report).2), (0, counts(&[("written", 5)])), "{report:?}");
    drop(mounted);
    for command in ["update", "verify"] {
        let report = recorded.run(command, &PLAIN);
        assert_eq!((report.code, seen(&report).2), (4, vec![]), "{command}: {report:?}");
    }
    assert!(!tree.path("empty").join(FILE).exists());
}
