//! Options under the names that people know, and the values that people write: former names go
//! on being read, a number without its unit is not guessed at, and the environment counts where
//! the command line says nothing.
#![cfg(target_os = "linux")]

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::signable::Signable;
use crate::support::{Recorded, Report, Run, Tree, code, content, fsure, fsure_with};

/// The key of another user, so that `--signed-by` is one.
const KEY: &str = "RWTmzVpCFfTRrXSJjoOGNpwVGqXUdOoLoGuaSPhXKQxa8Zuar5S7z4bA";

/// A path of which nothing is there: a command line that is understood ends with 5.
const NOWHERE: &str = "/nonexistent/of-no-one";

fn is_understood(args: &[&str]) -> bool {
    let run = fsure(args);
    match run.code {
        2 => false,
        5 => true,
        _ => panic!("{args:?}: {run:?}"),
    }
}

#[test]
fn former_names_and_those_of_other_programs_are_understood() {
    let head = "0".repeat(64);
    for args in [
        &["verify", NOWHERE, "--from", "medium"][..],
        &["verify", NOWHERE, "--read-from=cache"],
        &["update", NOWHERE, "--depth", "4"],
        &["update", NOWHERE, "--queue-depth", "4"],
        &["verify", NOWHERE, "--signed-by", KEY, "--head", &head],
        &["verify", NOWHERE, "--signed-by", KEY, "--expect-head", &head],
        &["verify", NOWHERE, "--signed-by", KEY, "--at-least", "3"],
        &["verify", NOWHERE, "--signed-by", KEY, "--min-generation", "3"],
        &["update", NOWHERE, "-j", "4"],
        &["update", NOWHERE, "--threads", "4"],
        &["scrub", NOWHERE, "--rate", "200MiB/s"],
        &["scrub", NOWHERE, "--bwlimit", "200MiB/s"],
        &["scrub", NOWHERE, "--bwlimit", "0"],
        &["heal", NOWHERE, "-y"],
        &["heal", NOWHERE, "--yes", "--altered"],
        &["heal", NOWHERE, "-n"],
        &["status", NOWHERE, "--all"],
        &["status", NOWHERE, "-v"],
        &["status", NOWHERE, "--verbose"],
        &["update", NOWHERE, "--force"],
        &["update", NOWHERE, "--allow-empty", "--allow-other-disk", "--allow-missing"],
        &["heal", NOWHERE, "--force"],
        &["protect", NOWHERE, "--force"],
        &["recover", NOWHERE, "--dry-run"],
        &["update", NOWHERE, "--digest", "SHA256,sha-512,Blake3"],
        &["update", NOWHERE, "--layout", "Folder"],
        &["export", NOWHERE, "--format", "B3sum"],
    ] {
        assert!(is_understood(args), "{args:?}: {}", fsure(args).stderr);
    }
    let workload = fsure(&["workload", "check", "sqlite", NOWHERE]);
    assert!(!workload.stderr.contains("possible values"), "{workload:?}");
    let seal = Signable::sealed().seal(&["--force"]);
    assert_eq!(seal.code, 0, "{}", seal.stderr);
}

#[test]
fn the_help_has_the_present_names_only() {
    let help = fsure(&["verify", "--help"]).stdout;
    for name in ["--read-from", "--queue-depth", "--expect-head", "--min-generation", "-n, --dry"] {
        assert!(help.contains(name), "{name}: {help}");
    }
    for name in ["--from ", "--depth", "--head", "--at-least", "--force"] {
        assert!(!help.contains(&format!(" {name}")), "{name}: {help}");
    }
    for heading in ["What to read:", "How to read:", "The record:", "Trust:"] {
        assert!(help.contains(heading), "{heading}: {help}");
    }
}

#[test]
fn a_number_without_its_unit_is_not_guessed_at() {
    for (args, words) in [
        (&["verify", NOWHERE, "--rate", "200"][..], "200MiB/s"),
        (&["verify", NOWHERE, "--bwlimit", "1.5"], "1.5MiB/s"),
        (&["verify", NOWHERE, "--timeout", "30"], "say 30s"),
        (&["scrub", NOWHERE, "--max-age", "90"], "say 90d"),
        (&["update", NOWHERE, "--forget", "90"], "say 90d"),
        #[cfg(feature = "storage")]
        (&["speed", NOWHERE, "--size", "4194304"], "4194304MiB"),
        #[cfg(feature = "storage")]
        (&["crash", "--size", "512", "--", "true"], "512MiB"),
    ] {
        let run = fsure(args);
        assert_eq!(run.code, 2, "{args:?}: {run:?}");
        assert!(run.stderr.contains(words), "{args:?}: {}", run.stderr);
    }
    for args in [
        &["verify", NOWHERE, "--rate", "0"][..],
        &["update", NOWHERE, "--forget", "0"],
        &["verify", NOWHERE, "--rate", "200B/s"],
    ] {
        assert!(is_understood(args), "{args:?}");
    }
}

#[test]
fn a_refusal_names_the_one_option_that_fits() {
    let tree = Tree::new();
    for number in 0..8 {
        tree.write(format!("files/{number}"), content(100, number));
    }
    let catalog = Tree::new();
    let recorded = Recorded::outside(&tree.path("files"), &catalog.path("c.db"));
    recorded.record();
    for number in 0..6 {
        std::fs::remove_file(tree.path(format!("files/{number}"))).expect("remove");
    }
    let refused = |option: &str| {
        let run = recorded.text("verify", &["--read-from", "cache"]);
        assert_eq!(run.code, 5, "{run:?}");
        let hint = format!(" --catalog {} {option}\n", recorded.catalog.display());
        assert!(run.stdout.contains(&hint), "{hint}: {}", run.stdout);
        assert!(!run.stdout.contains("--force"), "{}", run.stdout);
        for other in ["--allow-empty", "--allow-other-disk", "--allow-missing"] {
            let run = recorded.text("verify", &[other]);
            assert_eq!(run.code != 5, other == option, "{other}: {run:?}");
        }
    };
    refused("--allow-missing");
    for number in 6..8 {
        std::fs::remove_file(tree.path(format!("files/{number}"))).expect("remove");
    }
    refused("--allow-empty");
    let empty = Tree::new();
    let run = fsure(&["update".as_ref(), empty.root().as_os_str()]);
    assert_eq!(run.code, 5, "{run:?}");
    assert!(run.stderr.contains(" --allow-empty"), "{run:?}");
    let run = fsure(&["update".as_ref(), empty.root().as_os_str(), "--allow-empty".as_ref()]);
    assert_eq!(run.code, 0, "{run:?}");
}

fn with_input(args: &[&OsStr], input: &[u8]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
    command.env("XDG_CONFIG_HOME", "/nonexistent").env("XDG_STATE_HOME", "/nonexistent");
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("start fsure");
    child.stdin.take().expect("a pipe").write_all(input).expect("write");
    let output = child.wait_with_output().expect("its end");
    Run {
        code: code(output.status),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn patterns_come_from_files_and_from_standard_input() {
    let tree = Tree::new();
    for name in ["a.raw", "b.tmp", "c.bak", "keep.tmp"] {
        tree.write(name, name);
    }
    let own = Tree::new();
    let list = own.write("patterns", "# of mine\n\n*.tmp\n");
    let new = |run: Run| {
        let report = Report::new(run);
        assert_eq!(report.code, 0, "{report:?}");
        report.count("new")
    };
    let root = tree.root().as_os_str();
    let with = |more: &[&OsStr], input: &str| {
        let head = ["update".as_ref(), root, "-n".as_ref(), "--json".as_ref()];
        with_input(&[&head[..], more].concat(), input.as_bytes())
    };
    let from = OsStr::new("--exclude-from");
    assert_eq!(new(with(&[from, list.as_os_str()], "")), 2);
    assert_eq!(new(with(&[from, "-".as_ref()], "*.bak\n*.tmp\n")), 1);
    assert_eq!(new(with(&[from, list.as_os_str(), from, "-".as_ref()], "*.bak\r\n")), 1);
    // The command line counts before its files.
    let except = ["--exclude".as_ref(), OsStr::new("!keep.tmp")];
    assert_eq!(new(with(&[&[from, list.as_os_str()], &except[..]].concat(), "")), 3);
    let bad = with(&[from, "-".as_ref()], "ok\n[\n");
    assert_eq!(bad.code, 2, "{bad:?}");
    assert!(bad.stderr.contains("bad pattern in -, line 2"), "{}", bad.stderr);
    let none = with(&[from, own.path("none").as_os_str()], "");
    assert_eq!(none.code, 5, "{none:?}");
}

#[test]
fn a_run_that_is_not_to_wait_says_for_which_process_it_would() {
    let tree = Tree::new();
    tree.write("a", "a");
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    let lock = File::options().write(true).open(tree.path(".fsure/catalog.db.lock"));
    let mut lock = lock.expect("a lock file");
    lock.lock().expect("lock it");
    lock.set_len(0).expect("empty it");
    lock.write_all(b"process 4711").expect("write");
    for args in [
        &["verify"][..],
        &["verify", "-n"],
        &["update"],
        &["update", "-n"],
        &["scrub"],
        &["protect"],
        &["heal", "--from", "/", "-y"],
    ] {
        let run = recorded.text(args[0], &[&args[1..], &["--no-wait"]].concat());
        assert_eq!(run.code, 5, "{args:?}: {run:?}");
        assert!(run.stderr.contains("(process 4711)"), "{args:?}: {}", run.stderr);
        assert!(!run.stdout.contains("as recorded"), "{args:?}: {}", run.stdout);
    }
    // Closing it is not enough: a process that another test is starting may have a copy.
    lock.unlock().expect("unlock it");
    assert_eq!(recorded.text("verify", &["--no-wait"]).code, 0);
}

#[test]
fn the_environment_counts_where_the_command_line_says_nothing() {
    let tree = Tree::new();
    tree.write("a.tmp", "a");
    tree.write("b", "b");
    let patterns = Tree::new();
    let list = patterns.write("patterns", "*.tmp\n");
    let root = tree.root().as_os_str();
    let update = [OsStr::new("update"), root, "-n".as_ref(), "--json".as_ref()];
    let from_environment = ("FSURE_EXCLUDE_FROM", list.as_os_str());
    assert_eq!(Report::new(fsure_with(from_environment, &update)).count("new"), 1);
    let empty = ("FSURE_EXCLUDE_FROM", OsStr::new(""));
    assert_eq!(Report::new(fsure_with(empty, &update)).count("new"), 2);
    for (name, value, word) in [
        ("FSURE_THREADS", "many", "FSURE_THREADS"),
        ("FSURE_RATE", "200", "FSURE_RATE"),
        ("FSURE_TIMEOUT", "soon", "FSURE_TIMEOUT"),
        ("FSURE_QUEUE_DEPTH", "0", "FSURE_QUEUE_DEPTH"),
        ("FSURE_READ_FROM", "tape", "FSURE_READ_FROM"),
        ("FSURE_NO_WAIT", "perhaps", "FSURE_NO_WAIT"),
        ("FSURE_CROSS_FILE_SYSTEMS", "perhaps", "FSURE_CROSS_FILE_SYSTEMS"),
    ] {
        let run = fsure_with((name, value.as_ref()), &["verify".as_ref(), root]);
        assert_eq!(run.code, 2, "{name}: {run:?}");
        assert!(run.stderr.contains(word), "{name}: {}", run.stderr);
        // Another command does not have the option.
        let run = fsure_with((name, value.as_ref()), &["log".as_ref(), root]);
        assert_eq!(run.code, 5, "{name}: {run:?}");
    }
    let verify = |name: &str, value: &str, more: &[&str]| {
        let args = [&["verify", NOWHERE], more].concat();
        fsure_with((name, value.as_ref()), &args).code
    };
    assert_eq!(verify("FSURE_THREADS", "many", &["--threads", "2"]), 5);
    assert_eq!(verify("FSURE_THREADS", "4", &[]), 5);
    for yes in ["1", "true", "yes", "on", "0", "no"] {
        assert_eq!(verify("FSURE_NO_WAIT", yes, &[]), 5, "{yes}");
    }
    // The processes that fsure starts of itself heed none.
    let own = fsure_with(("FSURE_COLOR", "red".as_ref()), &["workload", "run", "none", NOWHERE]);
    assert!(!own.stderr.contains("FSURE_COLOR"), "{own:?}");
}

#[test]
fn a_bad_value_of_the_command_line_is_not_blamed_on_the_environment() {
    let args = ["verify", NOWHERE, "--threads", "many"];
    let run = fsure_with(("FSURE_THREADS", "2".as_ref()), &args);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(!run.stderr.contains("FSURE_THREADS"), "{}", run.stderr);
}

#[test]
fn a_dash_is_standard_input_and_output() {
    let tree = Tree::new();
    tree.write("a", "a");
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    let root = tree.root().as_os_str();
    let export =
        ["export".as_ref(), root, "--format".as_ref(), "sha256sums".as_ref(), "-o".as_ref()];
    let exported = with_input(&[&export[..], &["-".as_ref()]].concat(), b"");
    let list = exported.stdout;
    assert!(list.ends_with("  a\n"), "{list}");
    let against = ["verify".as_ref(), root, "--against".as_ref(), OsStr::new("-")];
    assert_eq!(with_input(&against, list.as_bytes()).code, 0);
    let compare = ["compare".as_ref(), OsStr::new("-"), root];
    assert_eq!(with_input(&compare, list.as_bytes()).code, 0);
    let import = ["import".as_ref(), OsStr::new("-"), "--root".as_ref(), root, "-n".as_ref()];
    assert_eq!(with_input(&import, list.as_bytes()).code, 0);
    assert!(!Path::new("-").exists(), "a file of that name was made");
}

#[test]
fn an_update_says_which_digests_it_added() {
    let tree = Tree::new();
    for name in ["a", "b"] {
        tree.write(name, name);
    }
    let recorded = Recorded::inside(tree.root());
    let first = recorded.text("update", &["--digest", "blake3"]);
    assert!(!first.stdout.contains("Added"), "{first:?}");
    let dry = recorded.text("update", &["--digest", "sha256,md5", "-n"]);
    assert!(dry.stdout.contains("Would add sha256,md5 to 2 files, which are"), "{dry:?}");
    tree.write("b", "another content");
    let added = recorded.text("update", &["--digest", "sha256,md5"]);
    assert!(added.stdout.contains("Added sha256,md5 to 1 file, which is as recorded"), "{added:?}");
    let again = recorded.text("update", &["--digest", "sha256,md5"]);
    assert!(!again.stdout.contains("Added"), "{again:?}");
}
