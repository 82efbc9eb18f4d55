//! Ways in which something could pass for well without having been looked at,
//! or end a run that should go on. Each was found by reviewing the code, not
//! by using it, which is why it has a test of its own.
#![cfg(target_os = "linux")]

use std::os::unix::fs::symlink;
use std::time::Duration;

use crate::support::{Recorded, Tree, content, fsure, fsure_json};

const SECOND: i64 = 1_000_000_000;

fn recorded(files: &[&str]) -> (Tree, Recorded) {
    let tree = Tree::new();
    for (seed, file) in files.iter().enumerate() {
        tree.write(file, content(3000, seed as u64));
    }
    let recorded = Recorded::inside(tree.root());
    std::thread::sleep(Duration::from_millis(60));
    recorded.record();
    (tree, recorded)
}

#[test]
fn a_recorded_file_that_a_pattern_leaves_out_is_no_file_as_recorded() {
    let (tree, recorded) = recorded(&["keep/a", "keep/b", "photos/c"]);
    tree.write(".fsureignore", "photos/\n.fsureignore\n");
    let report = recorded.verify();
    assert_eq!(report.code, 1, "{report:?}");
    assert_eq!(report.summary()["recorded_left_out"], 1, "{report:?}");
    let text = recorded.text("verify", &[""; 0]).stdout;
    assert!(text.contains("LEFT OUT") && !text.contains("All "), "{text}");
    // What was just said on the command line is not a surprise, but it is reported.
    std::fs::remove_file(tree.path(".fsureignore")).unwrap();
    let report = recorded.run("verify", &["--exclude", "photos/"]);
    assert_eq!((report.code, &report.summary()["recorded_left_out"]), (0, &1.into()), "{report:?}");
    tree.write(".fsureignore", "photos/\n.fsureignore\n");
    let photos = tree.path("photos");
    let report = recorded.run("update", &["--accept", photos.to_str().unwrap()]);
    assert_eq!(report.code, 0, "{report:?}");
    assert_eq!(recorded.verify().code, 0);
}

#[test]
fn no_record_is_made_of_an_empty_folder() {
    let tree = Tree::new();
    let root = tree.root().to_str().unwrap();
    let run = fsure(&["update", root]);
    assert_eq!(run.code, 5, "{}", run.stderr);
    assert!(run.stderr.contains("mount"), "{}", run.stderr);
    assert!(!tree.path(".fsure").exists());
    assert_eq!(fsure(&["update", root, "--force"]).code, 0);
}

#[test]
fn a_missing_nested_root_is_reported_until_it_is_forgotten() {
    let (tree, outer) = recorded(&["a", "b"]);
    tree.write("disk/c", "x");
    // A root of its own, as if it had been recorded before it was put here.
    let inner = Recorded::outside(&tree.path("disk"), &tree.path("inner.db"));
    inner.record();
    std::fs::create_dir(tree.path("disk/.fsure")).unwrap();
    std::fs::rename(tree.path("inner.db"), tree.path("disk/.fsure/catalog.db")).unwrap();
    std::fs::remove_file(tree.path("inner.db.lock")).unwrap();
    assert_eq!(outer.update().code, 0);
    std::fs::remove_dir_all(tree.path("disk")).unwrap();
    std::fs::create_dir(tree.path("disk")).unwrap();
    for command in ["verify", "status", "update"] {
        let report = outer.run(command, &[""; 0]);
        assert_eq!((report.code, &report.summary()["absent_roots"]), (5, &1.into()), "{report:?}");
    }
    let disk = tree.path("disk");
    let report = outer.run("update", &["--accept", disk.to_str().unwrap()]);
    assert_eq!(report.code, 0, "{report:?}");
    assert_eq!(outer.verify().code, 0);
}

#[test]
fn damage_under_a_date_that_lost_its_fraction_is_damage() {
    let (tree, recorded) = recorded(&["a", "b"]);
    let whole = tree.mtime("a").div_euclid(SECOND) * SECOND;
    tree.flip("a", 100);
    tree.set_mtime("a", whole);
    assert_eq!(recorded.verify().verdict("a").as_deref(), Some("altered"));
    let before = recorded.row("a");
    assert_eq!(recorded.update().code, 3);
    assert_eq!(recorded.row("a"), before);
}

#[test]
fn a_link_that_became_a_file_is_of_another_type_and_can_be_accepted() {
    let (tree, recorded) = recorded(&["a", "b"]);
    symlink("nowhere", tree.path("l")).unwrap();
    recorded.update();
    std::fs::remove_file(tree.path("l")).unwrap();
    tree.write("l", "a file now");
    for command in ["verify", "update"] {
        let report = recorded.run(command, &[""; 0]);
        assert_eq!((report.code, report.verdict("l").as_deref()), (1, Some("type-changed")));
    }
    let path = tree.path("l");
    assert_eq!(recorded.run("update", &["--accept", path.to_str().unwrap()]).code, 0);
    assert_eq!(recorded.verify().code, 0);
}

#[test]
fn a_folder_that_became_a_link_takes_its_files_along() {
    let (tree, recorded) = recorded(&["a", "b", "c", "d/e"]);
    std::fs::rename(tree.path("d"), tree.path("real")).unwrap();
    symlink("real", tree.path("d")).unwrap();
    let report = recorded.verify();
    assert_eq!(report.verdict("real/e").as_deref(), Some("moved"), "{report:?}");
    assert_eq!(report.verdict("d").as_deref(), Some("type-changed"), "{report:?}");
}

#[test]
fn a_bad_pattern_file_is_reported_and_leaves_nothing_out() {
    let (tree, recorded) = recorded(&["a", "deep/b"]);
    tree.write("deep/.fsureignore", "b\n[z\n");
    let report = recorded.verify();
    assert_eq!(report.count("ok"), 2, "{report:?}");
    assert!(report.stderr.contains("deep/.fsureignore, line 2"), "{report:?}");
}

#[test]
fn the_record_is_not_written_through_links_of_the_tree() {
    let (tree, elsewhere) = (Tree::new(), Tree::new());
    tree.write("a", "x");
    symlink(elsewhere.root(), tree.path(".fsure")).unwrap();
    let root = tree.root().to_str().unwrap();
    assert_eq!(fsure(&["update", root]).code, 2);
    assert_eq!(std::fs::read_dir(elsewhere.root()).unwrap().count(), 0);
    let (tree, recorded) = recorded(&["a", "b"]);
    std::fs::remove_file(tree.path(".fsure/catalog.db.lock")).unwrap();
    let victim = elsewhere.write("victim", "precious");
    symlink(&victim, tree.path(".fsure/catalog.db.lock")).unwrap();
    recorded.verify();
    assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
    // Nor is what is fsure's own recorded as a tree.
    let inside = tree.path(".fsure");
    assert_eq!(fsure(&["update", inside.to_str().unwrap()]).code, 2);
}

#[test]
fn what_is_accepted_may_lie_in_any_root_of_the_call() {
    let ((one, _), (two, _)) = (recorded(&["a", "b"]), recorded(&["a", "b"]));
    for tree in [&one, &two] {
        tree.flip("a", 10);
    }
    let [a, b] = [one.path("a"), two.path("a")];
    let (first, second) = (one.root().to_str().unwrap(), two.root().to_str().unwrap());
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    let report = fsure_json(&["update", first, second, "--accept", a, "--accept", b]);
    assert_eq!(report.code, 0, "{report:?}");
    assert_eq!(fsure(&["verify", first, second]).code, 0);
    assert_eq!(fsure(&["update", first, "--accept", b]).code, 2);
}
