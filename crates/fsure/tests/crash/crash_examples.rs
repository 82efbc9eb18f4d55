//! The examples of `docs/crash.md`: databases, and RAM folders, as their users would
//! test them.
#![cfg(target_os = "linux")]

use crate::support;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Report, or_skip};
use serde_json::Value;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples").canonicalize().unwrap()
}

fn is_there(program: &str) -> Result<(), String> {
    let line = format!("PATH=$(echo /usr/lib/postgresql/*/bin):$PATH; command -v {program}");
    let found = Command::new("sh").args(["-c", &line]).output().unwrap();
    if found.status.success() { Ok(()) } else { Err(format!("no {program}")) }
}

/// The cuts of an example and the exit code; `None`, and said so, where this
/// machine cannot.
fn run(test: &str, args: &[&str]) -> Option<(i32, Vec<Value>)> {
    let folder = tempfile::tempdir().unwrap();
    let Report { code, lines, stderr, .. } = support::crash(test, folder.path(), args)?;
    assert!(code != 2, "{stderr}");
    let cuts = lines.into_iter().filter(|line| line["type"] == "cut" && line["twin"] != true);
    Some((code, cuts.collect()))
}

#[test]
fn postgresql_loses_nothing_on_a_drive_that_keeps_its_word() {
    let test = "PostgreSQL on a simulated drive";
    let needed = ["pg_ctl", "pg_amcheck", "psql", "setpriv"];
    if or_skip(test, needed.iter().try_for_each(|program| is_there(program))).is_none() {
        return;
    }
    // It gives up root, and has to reach its scripts then: their folder may be one
    // that only root sees.
    let folder = tempfile::tempdir().unwrap();
    let line = format!("cp -r '{}'/postgresql/. . && chmod -R a+rX .", examples().display());
    let copied = Command::new("sh").args(["-c", &line]).current_dir(folder.path()).status();
    assert!(copied.unwrap().success());
    let script = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [prepare, check, program] = ["prepare", "check", "run"].map(script);
    let args =
        ["--fs", "ext4", "--drive", "honest,lying", "--cuts", "3", "--variant", "none,random,torn"];
    let scripts = ["--prepare", &prepare, "--check", &check, "--", &program];
    let Some((code, cuts)) = run(test, &[&args[..], &scripts].concat()) else { return };
    assert_eq!((code, cuts.len()), (3, 6), "{cuts:?}");
    let honest = cuts.iter().filter(|cut| cut["drive"] == "honest");
    assert!(honest.clone().all(|cut| cut["state"] == "survived"), "{cuts:?}");
    assert!(honest.clone().all(|cut| cut["acked"].as_u64() > Some(0)), "{cuts:?}");
}

#[test]
fn sqlite_loses_what_its_settings_imply() {
    let test = "SQLite's shell on a simulated drive";
    if or_skip(test, is_there("sqlite3")).is_none() {
        return;
    }
    let [check, program] = ["check", "run"]
        .map(|name| examples().join("sqlite").join(name).to_str().unwrap().to_owned());
    let with = |cuts: &str, settings: [&str; 2]| {
        let args = [
            "--fs",
            "ext4",
            "--cuts",
            cuts,
            "--variant",
            "none",
            "--check",
            &check,
            "--",
            &program,
        ];
        run(test, &[&args[..], &settings].concat())
    };
    let Some((code, cuts)) = with("3", ["wal", "full"]) else { return };
    assert_eq!((code, cuts.len()), (0, 3), "{cuts:?}");
    let (code, cuts) = with("6", ["wal", "normal"]).unwrap();
    assert_eq!(code, 3, "{cuts:?}");
    assert!(cuts.iter().all(|cut| cut["state"] != "corrupt"), "{cuts:?}");
}

/// The daemon with all that belongs to it, where the engine alone is tried in
/// `ram_cut.rs`.
#[test]
fn a_bound_folder_loses_nothing_that_was_synced() {
    let test = "a bound RAM folder on a simulated drive";
    if or_skip(test, is_there("unshare")).is_none() {
        return;
    }
    let program = env!("CARGO_BIN_EXE_fsure");
    let [check, run_it] = ["check", "run"].map(|name| {
        let script = examples().join("ram-folder").join(name);
        format!("FSURE='{program}' '{}'", script.display())
    });
    for fs in ["ext4", "xfs", "btrfs"] {
        // What is torn there is its superblock, and then it does not mount.
        let variant = "none,all,prefix,epoch,random";
        let args = ["--fs", fs, "--cuts", "5", "--variant", variant, "--check", &check];
        let command = ["--", "sh", "-c", &run_it];
        let Some((code, cuts)) = run(test, &[&args[..], &command].concat()) else { return };
        assert_eq!((code, cuts.len()), (0, 5), "{fs}: {cuts:?}");
        let acked = cuts.iter().filter_map(|cut| cut["acked"].as_u64()).max();
        assert!(acked > Some(0), "{fs}: {cuts:?}");
    }
}

/// Runs a script of the example of Apple's drive in an empty folder and returns its exit code and
/// output; `None`, and said so, if this machine cannot.
fn apple(test: &str, script: &str, args: &[&str], folder: &Path) -> Option<(i32, String)> {
    loop {
        let mut command = Command::new(examples().join("apple").join(script));
        command.args(args).current_dir(folder).env("TMPDIR", folder);
        let run = support::ended(command.env("FSURE", env!("CARGO_BIN_EXE_fsure")));
        if support::cannot_crash(&run) {
            support::skip(test, run.stderr.trim());
            return None;
        }
        // Another process may change loop devices meanwhile.
        if run.code != 70 {
            return Some((run.code, run.stdout));
        }
    }
}

#[test]
fn a_drive_of_apple_is_slow_with_flushes_and_fast_without() {
    let (test, folder) = ("flushes of a simulated Apple drive", tempfile::tempdir().unwrap());
    let args = ["--json", "--time", "50ms"];
    let Some((code, lines)) = apple(test, "flush", &args, folder.path()) else { return };
    assert!(code == 0 || code == 5, "{code}: {lines}");
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let operations_per_second = |method: &str| {
        let line = lines.iter().find(|line| line["type"] == "method" && line["name"] == method);
        line.and_then(|line| line["ops"].as_f64()).unwrap_or_else(|| panic!("{method}: {lines:?}"))
    };
    let (written, flushed) = (operations_per_second("write only"), operations_per_second("fsync"));
    // No flush takes less than 21 ms there.
    assert!(flushed < 1000.0 / 21.0 && written > 10.0 * flushed, "{written} {flushed}");
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "the drive stays");
}

#[test]
fn deferring_on_a_drive_of_apple_loses_what_it_was_allowed_to() {
    let test = "SQLite on a simulated Apple drive";
    if or_skip(test, is_there("sqlite3")).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let args = ["page.html", "--cuts", "1", "--variant", "none", "--pause", "200ms"];
    let Some((code, text)) = apple(test, "crash", &args, folder.path()) else { return };
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("honest: 1 cut survived"), "{text}");
    let mut names = vec![
        "1-SQLite-as-it-is",
        "2-SQLite,-deferred-by-the-drive",
        "3-SQLite-under-fsure-defer,-ext4",
        "5-SQLite-as-it-is,-ext4-by-default",
        "6-SQLite-with-NORMAL,-many-commits",
    ];
    if or_skip("btrfs on a simulated Apple drive", is_there("mkfs.btrfs")).is_some() {
        names.push("4-SQLite-under-fsure-defer,-btrfs");
    }
    if or_skip("PostgreSQL on a simulated Apple drive", is_there("initdb")).is_some() {
        names.extend(["7-PostgreSQL-as-it-is", "8-PostgreSQL-with-synchronous_commit=off"]);
    }
    for name in names {
        assert!(text.contains(&format!("== {name}\n")), "{name} in {text}");
    }
    let left = folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["page.html"]);
}
