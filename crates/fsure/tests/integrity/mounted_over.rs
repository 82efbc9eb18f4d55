//! A folder of the same file system that is mounted over a recorded one (a bind
//! mount): nothing that is hidden by it is missing, and nothing in it is new. A
//! mount that was there when it was recorded is a folder like any other.
#![cfg(target_os = "linux")]

use crate::support::{
    Mounted, Recorded, Report, Tree, content, fsure_json, or_skip, path_verdicts,
};

fn assert_clean(report: &Report, case: &str) {
    assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{case}: {report:?}");
}

/// A tree with a recorded folder `sub`, and another folder beside the tree.
fn setting() -> (Tree, Tree, Recorded) {
    let (tree, other) = (Tree::new(), Tree::new());
    for number in 0..10 {
        tree.write(format!("file {number}"), content(100, number));
    }
    tree.write("sub/a", content(5000, 1));
    tree.write("sub/deep/b", content(5000, 2));
    other.write("c", content(5000, 3));
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    (tree, other, recorded)
}

#[test]
fn what_is_hidden_by_a_mount_is_neither_missing_nor_replaced() {
    let (tree, other, recorded) = setting();
    let mounted = Mounted::bind(other.root(), &tree.path("sub"));
    let Some(mounted) = or_skip("what_is_hidden_by_a_mount", mounted) else { return };
    let rows = recorded.rows();
    for command in ["status", "verify", "update", "scrub"] {
        let report = recorded.run(command, &[""; 0]);
        let hidden: Vec<_> = report.path_verdicts().into_iter().collect();
        let mut expected = vec![("sub/a", "ignored"), ("sub/deep/b", "ignored")];
        if command != "scrub" {
            expected = vec![
                ("sub", "ignored"),
                ("sub/a", "ignored"),
                ("sub/deep", "ignored"),
                ("sub/deep/b", "ignored"),
            ];
        }
        assert_eq!((report.code, hidden), (5, path_verdicts(&expected)), "{command}: {report:?}");
        let why = report.finding("sub/a").expect("a finding")["reason"].clone();
        assert!(why.as_str().expect("a reason").contains("mounted over"), "{command}: {why}");
    }
    // A part of it, and a name in it that is there and was there.
    other.write("a", content(5000, 4));
    for path in ["sub", "sub/a", "sub/deep"] {
        for command in ["verify", "update"] {
            let path = tree.path(path).to_str().expect("text").to_owned();
            let report = fsure_json(&[command, &path]);
            assert_eq!(report.code, 5, "{command} {path}: {report:?}");
            assert_eq!(report.count("ok") + report.count("new"), 0, "{command} {path}: {report:?}");
        }
    }
    for (path, row) in recorded.rows() {
        // The others were verified.
        if path.starts_with(b"sub") {
            assert_eq!(row, rows[&path], "{}", path.escape_ascii());
        }
    }
    assert_eq!(recorded.rows().len(), rows.len());
    drop(mounted);
    assert_clean(&recorded.verify(), "unmounted");
}

#[test]
fn the_user_may_take_what_is_mounted_for_the_folder() {
    let (tree, other, recorded) = setting();
    let mounted = Mounted::bind(other.root(), &tree.path("sub"));
    let Some(_mounted) = or_skip("the_user_may_take_what_is_mounted", mounted) else { return };
    let sub = tree.path("sub").to_str().expect("text").to_owned();
    let report = recorded.run("update", &["--accept", &sub]);
    assert_eq!(report.code, 0, "{report:?}");
    let report = recorded.update();
    assert_eq!((report.code, report.verdict("sub/c").as_deref()), (0, Some("new")), "{report:?}");
    assert_clean(&recorded.verify(), "accepted");
}

#[test]
fn a_mount_that_is_as_recorded_is_a_folder_like_any_other() {
    let (tree, other) = (Tree::new(), Tree::new());
    tree.write("file", "x");
    std::fs::create_dir(tree.path("sub")).expect("make");
    other.write("c", content(5000, 3));
    let mount = || Mounted::bind(other.root(), &tree.path("sub"));
    let Some(mounted) = or_skip("a_mount_that_is_as_recorded", mount()) else { return };
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    assert_eq!(recorded.verify().count("ok"), 2);
    drop(mounted);
    let mounted = mount().expect("mount it again");
    for command in ["status", "verify", "update", "scrub"] {
        assert_clean(&recorded.run(command, &[""; 0]), command);
    }
    drop(mounted);
    // Made anew, recorded, and then mounted over itself.
    std::fs::remove_dir(tree.path("sub")).expect("remove");
    tree.write("in the way of its inode", "y");
    tree.write("sub/c", content(5000, 3));
    assert_eq!(recorded.run("update", &["--accept-all"]).code, 0);
    let _itself = Mounted::bind(&tree.path("sub"), &tree.path("sub")).expect("mount");
    for command in ["status", "verify", "update", "scrub"] {
        assert_clean(&recorded.run(command, &[""; 0]), command);
    }
    // A root that is reached by a mount, and one with a mount inside.
    let elsewhere = Tree::new();
    let _root = Mounted::bind(tree.root(), elsewhere.root()).expect("mount");
    let seen = Recorded::inside(elsewhere.root());
    assert_clean(&seen.verify(), "the same root by another way");
}
