//! The end of a report: the worst over all roots, what the exit code means, and
//! paths and commands that work where the user stands.
#![cfg(target_os = "linux")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use crate::support::{Run, Tree, code, content, fsure, fsure_in, typed};
use rustix::process::{Pid, Signal, kill_process};

/// Two roots and one below the second; `bad/a b` is damaged, all else is well.
fn roots() -> Tree {
    let tree = Tree::new();
    for name in ["bad/a b", "bad/c", "good/a", "good/inner/x"] {
        tree.write(name, content(1_000, 7));
        tree.age(name);
    }
    for root in ["bad", "good/inner", "good"] {
        let run = fsure(&["update".as_ref(), tree.path(root).as_os_str()]);
        assert_eq!(run.code, 0, "{run:?}");
    }
    tree.flip("bad/a b", 500);
    let found = fsure(&["verify".as_ref(), "--quiet".as_ref(), tree.path("bad").as_os_str()]);
    assert_eq!(found.code, 3, "{found:?}");
    tree
}

/// The lines from the list of roots on.
fn last_word(run: &Run) -> Vec<&str> {
    let lines: Vec<_> = run.stdout.lines().collect();
    let start = lines.iter().position(|line| line.ends_with("roots, the worst first:"));
    lines[start.unwrap_or_else(|| panic!("no last word: {run:?}"))..].to_vec()
}

#[test]
fn a_clean_last_root_hides_no_damage() {
    let tree = roots();
    for command in ["verify", "update", "status", "scrub"] {
        for roots in [["bad", "good"], ["good", "bad"]] {
            let run = fsure_in(tree.root(), &[command, roots[0], roots[1]]);
            assert_eq!(run.code, 3, "{run:?}");
            let last = last_word(&run);
            assert_eq!(last.len(), 5, "{run:?}");
            assert_eq!(last[0], "3 roots, the worst first:");
            assert!(last[1].starts_with("    bad: 1 altered"), "{run:?}");
            assert!(last[2].starts_with("    good: 1 ok"), "{run:?}");
            assert!(last[3].starts_with("    good/inner: 1 ok"), "{run:?}");
            assert!(last[4].starts_with("Exit code 3, the worst of all 3: content is damaged"));
            let json = fsure_in(tree.root(), &[command, roots[0], roots[1], "--json"]);
            let summary = json.stdout.lines().last().expect("a summary");
            let summary: serde_json::Value = serde_json::from_str(summary).expect("JSON");
            assert_eq!(summary["type"], "summary");
            assert_eq!((&summary["root"], &summary["exit_code"]), (&().into(), &3.into()));
        }
    }
    let ages = fsure_in(tree.root(), &["status", "--age", "bad", "good"]);
    assert!(last_word(&ages)[1].starts_with("    bad: 1 known to be damaged"), "{ages:?}");
    assert!(last_word(&ages)[4].starts_with("Exit code 3, "), "{ages:?}");
}

#[test]
fn one_root_explains_its_exit_code_and_a_clean_one_has_none() {
    let tree = roots();
    let end = |args: &[&str]| {
        let run = fsure_in(tree.root(), args);
        (run.code, run.stdout.lines().last().unwrap_or_default().to_owned())
    };
    let damage = "Exit code 3: content is damaged, or known to be and not put right.";
    assert_eq!(end(&["verify", "bad"]), (3, damage.to_owned()));
    let heal = ["heal", "bad", "--from", "good"];
    assert_eq!(end(&heal), (3, damage.to_owned()));
    assert_eq!(end(&["verify", "bad/c"]), (0, "1 file is as recorded.".to_owned()));
    let differs = "Exit code 1: there are differences, none of them known as damage.";
    assert_eq!(end(&["compare", "bad", "good"]), (3, damage.to_owned()), "found by verify");
    tree.write("bad/new", "x");
    tree.write("good/inner/new", "x");
    assert_eq!(end(&["status", "good/inner"]), (1, differs.to_owned()));
    // A root that cannot be judged is named beside one that can.
    std::fs::write(tree.path("good/inner/.fsure/catalog.db"), "no catalog").expect("write");
    let run = fsure_in(tree.root(), &["verify", "good"]);
    let last = last_word(&run);
    assert!(last[1].starts_with("    good/inner: NOT JUDGED: the record "), "{run:?}");
    assert!(last[3].starts_with("Exit code 6, the worst of all 2: a record"), "{run:?}");
}

#[test]
fn each_finding_has_a_path_that_works_where_the_user_stands() {
    let tree = roots();
    std::fs::create_dir(tree.path("elsewhere")).expect("a folder");
    for (folder, root) in [("", "bad"), ("bad", "."), ("elsewhere", "../bad"), ("bad/.fsure", "..")]
    {
        for roots in [&[root][..], &[root, &*tree.path("good").to_string_lossy()]] {
            let args = [&["verify", "--quiet"][..], roots].concat();
            let run = fsure_in(&tree.path(folder), &args);
            let line = run.stdout.lines().next().expect("a finding");
            let path = line.strip_prefix("altered").and_then(|rest| rest.trim().split_once("  "));
            let path = path.expect("a path").0;
            let is = tree.path(folder).join(path).canonicalize().expect("a path that works");
            assert_eq!(is, tree.path("bad/a b").canonicalize().unwrap(), "{folder}: {line}");
            let is_below = ["", "bad"].contains(&folder);
            assert_eq!(std::path::Path::new(path).is_relative(), is_below, "{folder}: {line}");
        }
    }
}

/// The command on the line behind a hint that ends with these words.
fn advised<'a>(run: &'a Run, before: &str) -> &'a str {
    let before = format!("{before}:\n    ");
    let (_, rest) = run.stdout.split_once(&before).unwrap_or_else(|| panic!("{before}: {run:?}"));
    rest.lines().next().expect("a line")
}

#[test]
fn an_advised_command_works_as_printed() {
    let tree = roots();
    let found = fsure_in(tree.root(), &["verify", "good", "bad"]);
    let accept = advised(&found, "record it");
    assert_eq!(accept, "fsure update bad --accept 'bad/a b'");
    let accepted = typed(tree.root(), accept);
    assert_eq!(accepted.code, 0, "{accepted:?}");
    assert_eq!(fsure_in(tree.root(), &["verify", "-q", "bad"]).code, 0);
    tree.write("bad/new", "x");
    let found = fsure_in(&tree.path("bad"), &["status"]);
    let update = advised(&found, "as it should be, record it");
    assert_eq!(update, "fsure update .");
    assert_eq!(typed(&tree.path("bad"), update).code, 0);
    // The catalog is named where the root does not have it.
    let update = ["update", "-q", "good", "--catalog", "its record.db"];
    assert_eq!(fsure_in(tree.root(), &update).code, 0);
    tree.write("good/new", "x");
    let found = fsure_in(tree.root(), &["status", "good", "--catalog", "its record.db"]);
    let update = advised(&found, "as it should be, record it");
    assert_eq!(update, "fsure update good --catalog 'its record.db'");
    assert_eq!(typed(tree.root(), update).code, 0);
    let status = ["status", "-q", "good", "--catalog", "its record.db"];
    assert_eq!(fsure_in(tree.root(), &status).code, 0);
}

#[test]
fn an_interrupted_verify_reports_what_it_judged_and_how_to_go_on() {
    let tree = Tree::new();
    for name in 0..40 {
        tree.write(format!("slow/{name:02}"), content(1 << 20, name));
    }
    tree.write("last/a", "x");
    for root in ["slow", "last"] {
        assert_eq!(fsure_in(tree.root(), &["update", "-q", root]).code, 0);
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
    command.args(["verify", "slow", "last", "--all", "--rate", "4MiB/s", "--threads", "1"]);
    command.env("XDG_CONFIG_HOME", "/nonexistent").env("XDG_STATE_HOME", "/nonexistent");
    let piped = command.current_dir(tree.root()).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = piped.stderr(Stdio::null()).spawn().expect("start");
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut stdout = String::new();
    while !stdout.lines().any(|line| line.starts_with("ok ")) {
        assert_ne!(output.read_line(&mut stdout).expect("read"), 0, "{stdout}");
    }
    kill_process(Pid::from_child(&child), Signal::INT).expect("interrupt");
    output.read_to_string(&mut stdout).expect("read");
    assert_eq!(code(child.wait().expect("wait")), 130, "{stdout}");
    let judged = stdout.lines().filter(|line| line.starts_with("ok ") && line.contains("slow/"));
    let judged = judged.filter(|line| !line.contains("folder")).count();
    assert!((1..40).contains(&judged), "{judged}: {stdout}");
    let are = |n: usize| if n == 1 { "1 file was".to_owned() } else { format!("{n} files were") };
    let left = 40 - judged;
    for part in [
        &*format!("INTERRUPTED before the end: {} judged; {left} recorded file", are(judged)),
        "To begin with what was verified longest ago:\n    fsure scrub slow\n",
        &format!("    slow: INTERRUPTED, {judged} ok\n"),
        "    last: NOT LOOKED AT: the run ended before\n",
        "Exit code 130, the worst of all 2: ended by Ctrl-C",
    ] {
        assert!(stdout.contains(part), "{part} in {stdout}");
    }
}
