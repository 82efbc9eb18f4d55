//! The first things that a user types who has not read anything: each answer says what to do,
//! and the commands in it work as they are printed.
#![cfg(target_os = "linux")]

use crate::support::{Run, Tree, content, typed};

/// A folder with the files of a user.
fn folder() -> Tree {
    let tree = Tree::new();
    for name in ["photos/a.raw", "photos/b.raw"] {
        tree.write(name, content(3000, 1));
    }
    tree
}

/// The commands in the tips, as they are printed.
fn tips(run: &Run) -> Vec<&str> {
    let tips = run.stderr.lines().filter(|line| line.trim_start().starts_with("tip: "));
    tips.filter_map(|tip| tip.find(": fsure ").map(|at| &tip[at + 2..])).collect()
}

#[test]
fn nothing_typed_prints_the_first_steps_on_standard_output() {
    let tree = folder();
    let run = typed(tree.root(), "fsure");
    assert_eq!((run.code, &*run.stderr), (2, ""), "{run:?}");
    assert!(run.stdout.lines().count() <= 11, "{}", run.stdout);
    let steps = ["fsure update photos", "fsure verify photos", "fsure --help"];
    for step in steps {
        assert!(run.stdout.contains(step), "{}", run.stdout);
        let done = typed(tree.root(), step);
        assert_eq!(done.code, 0, "{step}: {done:?}");
    }
}

#[test]
fn help_shows_commands_and_topics_on_standard_output() {
    let tree = folder();
    for line in [
        "fsure help",
        "fsure help update",
        #[cfg(feature = "storage")]
        "fsure help ram bind",
        "fsure help check",
        "fsure help exit-codes",
        "fsure help verdicts",
        "fsure help patterns",
        "fsure version",
    ] {
        let run = typed(tree.root(), line);
        assert_eq!((run.code, &*run.stderr), (0, ""), "{line}: {run:?}");
        assert!(!run.stdout.is_empty(), "{line}");
    }
    let run = typed(tree.root(), "fsure help verfiy");
    assert_eq!((run.code, tips(&run)), (2, vec!["fsure verify --help"]), "{run:?}");
    assert_eq!(typed(tree.root(), "fsure help verfiy").stdout, "");
}

#[test]
fn no_help_names_the_processes_that_fsure_starts_for_itself() {
    let tree = folder();
    for line in ["fsure --help", "fsure help ram"] {
        let help = typed(tree.root(), line).stdout;
        for internal in ["family", "sweep", "flush-again", "outlive", "keep-run", "generate"] {
            assert!(!help.contains(internal), "{line}: {internal}");
        }
    }
}

#[test]
fn commands_of_other_programs_are_done_or_answered_with_those_that_are() {
    let tree = folder();
    for line in
        ["fsure init photos", "fsure add photos", "fsure check photos", "fsure -q audit photos"]
    {
        let run = typed(tree.root(), line);
        assert_eq!(run.code, 0, "{line}: {run:?}");
    }
    for line in ["fsure photos", "fsure scan photos", "fsure list photos", "fsure photos verify"] {
        let run = typed(tree.root(), line);
        assert_eq!((run.code, &*run.stdout), (2, ""), "{line}: {run:?}");
        let commands = tips(&run);
        assert!(!commands.is_empty(), "{line}: {run:?}");
        for command in commands {
            let done = typed(tree.root(), command);
            assert_eq!(done.code, 0, "{line}: {command}: {done:?}");
        }
    }
}

#[test]
fn a_misspelt_path_is_answered_with_the_one_beside_it() {
    let tree = folder();
    let run = typed(tree.root(), "fsure update phots");
    assert_eq!(run.code, 5, "{run:?}");
    assert!(run.stderr.contains("did you mean photos?"), "{run:?}");
    let run = typed(tree.root(), "fsure update music");
    assert!(!run.stderr.contains("did you mean"), "{run:?}");
}

#[test]
fn a_pattern_without_quotes_is_noticed_when_it_fails() {
    let tree = folder();
    tree.write("a.tmp", "1");
    tree.write("b.tmp", "2");
    let run = typed(tree.root(), "fsure update photos --exclude *.tmp");
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("in quotes: --exclude '*.tmp'"), "{run:?}");
    let run = typed(tree.root(), "fsure update photos --exclude '*.tmp'");
    assert_eq!(run.code, 0, "{run:?}");
}
