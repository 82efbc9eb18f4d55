//! The forms of a report: counts by verdict or all of them, lists of paths for the next
//! program in a pipe, and lines of JSON that say what they are about.
#![cfg(target_os = "linux")]

use std::path::Path;

use serde_json::Value;

use crate::support::{Run, Tree, content, fsure_in, fsure_json, typed};

/// A recorded root in which one file is altered, one is new and one is gone.
fn root() -> Tree {
    let tree = Tree::new();
    for name in ["a b", "c", "gone", "same"] {
        tree.write(Path::new("root").join(name), content(1_000, 7));
        tree.age(Path::new("root").join(name).to_str().expect("UTF-8"));
    }
    assert_eq!(fsure_in(tree.root(), &["update", "-q", "root"]).code, 0);
    tree.flip("root/a b", 500);
    std::fs::remove_file(tree.path("root/gone")).expect("remove");
    tree.write("root/new", "x");
    tree
}

fn verify(tree: &Tree, more: &[&str]) -> Run {
    fsure_in(tree.root(), &[&["verify", "root"], more].concat())
}

#[test]
fn counts_are_those_of_what_there_is_unless_all_are_wanted() {
    let tree = root();
    let short = verify(&tree, &[]);
    let rows: Vec<_> = short.stdout.lines().filter(|line| line.starts_with("    ")).collect();
    let counts = ["ok", "altered", "missing", "new"].map(|verdict| {
        let row = rows.iter().find(|row| row.trim_start().starts_with(&format!("{verdict} ")));
        row.unwrap_or_else(|| panic!("{verdict}: {short:?}")).split_whitespace().nth(1)
    });
    assert_eq!(counts, [Some("2"), Some("1"), Some("1"), Some("1")], "{short:?}");
    assert!(!short.stdout.contains("Flaky"), "{short:?}");
    assert!(!short.stdout.contains("To look at"), "seen above in a file: {short:?}");
    let full = verify(&tree, &["--summary", "full"]);
    assert!(full.stdout.contains("\nFlaky                                   0\n"), "{full:?}");
    assert_eq!(full.code, 3);
}

#[test]
fn a_list_of_paths_can_be_given_to_the_next_program() {
    let tree = root();
    let list = tree.path("list");
    let to_file = format!("altered,missing={}", list.display());
    let run = verify(&tree, &["--paths", &to_file]);
    assert_eq!(run.code, 3, "{run:?}");
    assert!(run.stdout.contains("Exit code 3"), "the report stays: {run:?}");
    let mut listed: Vec<_> = read(&list).lines().map(str::to_owned).collect();
    listed.sort();
    assert_eq!(listed, ["root/a b", "root/gone"]);
    let piped = "fsure verify root --paths ok=- --print0 | xargs -0 wc -c";
    let counted = typed(tree.root(), piped);
    assert!(counted.stdout.ends_with("2000 total\n"), "{counted:?}");
    let run = verify(&tree, &["--paths", "new=-"]);
    assert_eq!((run.code, &*run.stdout), (3, "root/new\n"), "{run:?}");
    for (lists, words) in [
        (&["--paths", "wrong=x"][..], "'wrong' is not a verdict"),
        (&["--paths", "ok=x", "--paths", "new=x"], "two lists cannot share x"),
        (&["--paths", "ok=-", "--json"], "cannot share standard output"),
    ] {
        let run = verify(&tree, lists);
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.stderr.contains(words), "{run:?}");
    }
    assert!(!tree.path("x").exists(), "nothing is left of a refused call");
}

#[test]
fn a_name_with_a_line_end_is_warned_of() {
    let tree = Tree::new();
    tree.write("root/two\nlines", "x");
    assert_eq!(fsure_in(tree.root(), &["update", "-q", "root"]).code, 0);
    let run = verify(&tree, &["--paths", "ok=-"]);
    assert_eq!(run.stdout, "root/two\nlines\n");
    assert!(run.stderr.contains("--print0"), "{run:?}");
    let run = verify(&tree, &["--paths", "ok=-", "--print0"]);
    assert_eq!((&*run.stdout, run.stderr.contains("--print0")), ("root/two\nlines\0", false));
}

#[test]
fn the_first_line_says_what_the_others_are_about() {
    let tree = root();
    let path = tree.path("root");
    for args in [&["verify"][..], &["status"], &["status", "--age"], &["log"], &["dupes"]] {
        let report = fsure_json(&[args, &[path.to_str().expect("UTF-8")]].concat());
        let start = &report.start;
        assert_eq!((&start["format"], &start["command"]), (&1.into(), &args[0].into()));
        assert!(start["time"].as_str().is_some_and(|time| time.ends_with('Z')), "{start}");
        assert!(start["host"].is_string() && start["fsure"].is_string(), "{start}");
        assert_eq!(start["roots"][0]["root"], path.to_str().expect("UTF-8"), "{start}");
        assert_eq!(start["roots"][0]["generation"], 1, "{start}");
    }
    let failed = fsure_json(&["verify", "/nonexistent/folder"]);
    assert_eq!(
        (&failed.start["command"], &failed.lines[0]["type"]),
        (&"verify".into(), &"error".into())
    );
}

#[test]
fn progress_and_warnings_can_be_lines_too() {
    let tree = Tree::new();
    tree.write("root/a", content(12 << 20, 1));
    let update = ["update", "root", "--json", "--progress", "json", "--rate", "3MiB/s"];
    let run = fsure_in(tree.root(), &update);
    assert_eq!(run.code, 0, "{run:?}");
    let lines: Vec<Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let progress = lines.iter().find(|line| line["type"] == "progress").expect("a line");
    assert_eq!(
        (&progress["root"], &progress["findings"]),
        (&lines[0]["roots"][0]["root"], &0.into())
    );
    let odd = fsure_in(tree.root(), &["verify", "root", "--progress", "json"]);
    assert!(odd.code == 2 && odd.stderr.contains("add '--json'"), "{odd:?}");
}

#[test]
fn lines_of_json_can_go_to_another_descriptor() {
    let tree = root();
    let run = typed(tree.root(), "fsure verify root --json-fd 3 3> lines");
    assert_eq!((run.code, &*run.stdout), (3, ""), "{run:?}");
    let lines = read(&tree.path("lines"));
    assert!(lines.starts_with(r#"{"type":"start","#), "{lines}");
    assert!(lines.lines().last().is_some_and(|line| line.contains(r#""type":"summary""#)));
    let closed = typed(tree.root(), "fsure verify root --json-fd 9");
    assert_ne!(closed.code, 0, "{closed:?}");
    assert!(closed.stderr.contains("/dev/fd/9"), "{closed:?}");
}

#[test]
fn a_moved_folder_is_one_line() {
    let tree = Tree::new();
    for name in 0..20 {
        tree.write(format!("root/2025/in/{name:02}"), content(1_000, name));
    }
    // A file that is as new as its record is not taken for moved without reading it.
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert_eq!(fsure_in(tree.root(), &["update", "-q", "root"]).code, 0);
    std::fs::rename(tree.path("root/2025"), tree.path("root/summer")).expect("rename");
    let run = fsure_in(tree.root(), &["status", "root"]);
    let moved: Vec<_> = run.stdout.lines().filter(|line| line.starts_with("moved ")).collect();
    assert_eq!(moved.len(), 1, "{run:?}");
    assert!(moved[0].contains("root/summer  20 files of 19.5 KiB, 2 folders"), "{run:?}");
    assert!(run.stdout.contains("\n    recorded below root/2025\n"), "{run:?}");
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("read")
}
