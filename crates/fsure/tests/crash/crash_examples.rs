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
