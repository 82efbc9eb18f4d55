//! `speed --tree`, without a clock: what each way says that it read is held against the counters
//! of a device of its own and against the page cache.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use super::speed_stopped::{self, names};
use crate::support::cache::{pages, warm};
use crate::support::noise::undisturbed;
use crate::support::{EXT4, Image, Report, fsure, fsure_json, or_skip, skip};
use serde_json::Value;

const MIB: u64 = 1 << 20;
/// Counted runs.
const RUNS: u64 = 2;
/// Superblocks, inodes and folders of a run.
const ASIDE: u64 = MIB;
/// Names of the files, and their sizes in MiB.
const FILES: [(&str, u64); 3] = [("a", 5), ("b/c", 20), ("d", 9)];

fn fill(root: &Path) -> Vec<PathBuf> {
    let write = |(name, size): (&str, u64)| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("make a folder");
        let byte = name.as_bytes()[0];
        fs::write(&path, vec![byte; (size * MIB) as usize]).expect("write");
        fs::File::open(&path).expect("open").sync_all().expect("sync");
        path
    };
    FILES.into_iter().map(write).collect()
}

fn measure(folder: &Path, more: &[&str]) -> Report {
    let (folder, runs) = (folder.to_str().expect("UTF-8"), RUNS.to_string());
    fsure_json(&[&["speed", "--tree", folder, "--runs", &runs], more].concat())
}

/// The line of a way.
fn way<'a>(report: &'a Report, name: &str) -> &'a Value {
    let is_it = |line: &&Value| line["type"] == "tree-way" && line["name"] == name;
    report.lines.iter().find(is_it).unwrap_or_else(|| panic!("no {name}: {report:?}"))
}

fn number(line: &Value, field: &str) -> u64 {
    line[field].as_u64().unwrap_or_else(|| panic!("no {field}: {line}"))
}

#[test]
fn each_way_reads_what_it_says() {
    let _alone = crate::support::serial::alone();
    undisturbed("each way reads what it says", || {
        let Some(image) = or_skip("each_way_reads", Image::new(&EXT4, 200)) else { return };
        let root = image.root();
        let files = fill(root);
        files.iter().for_each(|file| warm(file));
        let report = measure(root, &[]);
        assert_eq!(report.code, 0, "{report:?}");
        let size = FILES.iter().map(|file| file.1).sum::<u64>() * MIB;
        for name in ["past the cache", "through the cache"] {
            let line = way(&report, name);
            assert_eq!(number(line, "bytes"), size, "{line}");
            let read = number(line, "device_read_bytes");
            assert!((size * RUNS..(size + ASIDE) * RUNS).contains(&read), "{line}");
            let measured = line["measured"].as_str().expect("words");
            assert!(measured.contains("with nothing of it in memory before"), "{line}");
        }
        assert_eq!(number(way(&report, "past the cache"), "left_bytes"), 0);
        assert_eq!(number(way(&report, "through the cache"), "left_bytes"), size);
        let from = way(&report, "from the cache");
        assert!(number(from, "device_read_bytes") < ASIDE, "{from}");
        assert_eq!(number(from, "bytes"), size, "{from}");
        let bystander = &from["bystander"];
        assert!(number(bystander, "reads") >= RUNS, "{bystander}");
        let volume = &from["volumes"][0];
        assert_eq!((number(volume, "files"), &volume["is_recorded"]), (3, &false.into()));
        // Files of less than a block are read in another manner past the cache: that is said.
        let is_batched = |report: &Report| {
            let mut words = report.lines.iter().filter_map(|line| line["words"].as_str());
            words.any(|words| words.contains("small files are read many with one call"))
        };
        assert!(!is_batched(&report), "{report:?}");
        let small = root.join("small");
        fs::create_dir(&small).expect("make a folder");
        fs::write(small.join("file"), vec![1; MIB as usize]).expect("write");
        assert!(is_batched(&measure(&small, &[])));
        fs::remove_dir_all(&small).expect("remove");
        // Nothing of what was read is left in memory, and nothing else is left at all.
        assert!(pages(&files).values().all(|pages| *pages == 0), "{files:?}");
        assert_eq!(names(root), ["a", "b", "d"]);
    });
}

#[test]
fn no_more_is_read_than_was_asked_for_and_only_what_is_recorded() {
    let _alone = crate::support::serial::alone();
    let Some(image) = or_skip("no_more_is_read", Image::new(&EXT4, 200)) else { return };
    let root = image.root();
    fill(root);
    assert_eq!(fsure(&["update", root.to_str().expect("UTF-8")]).code, 0);
    fs::write(root.join("aa not recorded"), vec![1; 3 << 20]).expect("write");
    let recorded = measure(root, &["--bytes", "7M,1T", "-j", "3"]);
    let ways: Vec<_> =
        recorded.lines.iter().filter(|line| line["name"] == "past the cache").collect();
    let read = |line: &Value| (number(line, "bytes"), number(&line["volumes"][0], "files"));
    assert_eq!((read(ways[0]), read(ways[1])), ((7 * MIB, 2), (34 * MIB, 3)), "{recorded:?}");
    let volume = &ways[0]["volumes"][0];
    assert_eq!((number(volume, "readers"), &volume["is_recorded"]), (3, &true.into()));
    // Below the root, too: the record is found above.
    let below = measure(&root.join("b"), &[]);
    let volume = &way(&below, "past the cache")["volumes"][0];
    assert_eq!((number(volume, "files"), &volume["is_recorded"]), (1, &true.into()));
}

#[test]
fn memory_that_fills_up_is_seen() {
    let _alone = crate::support::serial::alone();
    let Some(image) = or_skip("memory_that_fills_up", Image::new(&EXT4, 400)) else { return };
    let file = image.root().join("large");
    fs::write(&file, vec![7; 300 << 20]).expect("write");
    fs::File::open(&file).expect("open").sync_all().expect("sync");
    let report = measure(image.root(), &["--memory", "128M"]);
    if report.code != 0 && report.stderr.contains("'--memory") {
        return skip("memory_that_fills_up_is_seen", &report.stderr);
    }
    let through = way(&report, "through the cache");
    assert_eq!(number(through, "memory_bytes"), 128 * MIB, "{through}");
    assert!(through["full_at_s"].as_f64().is_some(), "{through}");
    assert!(number(through, "left_bytes") <= 128 * MIB, "{through}");
    // What stays in memory is less than what is read.
    assert!(number(way(&report, "from the cache"), "bytes") <= 64 * MIB, "{report:?}");
}

#[test]
fn a_purge_empties_the_cache_of_all_and_is_asked_for() {
    let _alone = crate::support::serial::alone();
    let Some(image) = or_skip("a_purge_empties", Image::new(&EXT4, 200)) else { return };
    fill(image.root());
    let other = Image::new(&EXT4, 32).expect("another image");
    let hot = other.root().join("hot");
    fs::write(&hot, vec![1; 4 << 20]).expect("write");
    fs::File::open(&hot).expect("open").sync_all().expect("sync");
    let kept = || pages(std::slice::from_ref(&hot))[&hot];
    undisturbed("only a purge takes the pages of others", || {
        warm(&hot);
        measure(image.root(), &[]);
        assert_eq!(kept(), 1024);
        let report = measure(image.root(), &["--purge"]);
        let purged = way(&report, "through a purged cache");
        assert!(number(purged, "purges") >= RUNS, "{purged}");
        assert_eq!(kept(), 0);
    });
}

#[test]
fn files_that_lie_in_memory_have_no_price_to_be_told() {
    let _alone = crate::support::serial::alone();
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        return skip("files_that_lie_in_memory", "there is no /dev/shm");
    };
    fs::write(folder.path().join("f"), vec![1; 4 << 20]).expect("write");
    let report = measure(folder.path(), &[]);
    assert!(report.lines.iter().all(|line| line["type"] != "cache-cost"), "{report:?}");
    let is_told = |line: &Value| {
        line["words"].as_str().is_some_and(|words| words.contains("no way past the page cache"))
    };
    assert!(report.lines.iter().any(is_told), "{report:?}");
}

/// A run that goes on until it is stopped.
fn start(folder: &Path) -> Child {
    let args = ["--tree", "--runs", "1000", "--budget", "1h"];
    speed_stopped::start(folder, &args, "hot", Stdio::piped())
}

fn folder_on_disk() -> tempfile::TempDir {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("make a folder");
    fill(folder.path());
    folder
}

#[test]
fn an_interrupted_run_reports_and_leaves_nothing() {
    let _alone = crate::support::serial::alone();
    let folder = folder_on_disk();
    assert_eq!(speed_stopped::interrupt(start(folder.path())), 3, "rows");
    assert_eq!(names(folder.path()), ["a", "b", "d"]);
}

#[test]
fn a_killed_run_leaves_nothing() {
    let _alone = crate::support::serial::alone();
    let folder = folder_on_disk();
    speed_stopped::kill(start(folder.path()), folder.path(), &["a", "b", "d"]);
}
