//! Files of equal content, from the record alone: told once each, hard links
//! apart from copies, and nothing by a record that is out of date.
#![cfg(unix)]

mod support;

use std::ffi::OsString;
use std::fs;

use serde_json::{Value, json};
use support::{Recorded, Report, Tree, content, fsure_json, path_of};

fn dupes(recorded: &Recorded) -> Report {
    recorded.run("dupes", &[""; 0])
}

/// Group, path, whether it is a link.
fn told(report: &Report) -> Vec<(u64, String, bool)> {
    let lines = report.lines.iter().filter(|line| line["type"] == "duplicate");
    let fields = |line: &Value| {
        let path = String::from_utf8_lossy(&path_of(line)).into_owned();
        (line["group"].as_u64().expect("a number"), path, line["is_link"] == true)
    };
    lines.map(fields).collect()
}

/// Groups without their order, which is that of digests and inodes.
fn groups(report: &Report) -> Vec<Vec<String>> {
    let told = told(report);
    let count = told.iter().map(|(group, ..)| *group).max().unwrap_or(0);
    let mut all: Vec<_> = (1..=count)
        .map(|number| {
            let members = told.iter().filter(|(group, ..)| *group == number);
            let mut paths: Vec<_> = members.map(|(_, path, _)| path.clone()).collect();
            paths.sort();
            paths
        })
        .collect();
    all.sort();
    all
}

fn counts(report: &Report) -> [u64; 5] {
    ["groups", "files", "links", "bytes_saved", "stale"]
        .map(|name| report.summary()[name].as_u64().expect("a number"))
}

fn tree() -> (Tree, Recorded) {
    let tree = Tree::new();
    for (path, size, seed) in [
        ("a", 5000, 1),
        ("x/a", 5000, 1),
        ("y/a", 5000, 1),
        ("b", 3 << 20, 2),
        ("x/b", 3 << 20, 2),
        ("single", 5000, 3),
        ("empty", 0, 0),
        ("x/empty", 0, 0),
    ] {
        tree.write(path, content(size, seed));
    }
    fs::hard_link(tree.path("single"), tree.path("x/link")).expect("link");
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    (tree, recorded)
}

#[test]
fn copies_are_told_and_links_and_empty_files_are_no_copies() {
    let (tree, recorded) = tree();
    let before = recorded.catalog_bytes();
    let report = dupes(&recorded);
    assert_eq!(report.code, 0, "{report:?}");
    assert_eq!(groups(&report), [vec!["a", "x/a", "y/a"], vec!["b", "x/b"]], "{report:?}");
    assert_eq!(counts(&report), [2, 5, 0, 2 * 5000 + (3 << 20), 0], "{report:?}");
    assert!(recorded.catalog_bytes() == before, "it wrote");

    fs::hard_link(tree.path("a"), tree.path("a-link")).expect("link");
    fs::hard_link(tree.path("y/a"), tree.path("y/link")).expect("link");
    recorded.record();
    let report = dupes(&recorded);
    assert_eq!(counts(&report), [2, 5, 2, 2 * 5000 + (3 << 20), 0], "{report:?}");
    let links = told(&report).into_iter().filter(|(.., is_link)| *is_link).count();
    assert_eq!(links, 2, "{report:?}");
    let text = recorded.text("dupes", &[""; 0]).stdout;
    assert_eq!(text.matches("(another name of the one above)").count(), 2, "{text}");
    assert!(text.contains("3.0 MiB each, "), "{text}");
    assert!(
        text.contains("5 files of equal content in 2 groups; 3.0 MiB would be saved"),
        "{text}"
    );
}

#[test]
fn what_is_not_as_recorded_is_left_out_and_counted() {
    let edits: [fn(&Tree); 4] = [
        |tree| _ = tree.write("x/b", content(3 << 20, 9)),
        |tree| tree.flip("x/b", 77),
        |tree| fs::remove_file(tree.path("x/b")).expect("remove"),
        |tree| {
            fs::copy(tree.path("x/b"), tree.path("new")).expect("copy");
            tree.set_mtime("new", tree.mtime("x/b"));
            fs::rename(tree.path("new"), tree.path("x/b")).expect("rename");
        },
    ];
    for (number, edit) in edits.into_iter().enumerate() {
        let (tree, recorded) = tree();
        edit(&tree);
        let report = dupes(&recorded);
        assert_eq!(groups(&report), [vec!["a", "x/a", "y/a"]], "edit {number}: {report:?}");
        assert_eq!(counts(&report), [1, 3, 0, 10_000, 1], "edit {number}: {report:?}");
        let text = recorded.text("dupes", &[""; 0]).stdout;
        assert!(text.contains("1 file was left out, not being as recorded"), "{text}");
    }
}

#[test]
fn a_part_is_looked_at_by_itself_and_several_paths_are_summed() {
    let (tree, recorded) = tree();
    tree.write("x/second", content(5000, 1));
    recorded.record();
    let part = fsure_json(&[OsString::from("dupes"), tree.path("x").into()]);
    assert_eq!(groups(&part), [vec!["x/a", "x/second"]], "{part:?}");
    let both = ["dupes".into(), tree.path("x").into(), tree.root().as_os_str().to_owned()];
    let report = fsure_json(&both);
    assert_eq!(counts(&report), [3, 8, 0, 4 * 5000 + (3 << 20), 0], "{report:?}");
    let none = fsure_json(&[OsString::from("dupes"), Tree::new().root().into()]);
    assert_eq!(none.code, 5, "{none:?}");
}

#[test]
fn a_bad_record_is_no_duplicate() {
    let (_tree, recorded) = tree();
    recorded.edit("UPDATE record SET verified_s = 1 WHERE path = CAST('x/b' AS BLOB)");
    let report = dupes(&recorded);
    assert_eq!((report.code, counts(&report)[0]), (6, 1), "{report:?}");
    assert_eq!(report.summary()["bad_records"], json!(1));
}

#[test]
fn files_recorded_by_another_digest_are_found_by_it() {
    let tree = Tree::new();
    for path in ["a", "b"] {
        tree.write(path, content(100, 1));
    }
    let recorded = Recorded::inside(tree.root());
    std::thread::sleep(std::time::Duration::from_millis(60));
    assert_eq!(recorded.run("update", &["--digest", "sha256"]).code, 0);
    let report = dupes(&recorded);
    assert_eq!(groups(&report), [vec!["a", "b"]], "{report:?}");
    let digest = report.lines[0]["digest"].as_str().expect("a digest");
    assert_eq!(digest.len(), 64);
}
