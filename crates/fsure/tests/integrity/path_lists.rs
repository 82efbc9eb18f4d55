//! `--files-from`: the paths of a list are judged as if each was given as PATH, in one run for
//! each root. What is not in the list is neither judged nor counted as verified.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::signable::Signable;
use crate::support::{Recorded, Report, Run, Tree, code, content, fsure, path_verdicts};
use rusqlite::types::Value;

/// Runs `fsure` in a folder, with a list on standard input.
fn listed(folder: &Path, args: &[&str], list: impl AsRef<[u8]>) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
    command.env("XDG_CONFIG_HOME", "/nonexistent").env("XDG_STATE_HOME", "/nonexistent");
    command.current_dir(folder).args(args).args(["--files-from", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("start fsure");
    child.stdin.take().expect("a pipe").write_all(list.as_ref()).expect("write");
    let output = child.wait_with_output().expect("its end");
    Run {
        code: code(output.status),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn json(folder: &Path, args: &[&str], list: impl AsRef<[u8]>) -> Report {
    Report::new(listed(folder, &[args, &["--json"]].concat(), list))
}

const NAMES: [&str; 8] = ["a", "a-b/x", "a.d/y", "b", "c/1", "c/2", "c/3", "z"];

fn tree() -> (Tree, Recorded) {
    let tree = Tree::new();
    for (seed, name) in NAMES.into_iter().enumerate() {
        tree.write(name, content(100 + seed, seed as u64));
        tree.age(name);
    }
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    (tree, recorded)
}

/// The date at which each file was last verified, by the record alone.
fn verified(recorded: &Recorded) -> BTreeMap<String, i64> {
    let connection = recorded.connect();
    let ranges = "SELECT first_path, end_path, verified_s FROM verified_paths";
    let mut ranges = connection.prepare(ranges).expect("ranges");
    let ranges: Vec<(Vec<u8>, Vec<u8>, i64)> = ranges
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .expect("ranges")
        .collect::<Result<_, _>>()
        .expect("ranges");
    let rows = recorded.rows();
    let own = |name: &str| match rows[name.as_bytes()]["verified_s"] {
        Value::Integer(at_s) => at_s,
        ref other => panic!("{name}: {other:?}"),
    };
    let by_range = |name: &str| {
        let path = name.as_bytes();
        let holds =
            |(first, end, _): &&(Vec<u8>, Vec<u8>, i64)| &first[..] <= path && path < &end[..];
        ranges.iter().filter(holds).map(|range| range.2).max().unwrap_or(0)
    };
    NAMES.into_iter().map(|name| (name.to_owned(), own(name).max(by_range(name)))).collect()
}

/// Makes every file verified long ago.
fn long_ago(recorded: &Recorded) {
    crate::support::forger::forge(
        &recorded.connect(),
        "UPDATE record SET verified_s = 1000000000 WHERE kind = 0; DELETE FROM verified_paths",
    );
}

#[test]
fn what_is_not_in_the_list_is_not_judged() {
    let (tree, _) = tree();
    for name in ["a", "b", "c/2"] {
        tree.flip(name, 9);
    }
    fs::remove_file(tree.path("z")).expect("remove");
    tree.write("c/new", "new");
    for (list, expected) in [
        ("a\n", &[("a", "altered")][..]),
        ("./a\na-b\n", &[("a", "altered")]),
        ("a-b/x\na.d\n", &[]),
        ("c\nb\n", &[("b", "altered"), ("c/2", "altered"), ("c/new", "new")]),
        ("c/1\nc/3\n", &[]),
        ("c/2\nc\nc/1\n", &[("c/2", "altered"), ("c/new", "new")]),
        ("z\na-b/x\n", &[("z", "missing")]),
        (
            ".\nz\n",
            &[
                ("a", "altered"),
                ("b", "altered"),
                ("c/2", "altered"),
                ("c/new", "new"),
                ("z", "missing"),
            ],
        ),
    ] {
        let report = json(tree.root(), &["verify", "-n"], list);
        let found = report.path_verdicts().into_iter().filter(|(path, _)| path != "c");
        assert_eq!(found.collect::<Vec<_>>(), path_verdicts(expected), "{list}: {report:?}");
    }
}

#[test]
fn only_what_is_in_the_list_counts_as_verified() {
    let (tree, recorded) = tree();
    long_ago(&recorded);
    let before = verified(&recorded);
    let report = json(tree.root(), &["verify"], "a\nc/1\nc/3\nz\n");
    assert_eq!(report.code, 0, "{report:?}");
    assert_eq!(report.count("ok"), 4, "{report:?}");
    let after = verified(&recorded);
    for name in NAMES {
        let is_listed = ["a", "c/1", "c/3", "z"].contains(&name);
        assert_eq!(after[name] > before[name], is_listed, "{name}: {before:?} {after:?}");
    }
    // A folder and a file, with a recorded name between them in the order of bytes.
    let report = json(tree.root(), &["update", "--full"], "a-b\nb\n");
    assert_eq!((report.code, report.count("ok")), (0, 2), "{report:?}");
    let last = verified(&recorded);
    assert_eq!(last["a.d/y"], before["a.d/y"], "between the two");
    assert_eq!(recorded.verify().code, 0);
}

#[test]
fn an_update_records_what_is_in_the_list_alone() {
    let (tree, recorded) = tree();
    tree.write("a", "another");
    tree.write("b", "another");
    tree.write("new-1", "1");
    tree.write("new-2", "2");
    fs::rename(tree.path("c/1"), tree.path("c/moved")).expect("rename");
    fs::remove_file(tree.path("z")).expect("remove");
    let report = json(tree.root(), &["update"], "a\nnew-1\nc\n");
    assert_eq!(report.code, 0, "{report:?}");
    assert_eq!(report.verdict("c/moved").as_deref(), Some("moved"), "{report:?}");
    let rows = recorded.rows();
    assert!(rows.contains_key(&b"new-1"[..]) && !rows.contains_key(&b"new-2"[..]));
    let left = recorded.run("status", &["--all"]);
    let left: Vec<_> =
        left.path_verdicts().into_iter().filter(|(_, verdict)| verdict != "ok").collect();
    let expected = [("b", "modified"), ("new-2", "new"), ("z", "missing")];
    assert_eq!(left, path_verdicts(&expected));
}

#[test]
fn names_of_any_kind_end_with_nul() {
    let tree = Tree::new();
    tree.write("new\nline", "1");
    tree.write(" blank ", "2");
    tree.write("plain", "3");
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    let report = json(tree.root(), &["verify", "-0", "--all"], "new\nline\0 blank \0");
    assert_eq!((report.code, report.count("ok")), (0, 2), "{report:?}");
    let refused = listed(tree.root(), &["verify"], "plain\0 blank \0");
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("'-0'"), "{refused:?}");
}

#[test]
fn an_empty_list_is_a_mistake_and_a_path_that_is_not_there_is_told() {
    let (tree, _) = tree();
    for list in ["", "\n\n"] {
        let run = listed(tree.root(), &["verify"], list);
        assert_eq!(run.code, 2, "{run:?}");
        assert!(!run.stdout.contains("as recorded"), "{run:?}");
    }
    let run = listed(tree.root(), &["verify"], "a\nnone\nb\n");
    assert_eq!(run.code, 5, "{run:?}");
    assert!(run.stderr.contains("none does not exist"), "{run:?}");
    assert!(run.stdout.contains("NOT THERE"), "{run:?}");
    let report = json(tree.root(), &["verify"], "a\nnone\nb\n");
    assert_eq!((report.count("ok"), &report.summary()["unknown_paths"]), (2, &1.into()));
    let run = listed(tree.root(), &["verify"], "none\nnone-2\n");
    assert_eq!(run.code, 5, "{run:?}");
}

#[test]
fn each_root_of_a_list_is_run_once() {
    let tree = Tree::new();
    for name in ["one/a", "one/b", "two/c", "two/d"] {
        tree.write(name, name);
    }
    for root in ["one", "two"] {
        assert_eq!(fsure(&["update".as_ref(), tree.path(root).as_os_str()]).code, 0);
    }
    let report = json(tree.root(), &["verify"], "one/a\ntwo/c\none/b\n");
    assert_eq!((report.code, report.count("ok")), (0, 3), "{report:?}");
    let roots = report.lines.iter().filter(|line| line["type"] == "root");
    assert_eq!(roots.count(), 2, "{report:?}");
}

#[test]
fn with_a_record_elsewhere_path_is_the_root() {
    let tree = Tree::new();
    for name in ["root/a", "root/b", "beside"] {
        tree.write(name, name);
    }
    let here = ["root", "--catalog", "c.db"];
    assert_eq!(listed(tree.root(), &[&["update"], &here[..]].concat(), "root\n").code, 0);
    let verify = [&["verify"], &here[..]].concat();
    let report = json(tree.root(), &verify, "root/a\nroot/b\n");
    assert_eq!((report.code, report.count("ok")), (0, 2), "{report:?}");
    assert_eq!(listed(tree.root(), &verify, "root/a\nbeside\n").code, 2);
}

#[test]
fn a_path_that_nothing_knows_is_never_passed_over_without_a_catalog() {
    let (tree, recorded) = tree();
    let path = tree.root().to_str().expect("UTF-8");
    assert_eq!(fsure(&["update", "-q", path, "--layout", "folder"]).code, 0);
    fs::remove_dir_all(recorded.catalog.parent().expect("a folder")).expect("lose the record");
    let verify = ["verify", path, "--catalog", "/nonexistent/c.db"];
    let list = |names: &[&str]| names.iter().map(|name| format!("{path}/{name}\n")).collect();
    let list = |names: &[&str]| -> String { list(names) };
    let all = json(tree.root(), &verify, list(&["a", "b"]));
    assert_eq!((all.code, all.count("ok")), (0, 2), "{all:?}");
    let some = json(tree.root(), &verify, list(&["a", "typo"]));
    assert_eq!((some.code, some.count("ok")), (5, 1), "{some:?}");
    for none in [&["typo"][..], &["typo", "another"]] {
        let run = listed(tree.root(), &verify, list(none));
        assert_eq!(run.code, 5, "{run:?}");
        assert!(run.stderr.contains("does not exist"), "{run:?}");
    }
}

#[test]
fn files_of_fsure_and_of_an_inner_root_are_not_recorded_from_a_list() {
    let tree = Tree::new();
    for name in ["root/a", "root/inner/x"] {
        tree.write(name, name);
    }
    let inner = tree.path("root/inner");
    assert_eq!(fsure(&["update", "-q", inner.to_str().expect("UTF-8")]).code, 0);
    let update = ["update", "root", "--catalog", "root/c.db"];
    let mut list = String::from("root/a\nroot/c.db\nroot/c.db.lock\nroot/c.db.backup\n");
    assert_eq!(listed(tree.root(), &update, "root/a\n").code, 0);
    let run = listed(tree.root(), &update, &list);
    assert_eq!(run.code, 0, "{run:?}");
    let verify = ["verify", "root", "--catalog", "root/c.db", "--all", "--json"];
    let run = Report::new(crate::support::fsure_in(tree.root(), &verify));
    let files: Vec<_> = run.path_verdicts().into_iter().filter(|(p, _)| p != "inner").collect();
    assert_eq!(files, path_verdicts(&[("a", "ok"), ("x", "ok")]), "{run:?}");
    list += "root/inner/x\n";
    let run = listed(tree.root(), &update, &list);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("which has a record of its own"), "{run:?}");
}

#[test]
fn a_signature_is_checked_for_a_list_too() {
    let sample = Signable::sealed();
    let key = sample.own.path("mine.pub");
    let verify = ["verify", "--signed-by", key.to_str().unwrap(), "--min-generation", "1"];
    let run = listed(sample.tree.root(), &verify, "a\nsub/c\n");
    assert_eq!(run.code, 0, "{run:?}");
    crate::support::forger::forge(
        &sample.catalog(),
        "UPDATE record SET mtime_ns = 1 WHERE path = x'62'",
    );
    let run = listed(sample.tree.root(), &verify, "a\nsub/c\n");
    assert_eq!(run.code, 6, "{run:?}");
}

#[test]
fn a_list_is_as_good_as_its_paths_on_the_command_line() {
    let (tree, _) = tree();
    tree.flip("c/2", 3);
    tree.write("b", "another");
    let paths = ["a", "b", "c/2", "a.d"];
    let one_by_one = Command::new(env!("CARGO_BIN_EXE_fsure"))
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .current_dir(tree.root())
        .args(["verify", "-n", "--json", "--all"])
        .args(paths)
        .output()
        .expect("start fsure");
    let one_by_one = Report::new(Run {
        code: code(one_by_one.status),
        stdout: String::from_utf8_lossy(&one_by_one.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&one_by_one.stderr).into_owned(),
    });
    let report = json(tree.root(), &["verify", "-n", "--all"], paths.join("\n"));
    assert_eq!(report.code, one_by_one.code, "{report:?}");
    assert_eq!(report.verdicts(), one_by_one.verdicts());
}

#[test]
fn only_the_listed_paths_are_healed() {
    let (tree, _recorded) = tree();
    let beside = Tree::new();
    for name in NAMES {
        beside.write(name, tree.read(name));
    }
    for name in ["a", "b", "c/1", "z"] {
        tree.flip(name, 7);
    }
    fs::remove_file(tree.path("c/2")).expect("remove");
    let root = tree.root();
    let copy = beside.root().to_str().expect("text");
    let heal = ["heal", ".", "--from", copy, "--in-place"];
    let list = "a\0c\0a-b/x\0";
    let dry = listed(root, &[&heal[..], &["-0"]].concat(), list);
    assert_eq!(dry.code, 3, "{dry:?}");
    assert!(dry.stdout.contains("3 files CAN BE HEALED"), "{dry:?}");
    let advised = format!("fsure heal . --files-from - -0 --from {copy} --in-place --yes");
    assert!(dry.stdout.contains(&advised), "{dry:?}");
    let healed = json(root, &[&heal[..], &["-0", "--yes"]].concat(), list);
    assert_eq!((healed.code, &healed.summary()["healed"]), (7, &3.into()), "{healed:?}");
    for name in NAMES {
        let is_listed = !["b", "z"].contains(&name);
        assert_eq!(tree.read(name) == beside.read(name), is_listed, "{name}");
    }
    // What is not there and not recorded is told; what is elsewhere is refused.
    let unknown = listed(root, &[&heal[..], &["--yes"]].concat(), "b\nnever\n");
    assert_eq!(unknown.code, 5, "{unknown:?}");
    assert!(tree.read("b") == beside.read("b") && unknown.stderr.contains("never"), "{unknown:?}");
    let within = ["heal", "c", "--from", copy];
    let elsewhere = listed(root, &within, "c/1\nz\n");
    assert_eq!(elsewhere.code, 2, "{elsewhere:?}");
    assert!(elsewhere.stderr.contains("z is not below"), "{elsewhere:?}");
}

#[test]
fn only_the_listed_paths_are_exported() {
    let (tree, _recorded) = tree();
    let names = |run: &Run| -> Vec<String> {
        run.stdout.lines().map(|line| line.rsplit("  ").next().unwrap().to_owned()).collect()
    };
    // SHA-256 is computed for these only.
    let export = ["export", "--format", "sha256sums"];
    let run = listed(tree.root(), &export, "c\na-b/x\nb\n");
    assert_eq!(
        (run.code, names(&run)),
        (0, ["a-b/x", "b", "c/1", "c/2", "c/3"].map(String::from).to_vec())
    );
    let list = tree.path("c");
    let run = listed(&list, &export, "2\n");
    assert_eq!((run.code, names(&run)), (0, vec!["2".to_owned()]), "{run:?}");
    tree.write("new", "new");
    let run = listed(tree.root(), &export, "new\na\n");
    assert_eq!((run.code, names(&run)), (5, vec!["a".to_owned()]), "{run:?}");
    assert!(run.stderr.contains("new is not recorded"), "{run:?}");
    let beside = Tree::new();
    let to = beside.path("list");
    let to_file = [&export[..], &["-o", to.to_str().unwrap()]].concat();
    let report = json(tree.root(), &to_file, "gone\nb\n");
    assert_eq!((report.code, &report.summary()["not_recorded"]), (5, &1.into()), "{report:?}");
    let bag = beside.path("bag");
    let run =
        listed(tree.root(), &["export", "--format", "bagit", "-o", bag.to_str().unwrap()], "b\n");
    assert_eq!((run.code, bag.exists()), (2, false), "{run:?}");
}
