//! `fsure ram try`: each way is run in turns, in the folder that it is about, and a command
//! that fails has no time.
#![cfg(target_os = "linux")]

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::ram_run_folders::{NOBODY, Place, User, users, words};
use crate::support::{EXT4_JOURNALED, Image, or_skip};
use serde_json::Value;

fn try_in(place: &Place, folder: &Path, options: &[&str], script: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
    command.args(["ram", "try", "--json", "--max-loss", "10s"]).args(options).arg(folder);
    let script = format!("cd {} || exit 99\n{script}", folder.display());
    command.args(["--", "sh", "-c", &script]);
    command.current_dir(place.home.path()).stdin(Stdio::null());
    if place.user == User::Nobody {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.output().expect("run fsure")
}

/// The lines of fsure, without the first.
fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["type"] != "start").collect()
}

fn counts(lines: &[Value]) -> Vec<(&str, u64)> {
    let ways = lines.iter().filter(|line| line["type"] == "trial");
    ways.map(|line| (line["way"].as_str().unwrap(), line["runs"].as_u64().unwrap())).collect()
}

#[test]
fn ways_take_turns_and_memory_is_memory() {
    for user in users("ways_take_turns_and_memory_is_memory") {
        let place = Place::new(user);
        // Standard output is the command's: it says where it is, each time.
        let output =
            try_in(&place, &place.folder(), &["--runs", "2"], "stat -f -c %T .; echo x >> y");
        assert_eq!(output.status.code(), Some(0), "{}", words(&output));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let kinds: Vec<_> = text.lines().filter(|line| !line.starts_with('{')).collect();
        let kinds: Vec<_> = kinds.into_iter().filter(|line| !line.is_empty()).collect();
        let memory = kinds.iter().filter(|kind| **kind == "tmpfs").count();
        let lines = lines(&output);
        let counts = counts(&lines);
        assert_eq!(counts[..2], [("disk", 2), ("ram", 2)], "{text}");
        let deferred = counts[2].1;
        assert!(kinds.len() >= 6 && memory >= 3, "a warm-up and two turns: {text}");
        assert_eq!(deferred == 0, lines[2]["refused"].is_string(), "{text}");
        let ram = &lines[1];
        let figure = |name: &str| ram[name].as_f64().unwrap_or_else(|| panic!("{name}: {ram}"));
        assert!(0.0 < figure("low_s") && figure("low_s") <= figure("median_s"), "{ram}");
        assert!(figure("median_s") < figure("whole_s"), "copies take time: {ram}");
        assert!(figure("ratio_low") <= figure("ratio_high"), "{ram}");
        assert!(lines[0]["ratio"].is_null(), "the disk is what others are beside");
        // Each run was in the folder, whichever way.
        let runs = place.read("y").expect("it is on the disk").lines().count();
        assert_eq!(runs, kinds.len());
        place.assert_clean();
    }
}

#[test]
fn deferring_is_a_way_on_a_file_system_that_keeps_the_order() {
    let test = "deferring_is_a_way_on_a_file_system_that_keeps_the_order";
    if users(test).is_empty() {
        return;
    }
    let Some(image) = or_skip(test, Image::new(&EXT4_JOURNALED, 64)) else { return };
    let place = Place::new(User::Own);
    let folder = image.root().join("work");
    std::fs::create_dir(&folder).expect("make a folder");
    let output = try_in(&place, &folder, &["--runs", "1"], "echo x > a; sync a");
    assert_eq!(output.status.code(), Some(0), "{}", words(&output));
    let lines = lines(&output);
    assert_eq!(counts(&lines), [("disk", 1), ("ram", 1), ("deferred", 1)]);
    assert!(lines[2]["refused"].is_null() && lines[2]["ratio"].is_number(), "{lines:?}");
    assert_eq!(lines[3]["file_system"], "ext4");
}

#[test]
fn a_command_that_fails_ends_the_trial() {
    for user in users("a_command_that_fails_ends_the_trial") {
        let place = Place::new(user);
        let saved = place.home.path().join("saved");
        // Not in memory, where it is run first.
        let script = "stat -f -c %T . | grep -qx tmpfs || exit 3; echo x >> y";
        let options = ["--save", saved.to_str().expect("UTF-8")];
        let options = if user == User::Own { &options[..] } else { &[] };
        let output = try_in(&place, &place.folder(), options, script);
        assert_eq!(output.status.code(), Some(5), "{}", words(&output));
        assert!(
            words(&output).contains("the command ended with exit code 3"),
            "{}",
            words(&output)
        );
        assert!(!saved.exists(), "it holds no result");
        assert_eq!(place.read("y").as_deref(), Some("x\n"), "what it did is there");
        place.assert_clean();
        let output = try_in(&place, &place.home.path().join("none"), &[], "true");
        assert_eq!(output.status.code(), Some(2), "{}", words(&output));
    }
}
