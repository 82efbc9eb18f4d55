//! The rungs in memory: each runs or says what it would need, and nothing of
//! them is left, not after a kill either.

#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{fsure_json, serial, skip};
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_fsure");
/// Both that FUSE serves have its name in front.
const RUNGS: &str = "ram disk,bind,overlay,zram,fuse,bindfs";
/// Three for each of the two RAM disks, and one for each of the others.
const COUNT: usize = 12;
/// Those that need root: a device, and FUSE beside fsure's own plain server.
const OF_ROOT: [&str; 3] = ["zram", "fuse kernel passthrough", "bindfs"];

fn names(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn of_type<'a>(lines: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    lines.iter().filter(move |line| line["type"] == kind)
}

#[test]
fn each_runs_or_reports_why_not_and_leaves_nothing() {
    let _shared = crate::support::serial::shared();
    let _turn = serial::zram();
    let test = "each_runs_or_reports_why_not";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let report = fsure_json(&["speed", path, "--rungs", RUNGS, "--size", "8M", "--runs", "2"]);
    for line in of_type(&report.lines, "not-run") {
        skip(test, &format!("{}: {}", line["name"], line["why"]));
    }
    let rungs: Vec<_> = of_type(&report.lines, "rung").collect();
    assert_eq!(rungs.len() + of_type(&report.lines, "not-run").count(), COUNT);
    for rung in rungs {
        assert_eq!((&rung["target"], &rung["unit"]), (&"memory".into(), &"MiB/s".into()));
        assert_eq!(rung["amount"], 8 << 20, "{rung}");
        assert!(rung["median"].as_f64().unwrap() > 0.0, "{rung}");
        let measured = rung["measured"].as_str().unwrap();
        let expected = match rung["name"].as_str().unwrap() {
            "ram disk huge read" => "huge=within_size",
            "bind" => "bound over",
            "overlay" => "upper folder",
            "zram" => "flushed",
            "fuse" => "requests came to the server",
            "fuse kernel passthrough" => "the kernel",
            "bindfs" => "bindfs",
            _ => "RAM disk",
        };
        assert!(measured.contains(expected), "{measured}");
        let is_plain = rung["name"].as_str().unwrap().starts_with("ram disk");
        assert_eq!(measured.contains("written only, not read"), !is_plain, "{measured}");
    }
    assert_eq!(names(folder.path()), Vec::<PathBuf>::new());
}

#[test]
fn without_root_memory_is_measured_and_the_rest_names_what_is_missing() {
    let _shared = crate::support::serial::shared();
    let test = "without_root_memory_is_measured";
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new("setpriv")
        .args(["--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin", PROGRAM, "speed"])
        .arg(folder.path())
        .args(["--json", "--rungs", RUNGS, "--size", "8M", "--runs", "1"])
        .output();
    let output = match output {
        Ok(output) if !output.stdout.is_empty() => output,
        _ => return skip(test, "setpriv cannot take a right away here"),
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |line: &Value, field: &str| line[field].as_str().unwrap().to_owned();
    let why: Vec<_> = of_type(&lines, "not-run").map(|line| of(line, "why")).collect();
    assert!(why.iter().all(|why| why.contains("needs root")), "{why:?}");
    assert_eq!(names(folder.path()), Vec::<PathBuf>::new());
    if let Some(why) = why.iter().find(|why| why.contains("or a user namespace")) {
        assert_eq!(of_type(&lines, "rung").count(), 0);
        return skip(test, why);
    }
    let not_run: Vec<_> = of_type(&lines, "not-run").map(|line| of(line, "name")).collect();
    assert_eq!(not_run, OF_ROOT);
    assert_eq!(of_type(&lines, "rung").count(), COUNT - OF_ROOT.len());
}

#[test]
fn nothing_is_left_of_a_run_that_was_killed() {
    let _shared = crate::support::serial::shared();
    let _turn = serial::zram();
    let folder = tempfile::tempdir().unwrap();
    let mut run = Command::new(PROGRAM)
        .arg("speed")
        .arg(folder.path())
        .args(["--rungs", RUNGS, "--size", "32M", "--runs", "1000", "--budget", "10m"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The last of the rungs has been prepared when it has a folder.
    let is_up =
        || names(folder.path()).iter().any(|scratch| scratch.join("bindfs folder").exists());
    let mut ended = None;
    while !is_up() && ended.is_none() {
        std::thread::sleep(Duration::from_millis(10));
        ended = run.try_wait().unwrap();
    }
    if ended.is_some() {
        run.wait().unwrap();
        return skip("nothing_is_left_of_a_run", "no rung can be mounted here");
    }
    let scratch = names(folder.path()).pop().unwrap();
    let registered = std::fs::read_to_string(scratch.join("registered")).unwrap_or_default();
    run.kill().unwrap();
    run.wait().unwrap();
    while !names(folder.path()).is_empty() {
        std::thread::sleep(Duration::from_millis(10));
    }
    for line in registered.lines() {
        let number = line.strip_prefix("zram ").and_then(|rest| rest.split(' ').next()).unwrap();
        assert!(!Path::new(&format!("/sys/block/zram{number}")).exists(), "{line}");
    }
}

#[test]
fn the_founders_line_is_run_ten_times() {
    let _shared = crate::support::serial::shared();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().to_str().unwrap();
    // Ten runs into each sink take as long as the machine needs.
    let args = ["speed", path, "--pv", "--rungs", "pv", "--size", "1M", "--budget", "1h"];
    let report = fsure_json(&args);
    if let Some(line) = of_type(&report.lines, "not-run").next() {
        let is_missing = |why: &str| ["install", "root", "fuse"].iter().any(|w| why.contains(w));
        assert!(is_missing(line["why"].as_str().unwrap()), "{line}");
        return skip("the_founders_line", line["why"].as_str().unwrap());
    }
    let mut sinks: Vec<_> = Vec::new();
    for rung in of_type(&report.lines, "rung") {
        assert_eq!((&rung["runs"], &rung["amount"]), (&10.into(), &(450 << 20).into()));
        assert!(rung["measured"].as_str().unwrap().starts_with("pv -faSs450m < /dev/zero > "));
        sinks.push(rung["name"].as_str().unwrap());
    }
    sinks.sort_unstable();
    assert_eq!(sinks, ["pv", "pv bind", "pv bindfs", "pv fuse", "pv ram disk", "pv void"]);
    assert_eq!(names(folder.path()), Vec::<PathBuf>::new());
}
