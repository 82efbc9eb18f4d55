//! The truth of the ladder, without a clock: what a rung says that it measured
//! is held against the counters of a device of its own.
#![cfg(target_os = "linux")]

use crate::support;
use std::path::Path;
use std::process::{Child, Stdio};

use super::speed_stopped::{self, names};
use crate::support::noise::undisturbed;
use crate::support::{BTRFS, EXT4, Format, Image, Mounted, Report, XFS, fsure_json, or_skip};
use serde_json::Value;

const MIB: u64 = 1 << 20;
/// Bytes of a stream here, and counted runs.
const SIZE: u64 = 8 * MIB;
const RUNS: u64 = 2;
/// Superblocks, journals and inodes of a run; a stream is far from it.
const ASIDE: u64 = MIB;

/// One rung, measured in a folder; its line and all others.
fn measure(folder: &Path, rung: &str, more: &[&str]) -> (Value, Report) {
    let folder = folder.to_str().expect("UTF-8");
    let runs = RUNS.to_string();
    let mut args = vec!["speed", folder, "--rungs", rung, "--runs", &runs];
    args.extend(if more.is_empty() { &["--size", "8M"][..] } else { more });
    let report = fsure_json(&args);
    let mut lines = report.lines.iter().filter(|line| line["type"] == "rung");
    let line = lines.next().cloned().unwrap_or_default();
    assert!(lines.next().is_none(), "one rung was asked for: {report:?}");
    (line, report)
}

/// A line's number per counted run.
fn per_run(line: &Value, field: &str) -> u64 {
    line[field].as_u64().unwrap_or_else(|| panic!("no {field}: {line}")) / RUNS
}

/// Every rung on a file system of its own: the device does what the rung says,
/// and nothing is left.
fn assert_rungs_measure_what_they_claim(format: &'static Format) {
    undisturbed("rungs are what they say", || {
        let Some(image) = or_skip("rungs_measure_what_they_claim", Image::new(format, 300)) else {
            return;
        };
        let root = image.root();
        std::fs::write(root.join("mine"), "precious").expect("write");

        let (line, _) = measure(root, "disk write cached", &[]);
        assert!(per_run(&line, "device_written_bytes") < ASIDE, "{line}");
        let (line, _) = measure(root, "disk write written", &[]);
        assert!(per_run(&line, "device_written_bytes") >= SIZE, "{line}");
        assert!(line["measured"].as_str().unwrap().contains("(direct)"), "{line}");
        let (line, _) = measure(root, "disk write durable", &[]);
        assert!(per_run(&line, "device_written_bytes") >= SIZE, "{line}");
        assert!(per_run(&line, "device_flushes") >= 1, "{line}");

        let before = image.device_reads();
        let (line, _) = measure(root, "disk read cached", &[]);
        assert!(per_run(&line, "device_read_bytes") < ASIDE, "{line}");
        assert!(
            line["measured"].as_str().unwrap().contains("all of the file was in memory"),
            "{line}"
        );
        // It is brought in once.
        assert!(image.device_reads() - before < SIZE + ASIDE, "{line}");

        let before = image.device_reads();
        let (line, _) = measure(root, "disk read direct", &[]);
        let counted = per_run(&line, "device_read_bytes");
        assert!((SIZE..SIZE + ASIDE).contains(&counted), "{line}");
        let measured = line["measured"].as_str().expect("words");
        assert!(measured.contains("past the page cache (direct)"), "{line}");
        assert!(measured.contains("counter shows all of it"), "{line}");
        // The warm-up is a run, too.
        assert!(image.device_reads() - before >= (RUNS + 1) * SIZE, "{line}");
        let (line, _) = measure(root, "verify", &[]);
        assert!(per_run(&line, "device_read_bytes") >= SIZE, "{line}");

        let (line, _) = measure(root, "file hash cold", &[]);
        assert!(per_run(&line, "device_read_bytes") >= SIZE, "{line}");
        assert!(line["measured"].as_str().unwrap().contains("nothing of it in memory"), "{line}");
        let (line, _) = measure(root, "file hash cached", &[]);
        assert!(per_run(&line, "device_read_bytes") < ASIDE, "{line}");
        assert!(line["measured"].as_str().unwrap().contains("all of it in memory"), "{line}");

        let (line, _) = measure(root, "small files replace durably", &[]);
        let files = line["amount"].as_u64().expect("a count");
        // A loop device is sent two for each commit of a journal, and there are two.
        assert!(files > 0 && per_run(&line, "device_flushes") >= 3 * files, "{line}");
        let (line, _) = measure(root, "small files read cold", &[]);
        let files = line["amount"].as_u64().expect("a count");
        assert!(files > 0 && per_run(&line, "device_read_bytes") >= files * 4096, "{line}");
        let (line, _) = measure(root, "small files create", &[]);
        assert!(line["amount"].as_u64().is_some_and(|files| files > 0), "{line}");

        assert_eq!(names(root), ["mine"]);
        assert_eq!(std::fs::read_to_string(root.join("mine")).expect("read"), "precious");
    });
}

#[test]
fn rungs_measure_what_they_claim_on_ext4() {
    let _alone = crate::support::serial::alone();
    assert_rungs_measure_what_they_claim(&EXT4);
}

#[test]
fn rungs_measure_what_they_claim_on_xfs() {
    let _alone = crate::support::serial::alone();
    assert_rungs_measure_what_they_claim(&XFS);
}

#[test]
fn rungs_measure_what_they_claim_on_btrfs() {
    let _alone = crate::support::serial::alone();
    assert_rungs_measure_what_they_claim(&BTRFS);
}

#[test]
fn no_more_than_a_quarter_of_the_free_space_is_used() {
    let _alone = crate::support::serial::alone();
    let Some(image) = or_skip("no_more_than_a_quarter", Image::new(&EXT4, 64)) else { return };
    let (line, report) = measure(image.root(), "disk write durable", &["--size", "450M"]);
    let amount = line["amount"].as_u64().expect("an amount");
    assert!((MIB..64 * MIB / 8).contains(&amount), "{line}");
    let warning = |line: &Value| {
        line["type"] == "warning" && line["words"].as_str().is_some_and(|w| w.contains("are free"))
    };
    assert!(report.lines.iter().any(warning), "{report:?}");

    // In memory there is room for it.
    let root = image.root().to_str().expect("UTF-8");
    let report = fsure_json(&["speed", root, "--pv", "--rungs", "pv", "--budget", "30s"]);
    let is_of_folder = |line: &&Value| line["name"] == "pv" && line["type"] == "not-run";
    let left = report.lines.iter().find(is_of_folder).expect("not run");
    assert!(left["why"].as_str().expect("why").contains("must fit into a quarter"), "{left}");

    let space = fsure_os::machine::free_bytes(image.root()).expect("free space");
    let filler = std::fs::File::create(image.root().join("filler")).expect("create");
    rustix::fs::fallocate(&filler, rustix::fs::FallocateFlags::empty(), 0, space - 2 * MIB)
        .expect("fill");
    let (_, report) = measure(image.root(), "disk write durable", &["--size", "450M"]);
    let left = report.lines.iter().find(|line| line["type"] == "not-run").expect("not run");
    assert!(left["why"].as_str().expect("why").contains("too little space"), "{left}");
    assert_eq!((report.code, names(image.root())), (5, vec!["filler".to_owned()]));
}

/// Memory has no device that anything could come to, and is not called one.
#[test]
fn memory_is_no_disk() {
    let _alone = crate::support::serial::alone();
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        return support::skip("memory_is_no_disk", "there is no /dev/shm");
    };
    for rung in [
        "disk write written",
        "disk write durable",
        "disk read direct",
        "small files replace durably",
    ] {
        let (_, report) = measure(folder.path(), rung, &[]);
        let left = report.lines.iter().find(|line| line["type"] == "not-run").expect("not run");
        assert!(left["why"].as_str().expect("why").contains("tmpfs is in memory"), "{left}");
    }
}

/// The storage below an overlay might be memory, and is not reported as a device.
#[test]
fn an_overlay_is_no_device() {
    let _alone = crate::support::serial::alone();
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        return support::skip("an_overlay_is_no_device", "there is no /dev/shm");
    };
    let [lower, upper, work, over] = ["lower", "upper", "work", "over"].map(|name| {
        let path = folder.path().join(name);
        std::fs::create_dir(&path).expect("make a folder");
        path
    });
    let (lower, upper, work) = (lower.display(), upper.display(), work.display());
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
    let mounted = Mounted::new("overlay", &over, &options);
    let Some(_mounted) = or_skip("an_overlay_is_no_device", mounted) else { return };
    let (line, _) = measure(&over, "disk write written", &[]);
    assert!(line["measured"].as_str().unwrap().contains("no device has a counter"), "{line}");
}

/// A run that goes on until it is stopped.
fn start(folder: &Path, output: Stdio) -> Child {
    let args = ["--rungs", "disk", "--size", "4M", "--runs", "1000", "--budget", "1h"];
    speed_stopped::start(folder, &args, "tree/stream", output)
}

fn folder_on_disk() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("make a folder")
}

#[test]
fn an_interrupted_run_keeps_what_it_measured_and_leaves_nothing() {
    let _alone = crate::support::serial::alone();
    let folder = folder_on_disk();
    let child = start(folder.path(), Stdio::piped());
    assert_eq!(speed_stopped::interrupt(child), 5, "rows");
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn a_killed_run_leaves_nothing_but_the_lines_it_had() {
    let _alone = crate::support::serial::alone();
    let folder = folder_on_disk();
    let printed = tempfile::NamedTempFile::new().expect("a file");
    let output = printed.reopen().expect("open it once more");
    let child = start(folder.path(), output.into());
    speed_stopped::kill(child, folder.path(), &[]);
    let text = std::fs::read_to_string(printed.path()).expect("what was printed");
    assert!(text.starts_with(r#"{"type":"result","#) && text.ends_with('\n'), "{text}");
}

/// The contract that programs rely on: names, fields, and the first and last
/// line.
#[test]
fn the_json_is_as_agreed() {
    let _alone = crate::support::serial::alone();
    let folder = folder_on_disk();
    let saved = folder.path().join("saved");
    let path = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let report = fsure_json(&[
        "speed",
        &path(folder.path()),
        "--rungs",
        "all",
        "--size",
        "1M",
        "--runs",
        "1",
        "--save",
        &path(&saved),
    ]);
    assert_eq!(report.code, 0, "{report:?}");
    let text = std::fs::read_to_string(&saved).expect("the saved result");
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines, report.lines);
    let (first, last) = (&lines[0], report.summary());
    assert_eq!((&first["type"], &first["kind"]), (&"result".into(), &"speed".into()));
    assert!(last["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{last}");
    let rungs: Vec<_> = lines.iter().filter(|line| line["type"] == "rung").collect();
    for rung in &rungs {
        for number in ["median", "low", "high"] {
            assert!(rung[number].as_f64().is_some_and(|number| number > 0.0), "{rung}");
        }
        for text in ["name", "target", "unit", "measured"] {
            assert!(rung[text].as_str().is_some_and(|text| !text.is_empty()), "{rung}");
        }
        assert_eq!(rung["runs"], 1, "{rung}");
    }
    for name in [
        "void",
        "memory copy",
        "hash blake3",
        "disk write cached",
        "disk write written",
        "disk write durable",
        "disk read cached",
        "disk read direct",
        "file hash cached",
        "file hash cold",
        "small files create",
        "small files replace durably",
        "small files read cold",
        "verify",
    ] {
        assert!(rungs.iter().any(|rung| rung["name"] == name), "no {name}: {report:?}");
    }
    let limit = lines.iter().find(|line| line["type"] == "limit").expect("the limit");
    assert!(limit["percent"].as_f64().is_some_and(|percent| percent > 0.0), "{limit}");
    assert_eq!(names(folder.path()), ["saved"]);
}

#[test]
fn what_is_not_there_is_a_wrong_command_line() {
    let _alone = crate::support::serial::alone();
    let folder = folder_on_disk();
    let (_, report) = measure(folder.path(), "disc", &[]);
    assert_eq!(report.code, 2);
    assert!(report.stderr.contains("disk write cached"), "{report:?}");
    let (_, report) = measure(&folder.path().join("none"), "void", &[]);
    assert_eq!(report.code, 5, "{report:?}");
    let here = folder.path().to_str().expect("UTF-8");
    let (_, report) = measure(&folder.path().join("."), "void", &[here]);
    assert_eq!(report.code, 2, "{report:?}");
    assert!(report.stderr.contains("is given twice"), "{report:?}");
    // A result that never began is not in the way of the next attempt.
    let (saved, none) = (folder.path().join("saved"), folder.path().join("none"));
    let (_, report) = measure(&none, "void", &["--save", saved.to_str().expect("UTF-8")]);
    assert_eq!(report.code, 5, "{report:?}");
    assert_eq!(names(folder.path()), [""; 0]);
}

/// Measures the cost of caching: a read through the cache evicts what was there, and
/// a read past the cache leaves it alone.
#[test]
fn only_the_cached_read_throws_out_what_others_had_in_memory() {
    let _alone = crate::support::serial::alone();
    const TEST: &str = "only_the_cached_read_throws_out";
    let Some(image) = or_skip(TEST, Image::new(&EXT4, 800)) else { return };
    let folder = image.root().to_str().expect("UTF-8");
    let report = fsure_json(&["speed", folder, "--rungs", "void", "--runs", "1", "--cache", "64M"]);
    if let Some(left) = report.lines.iter().find(|line| line["type"] == "not-run") {
        return support::skip(TEST, left["why"].as_str().expect("why"));
    }
    let eviction = |name: &str| {
        let is_it = |line: &&Value| line["type"] == "series" && line["name"] == name;
        let line = report.lines.iter().find(is_it).expect("a series");
        let points = line["points"].as_array().expect("points");
        assert!(points.len() > 10 && line["bytes"] == 128 * MIB, "{line}");
        let bytes = |field: &str| line["eviction"][field].as_u64().expect("bytes");
        (bytes("before_bytes"), bytes("after_bytes"), bytes("left_bytes"))
    };
    let (before, after, left) = eviction("read cached");
    assert!(before == 16 * MIB && after < before && left > MIB, "{before} {after} {left}");
    assert_eq!(eviction("read uncached"), (16 * MIB, 16 * MIB, 0));
    assert_eq!(names(image.root()), [""; 0]);
}
