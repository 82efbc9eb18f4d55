//! Every example of the README is executed, in its order and in one folder,
//! because an example that no longer works is worse than none.
//!
//! `$ command` is run by `sh`; the lines below it are what it prints, `...`
//! standing for any lines and `[..]` for any text within one; `[3]` is the
//! exit code, 0 where none is given.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

use crate::support::signable::make_keys;
use crate::support::{Tree, skip};

/// One command of an example, and what is said to come of it.
struct Step {
    command: String,
    expected: Vec<String>,
    code: i32,
}

#[test]
fn the_examples_of_the_readme_work() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let steps = steps(&std::fs::read_to_string(readme).unwrap());
    assert!(steps.len() >= 14, "only {} examples were found", steps.len());
    let tree = Tree::new();
    for (name, byte) in [("photos/2026/a.raw", 1), ("photos/2026/b.raw", 2)] {
        tree.write(name, vec![byte; 3_000_000]);
    }
    tree.write("photos/notes.txt", b"hello\n");
    make_keys(&tree, "me");
    // Recorded at once, they would be read again by every update.
    std::thread::sleep(std::time::Duration::from_millis(50));
    for step in steps {
        run(&tree, &step);
    }
}

fn run(tree: &Tree, step: &Step) {
    if let Some(arguments) = step.command.strip_prefix("flip-a-byte ") {
        let (file, offset) = arguments.split_once(' ').unwrap();
        tree.flip(file, offset.parse().unwrap());
        return;
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_fsure"));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", binary.parent().unwrap().display());
    let output = Command::new("sh")
        .args(["-c", &step.command])
        .current_dir(tree.root())
        .env("PATH", path)
        .env("XDG_CONFIG_HOME", tree.path("home/config"))
        .env("XDG_STATE_HOME", tree.path("home/state"))
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = printed.lines().collect();
    let reported = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(5) && reported.contains("/dev/fuse") {
        return skip(&step.command, reported.trim());
    }
    assert_eq!(output.status.code(), Some(step.code), "{}:\n{printed}{reported}", step.command);
    assert!(
        fits(&step.expected, &lines),
        "{} printed\n{printed}\nand not\n{}",
        step.command,
        step.expected.join("\n")
    );
}

/// Returns true if lines match a pattern of lines, with `...` for any lines.
fn fits(expected: &[String], lines: &[&str]) -> bool {
    match (expected.split_first(), lines.split_first()) {
        (None, None) => true,
        (Some((any, rest)), _) if any == "..." => {
            fits(rest, lines) || lines.split_first().is_some_and(|(_, lines)| fits(expected, lines))
        }
        (Some((first, rest)), Some((line, lines))) => line_fits(first, line) && fits(rest, lines),
        _ => false,
    }
}

/// Returns true if a line matches a pattern with `[..]` for any text.
fn line_fits(expected: &str, line: &str) -> bool {
    let Some((head, tail)) = expected.split_once("[..]") else { return expected == line };
    let Some(rest) = line.strip_prefix(head) else { return false };
    rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| line_fits(tail, &rest[at..]))
}

fn steps(readme: &str) -> Vec<Step> {
    let blocks = readme.split("```console\n").skip(1);
    let mut steps: Vec<Step> = Vec::new();
    for line in blocks.flat_map(|block| block.split("```").next().unwrap().lines()) {
        let code = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')?.parse().ok());
        match (line.strip_prefix("$ "), code, steps.last_mut()) {
            (Some(command), _, _) => {
                steps.push(Step { command: command.to_owned(), expected: Vec::new(), code: 0 });
            }
            (None, Some(code), Some(step)) => step.code = code,
            (None, None, Some(step)) => step.expected.push(line.to_owned()),
            (None, _, None) => panic!("output before any command: {line}"),
        }
    }
    steps
}

#[test]
fn the_patterns_are_strict_where_they_should_be() {
    let strings = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    for (expected, lines, fit) in [
        (&["a"][..], &["a"][..], true),
        (&["a"], &["b"], false),
        (&["a"], &[], false),
        (&["...", "z"], &["x", "y", "z"], true),
        (&["...", "z"], &["x", "z", "y"], false),
        (&["a [..] c"], &["a bb c"], true),
        (&["a [..] c"], &["a bb d"], false),
        (&["a [..]"], &["a anything"], true),
        (&["[..]b"], &["ab c"], false),
    ] {
        assert_eq!(fits(&strings(expected), lines), fit, "{expected:?} {lines:?}");
    }
}
