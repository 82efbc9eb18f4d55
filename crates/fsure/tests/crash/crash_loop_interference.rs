//! Changes by other processes to the loop device between a file system and its simulated
//! drive: they are noticed, and no program is blamed for them. The programs here do it
//! themselves, as root, so that each comes at a moment that is known.
#![cfg(target_os = "linux")]

use crate::support;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::noise::write_cache;
use crate::support::{Report, fsure_with};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Numbers in a file, each on its medium before it is acknowledged; and its device.
const WRITER: &str = r#"
d=$(awk -v p="$MNT" '$5 == p { print $(NF-1) }' /proc/self/mountinfo); s=/sys/block/${d#/dev/}
put() { echo $1 >> log; sync -d log; echo ACK $1; }
once() { mkdir "$1" 2>/dev/null; }
touch log; sync . log
"#;
const CHECK: &str =
    r#"awk '$1 == NR { n = NR } END { print "LAST " n+0 }' log 2>/dev/null || echo LAST 0"#;

fn cuts(lines: &[Value]) -> impl Iterator<Item = &Value> {
    lines.iter().filter(|line| line["type"] == "cut" && line["twin"] != true)
}

/// Runs a program that does something to its device before it acknowledges anything, so
/// that no cut is earlier. `None`, and said so, where this machine cannot.
fn disturbed(test: &str, (does, check): (&str, &str), cuts: &str) -> Option<Report> {
    let folder = tempfile::tempdir().expect("a folder");
    let marks = tempfile::tempdir().expect("a folder");
    let program = format!("{WRITER}\n{does}\nn=0; while :; do n=$((n+1)); put $n; done");
    let at = |line: &str| line.replace("MARKS", marks.path().to_str().expect("text"));
    let (program, check) = (at(&program), at(check));
    let args = ["--fs", "ext4", "--size", "32M", "--cuts", cuts, "--variant", "none"];
    let args = [&args[..], &["--check", &check, "--", "sh", "-c", &program]].concat();
    let run = support::crash(test, folder.path(), &args)?;
    assert_eq!(fs::read_dir(folder.path()).expect("list").count(), 0, "left behind");
    Some(run)
}

#[test]
fn a_device_that_was_left_without_flushes_is_put_right() {
    let free = || {
        let devices = fs::read_dir("/sys/block").expect("list").flatten();
        let devices = devices.map(|device| device.path());
        let is_loop = |path: &PathBuf| path.to_string_lossy().contains("/loop");
        devices.filter(is_loop).filter(|path| !path.join("loop/backing_file").exists())
    };
    let folder = tempfile::tempdir().expect("a folder");
    for device in free() {
        // It may have been attached by now, and then this is refused or harms no test.
        let _ = fs::write(write_cache(&device), "write through");
    }
    let args = ["--fs", "ext4", "--size", "32M", "--cuts", "3", "--workload", "append:fsync"];
    let run = support::crash("a device without flushes", folder.path(), &args);
    for device in free() {
        let _ = fs::write(write_cache(&device), "write back");
    }
    let Some(run) = run else { return };
    assert_eq!(run.code, 0, "{run:?}");
    assert!(cuts(&run.lines).all(|cut| cut["state"] == "survived"), "{run:?}");
}

/// Returns true if a run warns with these words.
fn has_warning(run: &Report, words: &str) -> bool {
    let warnings = run.lines.iter().filter(|line| line["type"] == "warning");
    warnings.filter_map(|line| line["words"].as_str()).any(|warning| warning.contains(words))
}

/// Runs a program that disturbs its own device once, until the run warns with these words.
/// If yet another process disturbs a device first, the run warns of that instead.
fn reported(words: &str, program_and_check: (&str, &str)) -> Option<Report> {
    loop {
        let run = disturbed(words, program_and_check, "2")?;
        if has_warning(&run, words) || !has_warning(&run, "is repeated") {
            return Some(run);
        }
    }
}

/// It is reported, and the cut is made anew on another device.
#[test]
fn what_another_process_does_to_the_device_is_no_loss() {
    let through = "echo 'write through' > $s/queue/write_cache";
    let there_and_back = format!("{through}; echo 'write back' > $s/queue/write_cache");
    for (does, words) in [
        (through, "/queue/write_cache"),
        (&*there_and_back, "another process wrote to /sys/block/loop"),
        ("blockdev --setro $d", "it is read-only"),
        ("mount -o remount,barrier=0 $MNT", "mounted /dev/loop"),
        (
            "dd if=$d of=$d bs=4096 count=1 conv=notrunc 2>/dev/null",
            "another process wrote to /dev/loop",
        ),
    ] {
        let does = format!("if once MARKS/done; then {does}; fi");
        let Some(run) = reported(words, (&does, CHECK)) else { return };
        assert!(has_warning(&run, words), "{does}: {run:?}");
        assert_eq!(run.code, 0, "{does}: {run:?}");
        assert!(cuts(&run.lines).all(|cut| cut["state"] == "survived"), "{does}: {run:?}");
    }
}

/// A write by another process to an image while the check looks at it counts, too.
#[test]
fn what_another_process_does_during_a_check_is_no_loss() {
    let device = r#"d=$(awk -v p="$MNT" '$5 == p { print $(NF-1) }' /proc/self/mountinfo)"#;
    let does = "dd if=$d of=$d bs=4096 count=1 conv=notrunc 2>/dev/null; exit 1";
    let check = format!("{device}; if mkdir MARKS/done 2>/dev/null; then {does}; fi; {CHECK}");
    let words = "a check is repeated: another process wrote to /dev/loop";
    let Some(run) = reported(words, ("true", &check)) else { return };
    assert_eq!(run.code, 0, "{run:?}");
    assert!(cuts(&run.lines).all(|cut| cut["state"] == "survived"), "{run:?}");
    assert!(has_warning(&run, words), "{run:?}");
}

#[test]
fn a_device_that_never_holds_still_is_a_broken_harness() {
    let folder = tempfile::tempdir().expect("a folder");
    let program =
        format!("{WRITER}\necho 'write through' > $s/queue/write_cache; put 1; sleep 1000");
    let args = ["--fs", "ext4", "--size", "32M", "--cuts", "2", "--pause", "0.01s"];
    let args = [&args[..], &["--check", CHECK, "--", "sh", "-c", &program]].concat();
    let json = [&["crash", "--json"], &args[..]].concat();
    let run = fsure_with(("TMPDIR", folder.path().as_os_str()), &json);
    if support::cannot_crash(&run) {
        return support::skip("a broken harness", &run.stderr);
    }
    let run = Report::new(run);
    assert_eq!(run.code, 70, "{run:?}");
    let last = run.lines.last().expect("a summary");
    assert_eq!((&last["type"], &last["losses"]), (&"summary".into(), &0.into()), "{run:?}");
    let broken: Vec<_> = run.lines.iter().filter(|line| line["type"] == "cut").collect();
    assert_eq!(broken.len(), 1, "{run:?}");
    assert_eq!((&broken[0]["state"], &broken[0]["lost"]), (&"harness-broken".into(), &Value::Null));
    let drive = run.lines.iter().find(|line| line["type"] == "drive").expect("a drive");
    assert!(drive["disturbed"].as_str().is_some_and(|why| why.contains("queue/write_cache")));
    let text = fsure_with(("TMPDIR", folder.path().as_os_str()), &[&["crash"], &args[..]].concat());
    assert_eq!(text.code, 70, "{text:?}");
    assert!(text.stdout.contains("honest: harness broken: another process wrote to"), "{text:?}");
    assert_eq!(fs::read_dir(folder.path()).expect("list").count(), 0, "left behind");
}

/// The process that watches, ended by another again and again.
#[test]
fn a_device_that_is_not_watched_any_more_shows_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let space = folder.path().to_path_buf();
    let is_done = AtomicBool::new(false);
    let run = std::thread::scope(|scope| {
        scope.spawn(|| {
            // Several: one may have been of a device that was only looked at.
            let mut left = 15;
            while left > 0 && !is_done.load(Ordering::Relaxed) {
                if let Some(keeper) = keeper_of(&space) {
                    // It may have ended by itself since.
                    let _ = kill_process(keeper, Signal::KILL);
                    left -= 1;
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let args = ["--fs", "ext4", "--size", "32M", "--cuts", "2", "--workload", "append:fsync"];
        let run = support::crash("a keeper that is killed", &space, &args);
        is_done.store(true, Ordering::Relaxed);
        run
    });
    let Some(run) = run else { return };
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.lines.iter().any(|line| line["type"] == "warning"), "{run:?}");
    assert_eq!(fs::read_dir(&space).expect("list").count(), 0, "left behind");
}

fn keeper_of(space: &Path) -> Option<Pid> {
    let processes = fs::read_dir("/proc").expect("list").flatten();
    let mut keepers = processes.filter_map(|process| {
        let words = fs::read(process.path().join("cmdline")).ok()?;
        let words = String::from_utf8_lossy(&words).into_owned();
        let is_keeper = words.contains("loop-keeper") && words.contains(space.to_str()?);
        let number = process.file_name().to_str()?.parse().ok()?;
        is_keeper.then(|| Pid::from_raw(number))?
    });
    keepers.next()
}
