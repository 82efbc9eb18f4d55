//! Links, FIFOs, sockets and folders where fsure keeps files of its own, as a tree by
//! another user may have them: refused before anything opens them, with a way out that
//! works as it is printed. Nothing hangs, and nothing outside of the tree is touched.
#![cfg(target_os = "linux")]

use crate::support;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Recorded, Run, Tree};
use rustix::fs::{CWD, FileType, Mode, mknodat};

/// Timeout far beyond the duration of any run here: the test fails then, instead of
/// waiting forever.
const HANGS: Duration = Duration::from_secs(60);

/// Commands that open a record, each before its path.
const COMMANDS: [&str; 9] = [
    "status",
    "verify",
    "update",
    "scrub",
    "log",
    "dupes",
    "heal --yes",
    "protect",
    "export --format json",
];
/// Those of them that use recovery data.
const USE_PARITY: [&str; 3] = ["update", "heal", "protect"];

/// Runs fsure, and fails if it hangs.
fn run(command: &str, root: &Path) -> Run {
    let mut args: Vec<OsString> = command.split(' ').map(OsString::from).collect();
    args.insert(1, root.into());
    let mut process = Command::new(env!("CARGO_BIN_EXE_fsure"));
    process.env("XDG_CONFIG_HOME", "/nonexistent").env("XDG_STATE_HOME", "/nonexistent");
    process.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = process.spawn().expect("start fsure");
    let begun = Instant::now();
    while child.try_wait().expect("wait").is_none() {
        if begun.elapsed() > HANGS {
            child.kill().expect("kill");
            panic!("'fsure {command}' hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().expect("its output");
    Run {
        code: support::code(output.status),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Puts something that is not a regular file at a path; `elsewhere` is for links.
fn plant(what: &str, path: &Path, elsewhere: &Path) {
    match what {
        "a symbolic link" => symlink(elsewhere, path).expect("make a link"),
        "a FIFO" => mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO"),
        "a socket" => drop(UnixListener::bind(path).expect("make a socket")),
        other => unreachable!("{other}"),
    }
}

/// The command of a hint, which is between quotation marks, is run as it is printed.
fn follow_hint(run: &Run) {
    let hint = run.stderr.lines().find_map(|line| line.strip_prefix("fsure: hint: '"));
    let command = hint.and_then(|hint| hint.strip_suffix("' puts it out of the way"));
    let command = command.unwrap_or_else(|| panic!("no command to follow: {}", run.stderr));
    let status = Command::new("sh").args(["-c", command]).status().expect("a shell");
    assert!(status.success(), "{command}");
}

/// A tree with a name that a shell would split, recorded and protected.
fn protected() -> (Tree, PathBuf) {
    let tree = Tree::new();
    let root = tree.path("it's a root");
    for name in ["a", "b", "c"] {
        tree.write(Path::new("it's a root").join(name), name);
    }
    tree.write(Path::new("it's a root").join("large"), support::content(2 << 20, 3));
    Recorded::inside(&root).record();
    assert_eq!(run("protect", &root).code, 0);
    (tree, root)
}

#[test]
fn nothing_beside_a_catalog_is_opened_that_is_not_fsure_s() {
    for name in [
        "catalog.db",
        "catalog.db-journal",
        "catalog.db-wal",
        "catalog.db-shm",
        "catalog.db.lock",
        "catalog.db.making",
        "catalog.db.healing",
        "catalog.db.parity",
        "catalog.db.seal",
        "config.toml",
        "replaced",
        "seal",
    ] {
        let (tree, root) = protected();
        let elsewhere = tree.path("elsewhere");
        fs::create_dir(&elsewhere).expect("make a folder");
        for what in ["a symbolic link", "a FIFO", "a socket"] {
            let path = root.join(".fsure").join(name);
            let kept = tree.path("kept");
            let was_there = fs::rename(&path, &kept).is_ok();
            plant(what, &path, &elsewhere);
            for command in COMMANDS {
                let run = run(command, &root);
                let why = format!("{} is {what}", path.display());
                assert_eq!(run.code, 2, "{command}, {name} is {what}: {run:?}");
                assert!(run.stderr.contains(&why), "{command}, {name} is {what}: {run:?}");
            }
            let refused = run("status", &root);
            if (what, name) == ("a symbolic link", "catalog.db") {
                assert!(refused.stderr.contains("'--catalog FILE'"), "{refused:?}");
                fs::remove_file(&path).expect("remove");
            } else {
                follow_hint(&refused);
                let mut away = path.clone().into_os_string();
                away.push(".away");
                fs::remove_file(away).expect("it was put away");
            }
            if was_there {
                fs::rename(&kept, &path).expect("put back");
            }
            assert_eq!(run("update", &root).code, 0, "{name}");
        }
        assert_eq!(fs::read_dir(&elsewhere).expect("list").count(), 0, "{name}");
    }
}

#[test]
fn recovery_data_of_another_root_are_neither_removed_nor_replaced() {
    let (tree, root) = protected();
    let other = tree.path("other");
    tree.write("other/x", "x");
    Recorded::inside(&other).record();
    let theirs = root.join(".fsure/catalog.db.parity");
    let names = || {
        let mut names: Vec<_> = fs::read_dir(&theirs)
            .expect("list")
            .map(|entry| entry.expect("a name").file_name())
            .collect();
        names.sort();
        names
    };
    let before = names();
    symlink(&theirs, other.join(".fsure/catalog.db.parity")).expect("make a link");
    for command in COMMANDS {
        assert_eq!(run(command, &other).code, 2, "{command}");
    }
    assert_eq!(names(), before);
    // Beside a catalog that lies elsewhere, too, and below a root that is another's.
    let catalog = tree.path("two.db");
    Recorded::outside(&other, &catalog).record();
    symlink(&theirs, tree.path("two.db.parity")).expect("make a link");
    let with = format!("update --catalog {}", catalog.display());
    assert_eq!(run(&with, &other).code, 2);
    fs::rename(&other, root.join("nested")).expect("move");
    let run = run("update", &root);
    assert!(run.code == 2 && run.stderr.contains("nested/.fsure/catalog.db.parity"), "{run:?}");
    assert_eq!(names(), before);
}

#[test]
fn a_file_of_the_recovery_data_may_only_be_a_file() {
    let (tree, root) = protected();
    let victim = tree.write("victim", "precious");
    let folder = root.join(".fsure/catalog.db.parity");
    let names: Vec<_> =
        fs::read_dir(&folder).expect("list").map(|entry| entry.expect("a name").path()).collect();
    assert_eq!(names.len(), 3, "one pool, one group, and how much: {names:?}");
    for path in names.iter().chain([&folder.join("new.pool"), &folder.join("x.making-1")]) {
        for what in ["a symbolic link", "a FIFO", "a socket"] {
            let kept = tree.path("kept");
            let was_there = fs::rename(path, &kept).is_ok();
            plant(what, path, &victim);
            for command in COMMANDS {
                let run = run(command, &root);
                let uses = USE_PARITY.iter().any(|user| command.starts_with(user));
                assert_eq!(run.code == 2, uses, "{command}, {}: {run:?}", path.display());
                assert!(!uses || run.stderr.contains(&format!("is {what}")), "{command}: {run:?}");
            }
            follow_hint(&run("protect", &root));
            if was_there {
                fs::rename(&kept, path).expect("put back");
            }
            assert_eq!(run("protect", &root).code, 0, "{}", path.display());
        }
    }
    assert_eq!(fs::read(&victim).expect("read"), b"precious");
}

#[test]
fn a_fifo_in_a_bag_is_not_waited_for() {
    for name in ["bagit.txt", "fetch.txt", "manifest-sha512.txt", "tagmanifest-sha512.txt"] {
        let tree = Tree::new();
        tree.write("data/a", "");
        let digest = "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce\
                      47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e";
        tree.write("bagit.txt", "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n");
        tree.write("manifest-sha512.txt", format!("{digest}  data/a\n"));
        let against = format!("verify --against {}", tree.root().display());
        assert_eq!(run(&against, tree.root()).code, 0);
        let path = tree.path(name);
        drop(fs::remove_file(&path));
        plant("a FIFO", &path, tree.root());
        assert_ne!(run(&against, tree.root()).code, 0, "{name}");
    }
}
