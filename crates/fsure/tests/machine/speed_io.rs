//! The truth of `speed --io`, without a clock: what was requested is held against the
//! device's counters, a drive that becomes slower is told from one that does not, and a
//! place that cannot be read from one that can. Nothing is left behind.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fsure_os::fuse_disk::VirtualDisk;
use fsure_os::loop_mount::{FileSystem, LoopMount, format};
use serde_json::Value;

use super::crash_loop_mount::{run, site};
use super::speed_stopped::{self, names};
use crate::support::noise::undisturbed;
use crate::support::{BTRFS, EXT4, Format, Image, Report, XFS, fsure_json, or_skip, report_retry};

const MIB: u64 = 1 << 20;
const PROGRAM: &str = env!("CARGO_BIN_EXE_fsure");

fn of_type<'a>(lines: &'a [Value], kind: &'a str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

fn number(line: &Value, field: &str) -> f64 {
    line[field].as_f64().unwrap_or_else(|| panic!("no {field}: {line}"))
}

fn measure(folder: &Path, more: &[&str]) -> Report {
    let folder = folder.to_str().expect("UTF-8");
    fsure_json(&[&["speed", folder, "--io"], more].concat())
}

/// Both curves over the sizes of requests have all sizes, and every request came to the device.
fn assert_requests_of_each_size_reach_the_device(system: &'static Format) {
    undisturbed("requests of each size reach the device", || {
        let test = "requests_of_each_size_reach_the_device";
        let Some(image) = or_skip(test, Image::new(system, 300)) else { return };
        std::fs::write(image.root().join("mine"), "precious").expect("write");
        let report =
            measure(image.root(), &["sizes", "--size", "16M", "--runs", "2", "--budget", "9s"]);
        assert_eq!(report.code, 0, "{report:?}");
        let curves = of_type(&report.lines, "curve");
        let both: Vec<_> = curves.iter().map(|curve| curve["name"].as_str().unwrap()).collect();
        assert_eq!(both, ["read by request size", "write by request size"], "{report:?}");
        for curve in curves {
            let points = curve["points"].as_array().unwrap();
            let sizes: Vec<_> = points.iter().map(|point| number(point, "x") as u64).collect();
            assert_eq!(sizes, [4 << 10, 16 << 10, 64 << 10, 256 << 10, MIB, 4 * MIB], "{curve}");
            let is_measured = |point: &Value| {
                let [low, rate, high] = ["low", "y", "high"].map(|name| number(point, name));
                low > 0.0 && low <= rate && rate <= high
            };
            assert!(points.iter().all(is_measured), "{curve}");
            assert!(curve["measured"].as_str().unwrap().contains("shows all of it"), "{curve}");
        }
        assert_eq!(names(image.root()), ["mine"]);
    });
}

#[test]
fn requests_of_each_size_reach_the_device_on_ext4() {
    let _alone = crate::support::serial::alone();
    assert_requests_of_each_size_reach_the_device(&EXT4);
}

/// Every request of every queue depth came to the device, in both directions.
fn assert_random_requests_reach_the_device(system: &'static Format) {
    undisturbed("random requests reach the device", || {
        let test = "random_requests_reach_the_device";
        let Some(image) = or_skip(test, Image::new(system, 300)) else { return };
        std::fs::write(image.root().join("mine"), "precious").expect("write");
        let report =
            measure(image.root(), &["random", "--size", "8M", "--runs", "2", "--budget", "6s"]);
        assert_eq!(report.code, 0, "{report:?}");
        let lines = of_type(&report.lines, "random");
        assert_eq!(lines.len(), 6, "{report:?}");
        for line in lines {
            let count = number(line, "count");
            let field = match line["name"] == "random read" {
                true => "device_read_bytes",
                false => "device_written_bytes",
            };
            assert!(count > 0.0 && number(line, field) >= count * 4096.0, "{line}");
            assert!(line["measured"].as_str().unwrap().contains("shows all of it"), "{line}");
            let times = ["p50_us", "p99_us", "p999_us", "max_us"].map(|name| number(line, name));
            assert!(times.is_sorted() && times[0] > 0.0, "{line}");
            let bounds = ["low", "iops", "high"].map(|name| number(line, name));
            assert!(bounds.is_sorted() && bounds[0] > 0.0, "{line}");
            let in_buckets = line["histogram"].as_array().unwrap().iter();
            let in_buckets: f64 = in_buckets.map(|bucket| bucket[1].as_f64().unwrap()).sum();
            assert_eq!(in_buckets, count, "{line}");
            assert_eq!(line["samples"].as_array().unwrap().len(), 2, "{line}");
        }
        assert_eq!(names(image.root()), ["mine"]);
        let mine = std::fs::read_to_string(image.root().join("mine")).expect("read");
        assert_eq!(mine, "precious");
    });
}

#[test]
fn random_requests_reach_the_device_on_ext4() {
    let _alone = crate::support::serial::alone();
    assert_random_requests_reach_the_device(&EXT4);
}

#[test]
fn random_requests_reach_the_device_on_xfs() {
    let _alone = crate::support::serial::alone();
    assert_random_requests_reach_the_device(&XFS);
}

/// btrfs does not pass on every direct request: a result that says so is as good.
#[test]
fn on_btrfs_the_result_says_what_reached_the_device() {
    let _alone = crate::support::serial::alone();
    let Some(image) = or_skip("random_on_btrfs", Image::new(&BTRFS, 300)) else { return };
    let report = measure(image.root(), &["random", "--size", "8M", "--runs", "1"]);
    let reads = of_type(&report.lines, "random");
    for line in reads.into_iter().filter(|line| line["name"] == "random read") {
        let is_all = number(line, "device_read_bytes") >= number(line, "count") * 4096.0;
        let words = line["measured"].as_str().unwrap();
        assert_eq!(words.contains("shows all of it"), is_all, "{line}");
    }
    assert_eq!(names(image.root()), [""; 0]);
}

/// Memory has no queue and no fast cache, and a file system with no direct requests is not
/// measured through the page cache.
#[test]
fn memory_is_refused() {
    let _alone = crate::support::serial::alone();
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        return crate::support::skip("memory_is_refused", "there is no /dev/shm");
    };
    let report = measure(folder.path(), &["random,sustained,area"]);
    let refused = of_type(&report.lines, "not-run");
    assert_eq!((report.code, refused.len()), (5, 3), "{report:?}");
    let why = |place: usize| refused[place]["why"].as_str().unwrap();
    assert!(why(0).contains("is in memory") && why(1).contains("is in memory"), "{refused:?}");
    assert!(why(2).contains("no block device is known"), "{refused:?}");
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn a_sustained_write_keeps_to_its_share_of_the_free_space() {
    let _alone = crate::support::serial::alone();
    let test = "a_sustained_write_keeps_to_its_share";
    let Some(image) = or_skip(test, Image::new(&EXT4, 400)) else { return };
    let free = fsure_os::machine::free_bytes(image.root()).expect("free space");
    let mut written = Vec::new();
    for more in [&["--size", "70M"][..], &[], &["-y"]] {
        let report = measure(image.root(), &[&["sustained"], more].concat());
        let [line] = of_type(&report.lines, "sustained")[..] else { panic!("{report:?}") };
        let bytes = number(line, "bytes") as u64;
        assert_eq!((report.code, &line["end"]), (0, &"space".into()), "{report:?}");
        assert!(number(line, "device_written_bytes") as u64 >= bytes, "{line}");
        assert!(!line["points"].as_array().unwrap().is_empty(), "{line}");
        written.push(bytes);
        assert_eq!(names(image.root()), [""; 0]);
    }
    assert_eq!(written[0], 70 * MIB);
    assert!((free / 4 - MIB..=free / 4).contains(&written[1]), "{written:?} of {free}");
    assert!((free / 10 * 9 - MIB..=free / 10 * 9).contains(&written[2]), "{written:?} of {free}");
}

/// A drive with a fast cache, and with places that it cannot read.
struct Drive {
    content: File,
    bytes: u64,
    written: AtomicU64,
    /// Bytes whose writes took twice their time: others used the processors or the disk.
    late: AtomicU64,
    /// Bytes that are taken fast.
    cache: u64,
    /// Bytes behind which a write fails.
    room: u64,
    unreadable: std::ops::Range<u64>,
}

/// Time for a byte, while there is room in the cache and afterwards.
const FAST_BYTE: Duration = Duration::from_nanos(8);
const SLOW_BYTE: Duration = Duration::from_nanos(100);

/// Bytes that may be late without a drop of the rate by two fifths for seconds: a tenth of a file
/// (0.4 to 3 % beside two programs that compute).
const LATE_BYTES_MAX: u64 = 40 * MIB;
/// Runs of a test whose drive becomes slower each time.
const ATTEMPTS_MAX: u32 = 10;

impl VirtualDisk for Drive {
    fn size(&self) -> u64 {
        self.bytes
    }

    fn read(&self, offset: u64, target: &mut [u8]) -> std::io::Result<()> {
        let end = offset + target.len() as u64;
        if offset < self.unreadable.end && end > self.unreadable.start {
            return Err(std::io::Error::other("bad"));
        }
        self.content.read_exact_at(target, offset)
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        let length = data.len() as u64;
        let written = self.written.fetch_add(length, Ordering::Relaxed);
        if written + length > self.room {
            return Err(std::io::Error::other("gone"));
        }
        let each = if written < self.cache { FAST_BYTE } else { SLOW_BYTE };
        let (began, time) = (Instant::now(), each * u32::try_from(length).unwrap_or(u32::MAX));
        std::thread::sleep(time);
        let done = self.content.write_all_at(data, offset);
        let is_late = began.elapsed() > time * 2;
        self.late.fetch_add(if is_late { length } else { 0 }, Ordering::Relaxed);
        done
    }

    fn flush(&self) -> std::io::Result<()> {
        Ok(())
    }
}

fn drive(mebibytes: u64, cache: u64, unreadable: std::ops::Range<u64>) -> Arc<Drive> {
    let content = tempfile::tempfile_in(env!("CARGO_TARGET_TMPDIR")).expect("a file");
    let bytes = mebibytes * MIB;
    content.set_len(bytes).expect("size it");
    let (written, late) = (AtomicU64::new(0), AtomicU64::new(0));
    Arc::new(Drive { content, bytes, written, late, cache, room: u64::MAX, unreadable })
}

/// Measures a drive by a process that sees it mounted. Returns the exit code and the lines;
/// `None`, and said so, if this machine cannot.
fn measured(test: &str, drive: &Arc<Drive>, args: &str) -> Option<(String, Vec<Value>)> {
    let folder = tempfile::tempdir().expect("a folder");
    let site = site(folder.path());
    let block: Arc<dyn VirtualDisk> = drive.clone();
    let made = format(&site, Arc::clone(&block), FileSystem::Ext4);
    or_skip(test, made.map_err(|error| error.to_string()))?;
    let mounted = LoopMount::mount(&site, block, FileSystem::Ext4, "");
    let stand = or_skip(test, mounted.map_err(|error| error.to_string()))?;
    let line = format!("{PROGRAM} speed . --json --io {args}; echo code $?; ls -A");
    let (_, output) = run(&stand, &line);
    let lines = output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let rest: Vec<_> = output.lines().filter(|line| !line.starts_with('{')).collect();
    Some((rest.join(" "), lines))
}

#[test]
fn a_fast_cache_is_seen_and_its_size_too() {
    let _alone = crate::support::serial::alone();
    let test = "a_fast_cache_is_seen";
    let cache = 160 * MIB;
    let drive = drive(1024, cache, 0..0);
    let Some((rest, lines)) = measured(test, &drive, "sustained -y --budget 40s") else { return };
    let [line] = of_type(&lines, "sustained")[..] else { panic!("{rest} {lines:?}") };
    assert_eq!((&line["end"], &*rest), (&"drop".into(), "code 0 lost+found"), "{line}");
    // The file system wrote some of it when it was made.
    let seen = number(line, "fast_cache_bytes") as u64;
    assert!((cache / 2..cache * 5 / 4).contains(&seen), "{line}");
    assert!(number(line, "after_mib_s") <= 0.6 * number(line, "before_mib_s"), "{line}");
    assert!(number(line, "bytes") < 1024.0 * MIB as f64, "it did not stop: {line}");
}

#[test]
fn a_drive_that_stays_as_fast_has_no_fast_cache() {
    let _alone = crate::support::serial::alone();
    let test = "a_drive_that_stays_as_fast";
    let args = "sustained --size 400M -y --budget 60s";
    for attempt in 1..=ATTEMPTS_MAX {
        let drive = drive(1024, u64::MAX, 0..0);
        let Some((_, lines)) = measured(test, &drive, args) else { return };
        let [line] = of_type(&lines, "sustained")[..] else { panic!("{lines:?}") };
        let late = drive.late.load(Ordering::Relaxed);
        if line["end"] == "drop" && late > LATE_BYTES_MAX && attempt < ATTEMPTS_MAX {
            report_retry(
                test,
                "the drive itself became slower, as others used the processors or the disk",
            );
            continue;
        }
        assert_eq!((&line["fast_cache_bytes"], &line["end"]), (&Value::Null, &"space".into()));
        return;
    }
}

/// A drive that is pulled out, or breaks: what was measured is kept, and the run is not whole.
#[test]
fn writes_that_fail_end_it_and_keep_the_curve() {
    let _alone = crate::support::serial::alone();
    let test = "writes_that_fail";
    let drive = Arc::into_inner(drive(1024, u64::MAX, 0..0)).expect("the only one");
    let drive = Arc::new(Drive { room: 200 * MIB, ..drive });
    let Some((rest, lines)) = measured(test, &drive, "sustained -y --budget 60s") else { return };
    let [line] = of_type(&lines, "sustained")[..] else { panic!("{rest} {lines:?}") };
    assert_eq!(line["end"], "failed", "{line}");
    assert!(rest.starts_with("code 5"), "{rest}");
    assert!((100 * MIB..=200 * MIB).contains(&(number(line, "bytes") as u64)), "{line}");
    let failed = |line: &&&Value| line["words"].as_str().unwrap().contains("a write failed after");
    assert_eq!(of_type(&lines, "warning").iter().filter(failed).count(), 1, "{lines:?}");
}

#[test]
fn the_area_of_a_device_is_read_and_what_cannot_be_is_named() {
    let _alone = crate::support::serial::alone();
    let test = "the_area_of_a_device";
    // Between the beginning and the end, where ext4 has nothing of its own yet.
    let bad = 140 * MIB..148 * MIB;
    let drive = drive(320, u64::MAX, bad.clone());
    let Some((rest, lines)) = measured(test, &drive, "area --budget 8s") else { return };
    assert_eq!(rest, "code 4 lost+found", "{lines:?}");
    let [line] = of_type(&lines, "area")[..] else { panic!("{lines:?}") };
    assert_eq!(number(line, "device_bytes") as u64, 320 * MIB);
    assert!(line["device"].as_str().unwrap().starts_with("/dev/loop"), "{line}");
    let place = number(line, "place_bytes") as u64;
    let mut unreadable = 0;
    for point in line["points"].as_array().unwrap() {
        let at = point["at_bytes"].as_u64().unwrap();
        // What is read before a place, so that the heads are there, belongs to it.
        let is_bad = at < bad.end && at + place > bad.start;
        let is_near = at.saturating_sub(MIB) < bad.end && at + place > bad.start;
        let is_unread = point["mib_per_s"].is_null();
        assert!(is_unread || !is_bad, "{point}");
        assert!(!is_unread || is_near, "{point}");
        unreadable += u64::from(is_unread);
    }
    assert!(unreadable > 0, "{line}");
    assert_eq!(line["unreadable"], unreadable, "{line}");
    let warnings = of_type(&lines, "warning");
    let is_told = |line: &&&Value| line["words"].as_str().unwrap().contains("its loop device");
    let is_cached = of_type(&lines, "layer").iter().any(|layer| {
        let facts = layer["facts"].as_array().unwrap();
        facts.iter().any(|fact| fact[0] == "direct" && fact[1] == "no")
    });
    assert_eq!(warnings.iter().filter(is_told).count() == 1, is_cached, "{warnings:?}");
    let is_named = |line: &&&Value| line["words"].as_str().unwrap().contains("could not be read");
    assert_eq!(warnings.iter().filter(is_named).count(), 1, "{warnings:?}");
}

#[test]
fn an_interrupted_or_killed_run_leaves_nothing() {
    let _alone = crate::support::serial::alone();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("make a folder");
    // Slow enough that it is under way when it is stopped, whatever the disk.
    let args = ["--io", "random,sustained", "--size", "64M", "--budget", "1h"];
    let start = || speed_stopped::start(folder.path(), &args, "tree/stream", Stdio::piped());
    speed_stopped::interrupt(start());
    assert_eq!(names(folder.path()), [""; 0]);
    speed_stopped::kill(start(), folder.path(), &[]);
}
