//! The tasks as they are called, and what they write. The shells themselves and mandoc read it
//! in `.ci/shells`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

fn xtask(args: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_xtask");
    Command::new(program).args(args).env("SOURCE_DATE_EPOCH", "0").output().expect("run xtask")
}

/// The files that a task writes into a new folder, by their names.
fn written(task: &str) -> BTreeMap<String, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let into = folder.path().join("new/folder");
    let run = xtask(&[task, into.to_str().expect("UTF-8")]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let text = |path: &Path| std::fs::read_to_string(path).expect("UTF-8");
    let files = std::fs::read_dir(into).expect("list").map(|file| file.expect("list").path());
    files
        .map(|path| (path.file_name().expect("a name").to_string_lossy().into(), text(&path)))
        .collect()
}

#[test]
fn manual_pages_are_written_and_the_same_each_time() {
    let pages = written("man");
    assert!(pages["fsure.1"].contains(".TH FSURE 1 1970-01-01 "), "{}", pages["fsure.1"]);
    assert!(pages.contains_key("fsure-ram-disk-create.1"));
    assert_eq!(pages, written("man"));
}

#[test]
fn completions_are_written_for_five_shells_without_internal_commands() {
    let files = written("completions");
    let names: Vec<_> = files.keys().map(String::as_str).collect();
    assert_eq!(names, ["_fsure", "_fsure.ps1", "fsure.bash", "fsure.elv", "fsure.fish"]);
    for (name, text) in &files {
        assert!(text.contains("verify") && text.contains("exclude"), "{name}");
        for internal in ["flush-again", "loop-keeper", "outlive", "pass-through", "keep-run"] {
            assert!(!text.contains(internal), "{name}: {internal}");
        }
    }
}

#[test]
fn a_task_that_is_not_known_prints_those_that_are() {
    for args in [&[][..], &["man"], &["dance", "."]] {
        let run = xtask(args);
        assert!(!run.status.success());
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        assert!(said.contains("cargo xtask man DIR"), "{said}");
    }
}
