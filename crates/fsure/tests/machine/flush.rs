//! `fsure flush` as its users meet it: the lines that programs read, the exit
//! codes, what is saved, and what it says where nothing can be measured. Times
//! mean nothing here.
#![cfg(target_os = "linux")]

use crate::support;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::noise::undisturbed;
use crate::support::{EXFAT, EXT4, Image, Mounted, Run, VFAT, fsure, fsure_with, or_skip, skip};
use rustix::mount::{MountFlags, mount_remount};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const SHORT: [&str; 4] = ["--time", "0.04s", "--threads", "2"];

fn flush(more: &[&str]) -> Run {
    fsure(&[&["flush"], &SHORT[..], more].concat())
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
}

fn of_type<'a>(lines: &'a [Value], name: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == name).collect()
}

/// Mounts a tmpfs of so many KiB, if this machine allows that.
fn memory(test: &str, kibibytes: u32) -> Option<(tempfile::TempDir, Mounted)> {
    let folder = tempfile::tempdir().expect("make a folder");
    let mounted = or_skip(test, Mounted::tmpfs(folder.path(), kibibytes))?;
    Some((folder, mounted))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn lines_for_programs_have_the_fields_agreed() {
    let _shared = crate::support::serial::shared();
    undisturbed("lines for programs", || {
        let test = "lines_for_programs_have_the_fields_agreed";
        let Some(image) = or_skip(test, Image::new(&EXT4, 256)) else { return };
        let run = flush(&["--json", "--profile", "etcd", text(image.root())]);
        let lines = lines(&run.stdout);
        assert_eq!(lines[0]["type"], "result");
        assert_eq!(lines[0]["kind"], "flush");
        let layers = of_type(&lines, "layer");
        let kinds: Vec<_> = layers.iter().map(|layer| &layer["layer"]).collect();
        assert_eq!(kinds[..2], ["file system", "loop"], "{layers:?}");
        assert_eq!(layers[0]["name"], "ext4");
        assert!(kinds.len() > 2, "what the image lies on: {layers:?}");
        let methods = of_type(&lines, "method");
        assert!(methods.iter().any(|method| method["name"] == "fdatasync"));
        for method in methods {
            assert!(method["name"].is_string() && method["reached"].is_string(), "{method}");
            let numbers =
                ["ops", "p50_us", "p99_us", "max_us", "device_kib_per_op", "flushes_per_op"];
            for field in numbers {
                assert!(method[field].is_number(), "{field} of {method}");
            }
        }
        assert_eq!(of_type(&lines, "profile")[0]["name"], "etcd");
        let verdict = of_type(&lines, "verdict");
        assert!(verdict.iter().all(|line| line["words"].is_string()));
        assert_eq!(verdict[0]["id"], "NOT_MEASURED", "a loop device says nothing of a drive");
        let last = lines.last().expect("a line");
        assert_eq!(last["type"], "summary");
        assert_eq!((&last["exit_code"], run.code), (&Value::from(5), 5));
        let left = image.root().read_dir().expect("list it").count();
        assert_eq!(left, 0, "nothing is left behind");
    });
}

#[test]
fn memory_is_not_measured_and_the_reason_is_reported() {
    let _shared = crate::support::serial::shared();
    let test = "memory_is_not_measured_and_the_reason_is_reported";
    let Some((folder, _mounted)) = memory(test, 400 << 10) else { return };
    let file = folder.path().join("a file");
    std::fs::write(&file, "x").expect("write a file");
    let run = flush(&["--quiet", text(&file)]);
    assert_eq!(run.code, 5);
    // That it had bad company may be said of any run.
    let company = ["other programs used", "the hypervisor gave", "tasks were running"];
    let is_of_the_run = |line: &&str| !company.iter().any(|words| line.contains(words));
    let reported = run.stderr.lines().filter(is_of_the_run);
    assert_eq!(reported.collect::<Vec<_>>(), [""; 0]);
    let start = format!("{}\n  NOT_MEASURED: ", text(folder.path()));
    assert!(run.stdout.starts_with(&start), "a file stands for its folder: {}", run.stdout);
    let run = flush(&[text(folder.path())]);
    assert_eq!(run.code, 5);
    for part in ["\nLies on\n  file system  tmpfs", "\n  fsync ", "tmpfs is in memory: a power cut"]
    {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    assert!(!run.stdout.contains("safe"), "{}", run.stdout);
    let names: Vec<_> = folder.path().read_dir().expect("list it").collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn the_summary_is_the_last_line_whatever_ends_the_run() {
    let _shared = crate::support::serial::shared();
    let run = flush(&["--json", "/a folder that is not there"]);
    let lines = lines(&run.stdout);
    let last = lines.last().expect("a line");
    assert_eq!((&last["type"], &last["exit_code"]), (&"summary".into(), &Value::from(5)));
    let words = of_type(&lines, "warning")[0]["words"].as_str().expect("words");
    assert!(words.starts_with("the run ended early: cannot "), "{words}");
    assert!(run.stderr.contains("/a folder that is not there"), "{}", run.stderr);
    assert_eq!(run.code, 5);
}

#[test]
fn what_is_saved_is_what_is_printed_and_never_written_over() {
    let _shared = crate::support::serial::shared();
    let test = "what_is_saved_is_what_is_printed_and_never_written_over";
    let Some((folder, _mounted)) = memory(test, 400 << 10) else { return };
    let saved = tempfile::tempdir().expect("make a folder");
    let file = saved.path().join("result");
    let run = flush(&["--json", "--save", text(&file), text(folder.path())]);
    assert_eq!(run.code, 5);
    let content = std::fs::read_to_string(&file).expect("read the result");
    assert_eq!(content, run.stdout);
    let stored = fsure_measure::results::read(content.as_bytes()).expect("a result");
    assert_eq!(stored.summary.expect("the end").exit_code, 5);
    let again = flush(&["--save", text(&file), text(folder.path())]);
    assert_eq!((again.code, again.stdout.as_str()), (5, ""));
    assert!(again.stderr.contains("it is there already"), "{}", again.stderr);
    assert_eq!(std::fs::read_to_string(&file).expect("read it"), content);
}

#[test]
fn a_result_that_can_no_longer_be_saved_is_still_measured() {
    let _shared = crate::support::serial::shared();
    let test = "a_result_that_can_no_longer_be_saved_is_still_measured";
    let Some((folder, _mounted)) = memory(test, 400 << 10) else { return };
    let Some((small, _small)) = memory(test, 4) else { return };
    let file = small.path().join("result");
    let run = flush(&["--json", "--save", text(&file), text(folder.path())]);
    assert!(run.stderr.contains("the result is no longer saved"), "{}", run.stderr);
    assert_eq!(run.code, 5);
    assert_eq!(lines(&run.stdout).last().expect("a line")["type"], "summary");
}

#[test]
fn the_reason_is_reported_if_nothing_can_be_measured() {
    let _shared = crate::support::serial::shared();
    let test = "the_reason_is_reported_if_nothing_can_be_measured";
    for (arguments, code, message) in [
        (&["/no/such/place"][..], 5, "cannot open the folder /no/such/place: No such file"),
        // It is there, and even root makes nothing in it.
        (&["/proc/self"], 5, "cannot make a work folder in /proc/self: "),
        (&["/tmp", "/etc", "/tmp"], 2, "two folders have the name /tmp in the result"),
        (&["--time", "5"], 2, "say 5s"),
        (&["--profile", "oracle"], 2, "etcd"),
        (&["--threads", "0"], 2, "--threads"),
        (&["--quick", "--time", "1s"], 2, "--quick"),
    ] {
        let run = fsure(&[&["flush"], arguments].concat());
        assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{arguments:?}");
        assert!(run.stderr.contains(message), "{arguments:?}: {}", run.stderr);
    }
    let Some((full, _full)) = memory(test, 1 << 10) else { return };
    let run = flush(&["--quiet", text(full.path())]);
    assert_eq!(run.code, 5);
    assert!(run.stderr.contains("are needed"), "{}", run.stderr);
    assert!(run.stderr.contains("make room there"), "{}", run.stderr);
    assert_eq!(full.path().read_dir().expect("list it").count(), 0);
    let Some((fixed, _fixed)) = memory(test, 1 << 10) else { return };
    mount_remount(fixed.path(), MountFlags::RDONLY, c"").expect("remount it");
    let run = flush(&["--quiet", text(fixed.path())]);
    assert_eq!(run.code, 5);
    assert!(run.stderr.contains("mounted read-only"), "{}", run.stderr);
}

/// Another program has changed the setting of the device, which then sends no flush to its
/// file: nothing is said of what that lies on, and the device is not taken for a drive.
#[test]
fn a_loop_device_that_sends_no_flush_is_reported_with_its_setting() {
    let _shared = crate::support::serial::shared();
    let test = "a loop device that sends no flush";
    undisturbed(test, || {
        let Some(image) = or_skip(test, Image::new(&EXT4, 256)) else { return };
        let setting = format!("/sys/block/{}/queue/write_cache", image.device());
        std::fs::write(&setting, "write through").expect("change the setting");
        let run = flush(&["--json", text(image.root())]);
        std::fs::write(&setting, "write back").expect("change it back");
        let lines = lines(&run.stdout);
        assert_eq!(run.code, 3, "{run:?}");
        let verdict = &of_type(&lines, "verdict")[0];
        assert_eq!((&verdict["id"], &verdict["grade"]), (&"CLAIMS_WT".into(), &"bad".into()));
        let words = verdict["words"].as_str().expect("words");
        assert!(words.contains("OVERRIDDEN") && words.contains(&setting), "{words}");
        let layers = of_type(&lines, "layer");
        assert!(
            layers[1]["facts"].to_string().contains("kept from the file of loop"),
            "{layers:?}"
        );
    });
}

/// By a mount option, and by a library that is loaded before the system's.
#[test]
fn a_flush_that_is_never_sent_is_bad() {
    let _shared = crate::support::serial::shared();
    undisturbed("a flush that is never sent", || {
        let test = "a_flush_that_is_never_sent_is_bad";
        let Some(image) = or_skip(test, Image::new(&EXT4, 128)) else { return };
        let assert_never_sent = |run: &Run, how: &str| {
            assert_eq!(run.code, 3, "{how}: {}{}", run.stdout, run.stderr);
            assert!(run.stdout.contains("NO_FLUSH_SENT (bad)"), "{how}: {}", run.stdout);
        };
        mount_remount(image.root(), MountFlags::empty(), c"barrier=0").expect("remount it");
        assert_never_sent(&flush(&["--quiet", text(image.root())]), "barrier=0");
        mount_remount(image.root(), MountFlags::empty(), c"barrier=1").expect("remount it");
        let folder = tempfile::tempdir().expect("make a folder");
        let [source, library] = ["none.c", "none.so"].map(|name| folder.path().join(name));
        std::fs::write(
            &source,
            "int fsync(int f) { return 0 * f; } int fdatasync(int f) { return 0 * f; }",
        )
        .expect("write it");
        let compiled =
            Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status();
        if !compiled.is_ok_and(|status| status.success()) {
            return support::skip(test, "there is no C compiler");
        }
        let run = fsure_with(
            ("LD_PRELOAD", library.as_os_str()),
            &[&["flush", "--quiet"], &SHORT[..], &[text(image.root())]].concat(),
        );
        assert_never_sent(&run, "a preloaded library");
    });
}

#[test]
fn an_interrupted_run_reports_what_it_had() {
    let _shared = crate::support::serial::shared();
    let test = "an_interrupted_run_reports_what_it_had";
    let Some((folder, _mounted)) = memory(test, 400 << 10) else { return };
    let mut run = Command::new(env!("CARGO_BIN_EXE_fsure"))
        .args(["flush", "--json", "--profile", "etcd,postgres,sqlite", "--time", "0.4s"])
        .arg(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("start fsure");
    let mut output = BufReader::new(run.stdout.take().expect("a pipe"));
    let mut reported = String::new();
    // Each line comes when it is known: after the methods there is much to do yet.
    while !reported.contains("replace + ") {
        assert_ne!(output.read_line(&mut reported).expect("read"), 0, "{reported}");
    }
    let id = i32::try_from(run.id()).ok().and_then(Pid::from_raw).expect("a number");
    kill_process(id, Signal::INT).expect("interrupt it");
    output.read_to_string(&mut reported).expect("read");
    assert_eq!(run.wait().expect("its end").code(), Some(130));
    let lines = lines(&reported);
    assert!(!of_type(&lines, "method").is_empty());
    assert_eq!(of_type(&lines, "summary")[0]["exit_code"], 130);
    assert_eq!(folder.path().read_dir().expect("list it").count(), 0);
}

/// FUSE keeps what is removed while it is open, under another name.
#[test]
fn on_fuse_nothing_is_left_behind() {
    let _shared = crate::support::serial::shared();
    let test = "on_fuse_nothing_is_left_behind";
    let [below, above] = [(); 2].map(|()| tempfile::tempdir().expect("make a folder"));
    let mounted = Command::new("bindfs").args([below.path(), above.path()]).status();
    if !mounted.is_ok_and(|status| status.success()) {
        return support::skip(test, "bindfs does not mount");
    }
    let run = flush(&["--quiet", text(above.path())]);
    let ended = Command::new("umount").arg(above.path()).status();
    assert!(ended.is_ok_and(|status| status.success()), "unmount it");
    assert!(run.stdout.contains("NOT_MEASURED"), "{}", run.stdout);
    assert_eq!(below.path().read_dir().expect("list it").count(), 0);
}

#[test]
fn file_systems_of_sticks_and_cards_are_measured_where_the_kernel_has_them() {
    let _shared = crate::support::serial::shared();
    let known = std::fs::read_to_string("/proc/filesystems").expect("read the kernel's list");
    for format in [&VFAT, &EXFAT] {
        let test = format!("flush on {}", format.name);
        if !known.split_whitespace().any(|name| name == format.name) {
            skip(&test, "this kernel does not have it");
            continue;
        }
        let Some(image) = or_skip(&test, Image::new(format, 64)) else { continue };
        let lines = lines(&flush(&["--json", text(image.root())]).stdout);
        assert_eq!(of_type(&lines, "layer")[0]["name"], format.name, "{lines:?}");
        let methods = of_type(&lines, "method");
        assert!(methods.iter().any(|method| method["name"] == "fdatasync"), "{methods:?}");
        assert!(!of_type(&lines, "verdict").is_empty(), "{lines:?}");
    }
}

/// Makes a result with four turns' worth of time, in memory.
fn saved(test: &str, name: &str, home: &Path, more: &[&str]) -> Option<std::path::PathBuf> {
    let (folder, _mounted) = memory(test, 400 << 10)?;
    let file = home.join(name);
    flush(&[&["--save", text(&file), text(folder.path())], more].concat());
    Some(file)
}

#[test]
fn saved_results_are_compared_with_their_settings() {
    let _shared = crate::support::serial::shared();
    let test = "saved_results_are_compared_with_their_settings";
    let home = tempfile::tempdir().expect("make a folder");
    let Some(free) = saved(test, "free", home.path(), &[]) else { return };
    let Some(held) = saved(test, "held", home.path(), &["--rate", "500/s"]) else { return };
    let run = fsure(&["flush", "compare", text(&free), text(&held)]);
    assert!([0, 1].contains(&run.code), "{run:?}");
    let first = run.stdout.lines().next().expect("a line");
    assert!(first.starts_with("Durable write (fdatasync): "), "{first}");
    assert!(
        run.stdout.contains("not alike: rate: as many as possible in A, 500/s in B"),
        "{run:?}"
    );
    assert!(run.stdout.contains("Which of these for what"), "{run:?}");
    assert!(run.stdout.contains(")*"), "the ratios are marked: {run:?}");
    let lines = lines(&fsure(&["flush", "compare", text(&free), text(&held), "--json"]).stdout);
    assert!(of_type(&lines, "change").iter().all(|line| line["settings_differ"] == true));
    assert_eq!(of_type(&lines, "contender")[1]["grade"], "not measured");
    let stored = std::fs::read_to_string(&held).expect("read it");
    let held = fsure_measure::results::read(stored.as_bytes()).expect("a result");
    for line in &held.lines {
        if let fsure_measure::results::ResultLine::Method(method) = line {
            assert!(method.ops <= 520.0, "{}: {}", method.name, method.ops);
            assert!(method.turns_us.len() >= 8, "{}", method.name);
        }
    }
}

#[test]
fn what_cannot_be_compared_is_refused_and_a_cut_off_result_is_named() {
    let _shared = crate::support::serial::shared();
    let test = "what_cannot_be_compared_is_refused_and_a_cut_off_result_is_named";
    let home = tempfile::tempdir().expect("make a folder");
    let Some(one) = saved(test, "one", home.path(), &[]) else { return };
    let Some(two) = saved(test, "two", home.path(), &[]) else { return };
    let content = std::fs::read_to_string(&two).expect("read it");
    let write = |name: &str, content: &str| {
        let file = home.path().join(name);
        std::fs::write(&file, content).expect("write it");
        text(&file).to_owned()
    };
    let speed = write("speed", &content.replacen(r#""kind":"flush""#, r#""kind":"speed""#, 1));
    let later = write("later", &content.replacen(r#""version":1"#, r#""version":9"#, 1));
    let copy = write("copy", &content);
    let nothing = write("nothing", "");
    let compare = |other: &str| fsure(&["flush", "compare", text(&two), other]);
    for (other, message) in [
        (speed.as_str(), "speed: it is not a result of 'fsure flush'"),
        (&later, "in version 9 of the format"),
        (&copy, "are the same result"),
        (&nothing, "it is empty"),
    ] {
        let run = compare(other);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{message}: {run:?}");
        assert!(run.stderr.contains(message), "{message}: {run:?}");
    }
    let run = fsure(&["flush", "compare", text(&one)]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("nothing to be compared with"), "{run:?}");
    // Cut off in the middle of a line, as a kill leaves it.
    let half = write("half", &content[..content.len() * 2 / 3]);
    let run = fsure(&["flush", "compare", text(&one), &half]);
    assert!([0, 1].contains(&run.code), "{run:?}");
    assert!(run.stdout.contains("not alike: B is incomplete: it was cut off"), "{run:?}");
}
