//! Checks the number of system calls for each file, counted by `strace`: a tree of small
//! files pays for every one a hundred thousand times. Checks as well that no data file is
//! ever mapped: a file that shrinks under a mapping kills the program, and a
//! bad sector does, too.
#![cfg(target_os = "linux")]

use crate::support;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::support::cache::{cool, warm};
use crate::support::{EXT4, Image, Recorded, Traced, Tree, XFS, content, or_skip, traced};

const FOLDERS: u64 = 10;
const FILES: u64 = 2000;
/// Files that a run of more than a second looks for before its first write. One that ends before
/// has seen all files by then.
const LOOKED_FOR: u64 = 1000;
/// Workers that may find out at the same time what holds for all files.
const WORKERS_MAX: u64 = 16;
const LARGE: u64 = 20 << 20;

/// Small files in a few folders on an image, and a record beside it.
struct Setting {
    image: Image,
    files: Vec<PathBuf>,
    recorded: Recorded,
    _beside: Tree,
}

impl Setting {
    fn new(test: &str, format: &'static support::Format) -> Option<Self> {
        let image = or_skip(test, Image::new(format, 300))?;
        let beside = Tree::new();
        let mut files = Vec::new();
        for number in 0..FILES {
            let folder = image.root().join(format!("folder {}", number * FOLDERS / FILES));
            std::fs::create_dir_all(&folder).expect("create");
            files.push(folder.join(format!("file {number}")));
            let size = 1 + number * 7;
            std::fs::write(files.last().expect("a name"), content(size as usize, number))
                .expect("write");
        }
        let recorded = Recorded::outside(image.root(), &beside.path("catalog.db"));
        recorded.record();
        Some(Self { image, files, recorded, _beside: beside })
    }

    fn traced(&self, test: &str, command: &str, more: &[&str]) -> Option<Traced> {
        let waits = ["-e", "trace=!futex,sched_yield"];
        let traced = or_skip(test, traced(&waits, &self.recorded.arguments(command, more)))?;
        assert_eq!(traced.run.code, 0, "{command}: {traced:?}");
        Some(traced)
    }
}

/// Counts the calls of each name that mention a file below the folders: by an open
/// file, by a path below the root, or by a name in an open folder.
fn count(traced: &Traced, root: &Path) -> BTreeMap<String, u64> {
    let open = format!("<{}/folder ", root.display());
    let names = ["\"folder ", "\"file "];
    let mut counts = BTreeMap::new();
    for (name, call) in traced.calls() {
        let is_meant = call.contains(&open) || names.iter().any(|name| call.contains(name));
        let is_file = call.contains("/file ") || call.contains("\"file ");
        // The standard library's own check before `close`, in debug builds.
        if is_meant && is_file && !call.contains("F_GETFD") {
            *counts.entry(name.to_owned()).or_insert(0) += 1;
        }
    }
    counts
}

/// Calls of this name, whatever they are about.
fn all(traced: &Traced, wanted: &str) -> u64 {
    traced.calls().filter(|(name, _)| *name == wanted).count() as u64
}

/// `cachestat`, which strace does not know by name before 6.5, nor its file.
fn asks_for_residency(traced: &Traced) -> u64 {
    all(traced, "cachestat") + all(traced, "syscall_0x1c3")
}

/// Takes away what it costs, once, to see whether the disk has heads, where it
/// says that it has: some hundred files opened, looked at and placed, and a few
/// of them read. `placed` and `read` are what else is placed and read by calls.
fn take_timing_away(counts: &mut BTreeMap<String, u64>, placed: u64, read: u64) {
    let mut take = |name: &str, rest: u64, most: u64| {
        let found = counts.remove(name).unwrap_or(0);
        let surplus = found.checked_sub(rest).unwrap_or_else(|| panic!("{found} {name}"));
        assert!(surplus <= most, "{surplus} {name} to time the disk");
        if rest > 0 {
            counts.insert(name.to_owned(), rest);
        }
        surplus
    };
    let opened = take("openat2", FILES, 256);
    take("ioctl", placed, opened);
    take("pread64", read, 16);
    for name in ["statx", "close"] {
        *counts.get_mut(name).expect("every file has one") -= opened;
    }
}

/// Takes away the calls of `statx`: `least` and a few more, and those of a run that looked for
/// files before it wrote.
fn assert_stats(counts: &mut BTreeMap<String, u64>, least: u64, more: u64, format: &str) {
    let stats = counts.remove("statx").unwrap_or(0);
    let is_right =
        [least, least + LOOKED_FOR].iter().any(|least| (*least..=least + more).contains(&stats));
    assert!(is_right, "{format}: {stats} statx, {least} expected");
}

fn expected(pairs: &[(&str, u64)]) -> BTreeMap<String, u64> {
    pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

#[test]
fn a_small_file_in_memory_costs_five_calls_and_its_listing_one() {
    let _alone = crate::support::serial::alone();
    for format in [&EXT4, &XFS] {
        let test = "a_small_file_in_memory_costs_five_calls";
        let Some(setting) = Setting::new(test, format) else { continue };
        setting.files.iter().for_each(|file| warm(file));
        let Some(traced) = setting.traced(test, "update", &["--full"]) else { return };
        let mut counts = count(&traced, setting.image.root());
        // What a file system can do is asked once, or by a few at once.
        for (name, least) in [("fstatfs", FOLDERS + 1), ("preadv2", 1)] {
            let asked = counts.remove(name).unwrap_or(0);
            let may = least..=least + 2 * WORKERS_MAX;
            assert!(may.contains(&asked), "{}: {asked} {name}", format.name);
        }
        take_timing_away(&mut counts, 0, FILES);
        // One in its listing and one after it was read. The first file of each reader has a third.
        assert_stats(&mut counts, 2 * FILES, WORKERS_MAX, format.name);
        // In each folder one file is opened to see whether it is in memory.
        let all_others = expected(&[
            ("openat2", FILES),
            ("pread64", FILES),
            ("close", FILES + FOLDERS),
            ("openat", FOLDERS),
        ]);
        assert_eq!(counts, all_others, "{}", format.name);
        assert_eq!(asks_for_residency(&traced), FILES + FOLDERS, "{}", format.name);
        assert_eq!(all(&traced, "io_uring_enter"), 0, "{}", format.name);
    }
}

#[test]
fn small_files_on_the_medium_are_read_by_the_dozen() {
    let _alone = crate::support::serial::alone();
    for format in [&EXT4, &XFS] {
        let test = "small_files_on_the_medium";
        let Some(setting) = Setting::new(test, format) else { continue };
        setting.files.iter().for_each(|file| cool(file));
        let Some(traced) = setting.traced(test, "verify", &[]) else { return };
        let mut counts = count(&traced, setting.image.root());
        // Where they lie on the disk is asked for a few files of each folder, or
        // for all if those lie anywhere.
        let looked_at = counts.remove("openat").unwrap_or(0);
        assert!((4 * FOLDERS..=FILES).contains(&looked_at), "{}: {looked_at}", format.name);
        take_timing_away(&mut counts, looked_at, 0);
        let asked = counts.remove("fstatfs").unwrap_or(0);
        assert!((1..=WORKERS_MAX + 1).contains(&asked), "{}: {asked} fstatfs", format.name);
        assert_stats(&mut counts, 3 * FILES, 0, format.name);
        let all_others =
            expected(&[("openat2", FILES), ("close", FILES + looked_at), ("ioctl", looked_at)]);
        assert_eq!(counts, all_others, "{}", format.name);
        assert_eq!(asks_for_residency(&traced), 0, "{}", format.name);
        let rings = all(&traced, "io_uring_enter");
        assert!((1..=FILES / 32).contains(&rings), "{}: {rings} calls to read", format.name);
    }
}

#[test]
fn no_data_file_is_mapped() {
    let _alone = crate::support::serial::alone();
    let test = "no_data_file_is_mapped";
    let tree = Tree::new();
    for number in 0..50 {
        tree.write(format!("small {number}"), content(number * 100, number as u64));
    }
    let large = tree.write("large", content(LARGE as usize, 1));
    std::fs::File::create(tree.path("sparse")).expect("create").set_len(LARGE).expect("size");
    let beside = Tree::new();
    let recorded = Recorded::outside(tree.root(), &beside.path("catalog.db"));
    recorded.record();
    for (state, command, more) in [
        (cool as fn(&Path), "verify", &[][..]),
        (warm, "verify", &["--from", "cache"]),
        (warm, "update", &["--full"]),
        (cool, "update", &["--full", "--digest", "sha256"]),
    ] {
        state(&large);
        let calls = ["-e", "trace=openat2,mmap,mremap,io_uring_register"];
        let traced = traced(&calls, &recorded.arguments(command, more));
        let Some(traced) = or_skip(test, traced) else { return };
        assert_eq!(traced.run.code, 0, "{command}: {traced:?}");
        let mut maps = traced.calls().filter(|(name, _)| *name != "openat2");
        let root = tree.root().to_str().expect("text");
        assert!(maps.clone().count() > 10, "mappings are seen: {}", traced.log);
        assert_eq!(maps.find(|(_, call)| call.contains(root)), None, "{command}");
        assert!(all(&traced, "openat2") >= 52, "files were opened: {}", traced.log);
    }
}
