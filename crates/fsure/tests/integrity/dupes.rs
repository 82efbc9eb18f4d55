//! Files of equal content, as they are now: reported once each, hard links apart
//! from copies, nothing by a record that is out of date, no byte read in vain
//! and none written.
#![cfg(unix)]

use std::ffi::OsString;
use std::fs;

use crate::support::{Recorded, Report, Tree, content, fsure_json, path_of};
use serde_json::{Value, json};

fn dupes(recorded: &Recorded) -> Report {
    recorded.run("dupes", &[""; 0])
}

/// Group, path, whether it is a link.
fn reported(report: &Report) -> Vec<(u64, String, bool)> {
    let lines = report.lines.iter().filter(|line| line["type"] == "duplicate");
    let fields = |line: &Value| {
        let path = String::from_utf8_lossy(&path_of(line)).into_owned();
        (line["group"].as_u64().expect("a number"), path, line["is_link"] == true)
    };
    lines.map(fields).collect()
}

/// Groups without their order, which is that of digests and inodes.
fn groups(report: &Report) -> Vec<Vec<String>> {
    let reported = reported(report);
    let count = reported.iter().map(|(group, ..)| *group).max().unwrap_or(0);
    let mut all: Vec<_> = (1..=count)
        .map(|number| {
            let members = reported.iter().filter(|(group, ..)| *group == number);
            let mut paths: Vec<_> = members.map(|(_, path, _)| path.clone()).collect();
            paths.sort();
            paths
        })
        .collect();
    all.sort();
    all
}

/// Groups, files, links, bytes saved and files read.
fn counts(report: &Report) -> [u64; 5] {
    ["groups", "files", "links", "bytes_saved", "files_read"]
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
fn copies_are_reported_and_links_and_empty_files_are_not_copies() {
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
    let links = reported(&report).into_iter().filter(|(.., is_link)| *is_link).count();
    assert_eq!(links, 2, "{report:?}");
    let text = recorded.text("dupes", &[""; 0]).stdout;
    assert_eq!(text.matches("(hard link to the file above)").count(), 2, "{text}");
    assert!(text.contains("3.0 MiB each, "), "{text}");
    assert!(
        text.contains("5 files with the same content in 2 groups; one of each would save 3.0 MiB"),
        "{text}"
    );
}

#[test]
fn what_is_not_as_recorded_is_read_first_and_nothing_is_recorded() {
    const A: &[&str] = &["a", "x/a", "y/a"];
    const B: &[&str] = &["b", "x/b"];
    type Edit = fn(&Tree);
    let edits: [(Edit, &[&[&str]], u64); 6] = [
        // Other content of the same size, dated anew and dated back.
        (|tree| _ = tree.write("x/b", content(3 << 20, 9)), &[A], 1),
        (|tree| tree.flip("x/b", 77), &[A], 1),
        (|tree| fs::remove_file(tree.path("x/b")).expect("remove"), &[A], 0),
        // The same content in a file that is another one by its stat.
        (
            |tree| {
                fs::copy(tree.path("x/b"), tree.path("new")).expect("copy");
                fs::rename(tree.path("new"), tree.path("x/b")).expect("rename");
            },
            &[A, B],
            1,
        ),
        // A file that became equal to others, and one that is not recorded.
        (|tree| _ = tree.write("single", content(3 << 20, 2)), &[A, &["b", "single", "x/b"]], 1),
        (|tree| _ = tree.write("new", content(3 << 20, 2)), &[A, &["b", "new", "x/b"]], 1),
    ];
    for (number, (edit, expected, read)) in edits.into_iter().enumerate() {
        let (tree, recorded) = tree();
        // It has another name, which would change with it.
        fs::remove_file(tree.path("x/link")).expect("remove");
        recorded.record();
        let before = recorded.catalog_bytes();
        edit(&tree);
        let report = dupes(&recorded);
        assert_eq!((report.code, groups(&report)), (0, owned(expected)), "{number}: {report:?}");
        assert_eq!(counts(&report)[4], read, "{number}: {report:?}");
        assert!(recorded.catalog_bytes() == before, "{number}: it wrote");
        let text = recorded.text("dupes", &[""; 0]).stdout;
        let is_reported = text.contains("Read for this: 1 file without a current record");
        assert_eq!(is_reported, read == 1, "{number}: {text}");
    }
}

fn owned(groups: &[&[&str]]) -> Vec<Vec<String>> {
    groups.iter().map(|paths| paths.iter().map(|path| (*path).to_owned()).collect()).collect()
}

#[test]
fn without_a_record_only_files_of_one_size_are_read() {
    let tree = Tree::new();
    for (path, size, seed) in
        [("a", 5000, 1), ("b", 5000, 1), ("c", 5000, 2), ("d", 6000, 1), ("e", 0, 0), ("f", 0, 0)]
    {
        tree.write(path, content(size, seed));
    }
    let report = fsure_json(&[OsString::from("dupes"), tree.root().into()]);
    assert_eq!((report.code, groups(&report)), (0, owned(&[&["a", "b"]])), "{report:?}");
    assert_eq!(counts(&report), [1, 2, 0, 5000, 3], "{report:?}");
    assert_eq!(report.summary()["bytes_read"], json!(15_000));
    assert!(!tree.path(".fsure").exists(), "it wrote");
}

#[test]
fn an_unplugged_disk_has_no_duplicates_to_report() {
    let (tree, recorded) = tree();
    let beside = Tree::new();
    fs::rename(&recorded.catalog, beside.path("catalog.db")).expect("rename");
    for entry in fs::read_dir(tree.root()).expect("list") {
        let path = entry.expect("a name").path();
        let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        removed.expect("remove");
    }
    let outside = Recorded::outside(tree.root(), &beside.path("catalog.db"));
    let report = dupes(&outside);
    assert_eq!((report.code, &report.summary()["is_offline"]), (5, &json!(true)), "{report:?}");
    let text = outside.text("dupes", &[""; 0]).stdout;
    assert!(text.contains("OFFLINE: nothing is here, while the record is not empty"), "{text}");
}

#[test]
#[cfg(target_os = "linux")]
fn an_unreadable_file_is_not_a_duplicate_and_is_reported() {
    use crate::support::{Fault, FaultyFs, or_skip};
    let (tree, _recorded) = tree();
    let Some(view) = or_skip("an_unreadable_file_is_not_a_duplicate", FaultyFs::new(tree.root()))
    else {
        return;
    };
    view.set([Fault::eio("x/b", 0..4096)]);
    // Another file system: nothing is believed, everything is read.
    let report = fsure_json(&[OsString::from("dupes"), view.root().into()]);
    assert_eq!((report.code, groups(&report)), (4, owned(&[&["a", "x/a", "y/a"]])), "{report:?}");
    assert!(report.stderr.contains("x/b: it could not be read"), "{}", report.stderr);
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
}

#[test]
fn a_bad_record_is_reported_and_its_file_is_read() {
    let (tree, recorded) = tree();
    recorded.edit("UPDATE record SET verified_s = 1 WHERE path = CAST('x/b' AS BLOB)");
    tree.flip("x/b", 5);
    let report = dupes(&recorded);
    assert_eq!((report.code, groups(&report).len(), counts(&report)[4]), (6, 1, 1), "{report:?}");
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
