//! Measures the cost of reading for the medium and the page cache, without a clock: the
//! device's own counters have the number of bytes that were requested, `fincore` reports
//! the pages that are in memory before and after.
#![cfg(target_os = "linux")]

use crate::support;
use std::fs::File;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use crate::support::cache::{assert_undisturbed, cool, half_warm, pages, warm};
use crate::support::{
    BTRFS, BTRFS_PACKED, EXT4, Format, Image, Mounted, Recorded, Report, Tree, XFS, content,
    or_skip,
};

const MIB: u64 = 1 << 20;
/// A piece of the file with holes.
const PIECE: u64 = 16 << 10;

/// Files of all shapes: small ones with odd tails, large ones of one and of
/// several reads, one with holes, an empty one. The size of each, and the
/// bytes of it that lie in blocks.
fn plant(root: &Path) -> Vec<(PathBuf, u64, u64)> {
    // 1 KiB on an ext4 of this size, else 4 KiB.
    let block = root.metadata().expect("stat").blksize();
    let mut files = Vec::new();
    let mut plant = |name: String, size: u64| {
        let path = root.join(name);
        std::fs::write(&path, content(size as usize, size)).expect("write");
        files.push((path, size, size.next_multiple_of(block)));
    };
    for number in 0..150 {
        plant(format!("small {number}"), 1 + number * 317);
    }
    for size in [0, MIB, MIB + 1, 4 * MIB - 1, 20 * MIB, 9 * MIB + 4097] {
        plant(format!("large {size}"), size);
    }
    let (path, size) = (root.join("sparse"), 70 * MIB + 5);
    let sparse = File::create(&path).expect("create");
    sparse.set_len(size).expect("size");
    let places = [0, 5 * MIB, 64 * MIB, 70 * MIB];
    for place in places {
        sparse.write_all_at(&content(PIECE as usize, place), place).expect("write");
    }
    // The last of them goes beyond the size and is where the file ends.
    let size = size.max(70 * MIB + PIECE);
    files.push((path, size, places.len() as u64 * PIECE));
    files
}

fn names(files: &[(PathBuf, u64, u64)]) -> Vec<PathBuf> {
    files.iter().map(|(path, ..)| path.clone()).collect()
}

/// An image with files on it and a record beside it.
struct Setting {
    image: Image,
    files: Vec<(PathBuf, u64, u64)>,
    recorded: Recorded,
    _beside: Tree,
}

impl Setting {
    fn new(test: &str, format: &'static Format) -> Option<Self> {
        let image = or_skip(&format!("{test}, {}", format.name), Image::new(format, 300))?;
        let beside = Tree::new();
        let files = plant(image.root());
        let recorded = Recorded::outside(image.root(), &beside.path("catalog.db"));
        recorded.record();
        Some(Self { image, files, recorded, _beside: beside })
    }

    /// Runs a command, and says what it had the device read.
    fn measure(&self, command: &str, more: &[&str]) -> (Report, u64) {
        let before = self.image.device_reads();
        let report = self.recorded.run(command, more);
        let read = self.image.device_reads() - before;
        assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{command}: {report:?}");
        assert_eq!(report.count("ok"), self.files.len() as u64, "{command}: {report:?}");
        (report, read)
    }

    /// The bytes of all files that are in blocks of the data.
    fn in_blocks(&self, format: &Format) -> u64 {
        let in_blocks = |(_, size, blocks): &(_, u64, u64)| {
            if *size > format.inline_max { *blocks } else { 0 }
        };
        self.files.iter().map(in_blocks).sum()
    }
}

/// The most that is read, once in a run, to see whether a disk that says so
/// really has heads: 16 pages.
const TIMING_MAX: u64 = 16 * 4096;

fn way(report: &Report, way: &str) -> u64 {
    report.summary()["bytes_by_way"][way].as_u64().expect("a number of bytes")
}

#[test]
fn the_device_reads_each_block_of_data_once_and_nothing_else() {
    let _alone = crate::support::serial::alone();
    for format in [&EXT4, &XFS, &BTRFS] {
        let Some(setting) = Setting::new("the_device_reads_each_block", format) else { continue };
        for (command, more) in [("verify", &[][..]), ("update", &["--full"])] {
            // What the system knows of the files stays in memory and data do
            // not; unless it is short of memory, hence the least of several.
            let rounds = (0..5).map(|_| {
                names(&setting.files).iter().for_each(|file| cool(file));
                setting.measure(command, more)
            });
            let expected = setting.in_blocks(format);
            let (report, read) =
                rounds.min_by_key(|(_, read)| read.abs_diff(expected)).expect("at least one round");
            let case = format!("{command} on {}: {report:?}", format.name);
            assert!((expected..=expected + TIMING_MAX).contains(&read), "{read}: {case}");
            // Bytes among the metadata have to come through memory.
            let size = |(_, size, _): &(_, u64, _)| *size;
            let inline = setting.files.iter().map(size).filter(|size| *size <= format.inline_max);
            let ways = ["direct", "dontcache", "dropped", "cached"].map(|name| way(&report, name));
            assert!(ways[0] > 30 * MIB, "{case}");
            assert_eq!(ways[1..], [0, inline.sum(), 0], "{case}");
        }
    }
}

/// Directories, inodes and checksums of 157 files: measured 14 KiB on ext4, 88
/// on XFS and 112 on btrfs, in reads of whole clusters and nodes.
const METADATA_MAX: u64 = 256 << 10;

#[test]
fn after_a_mount_nothing_but_metadata_is_read_besides() {
    let _alone = crate::support::serial::alone();
    for format in [&EXT4, &XFS, &BTRFS] {
        let Some(mut setting) = Setting::new("after_a_mount_nothing", format) else { continue };
        setting.image.unmounted(|_| ());
        let (_, read) = setting.measure("verify", &[]);
        let data = setting.in_blocks(format);
        let may = data..=data + METADATA_MAX + TIMING_MAX;
        assert!(may.contains(&read), "{}: {read} of {may:?}", format.name);
    }
}

#[test]
fn what_is_in_memory_is_not_read_from_the_device() {
    let _alone = crate::support::serial::alone();
    for format in [&EXT4, &XFS, &BTRFS, &BTRFS_PACKED] {
        let Some(setting) = Setting::new("what_is_in_memory", format) else { continue };
        assert_undisturbed(|| {
            names(&setting.files).iter().for_each(|file| warm(file));
            let (report, read) = setting.measure("update", &["--full"]);
            let ways = ["direct", "dontcache", "dropped"].map(|name| way(&report, name));
            let is_from_memory = read <= TIMING_MAX && ways == [0; 3];
            let reported = || format!("{}: {read} {report:?}", format.name);
            if is_from_memory { Ok(()) } else { Err(reported()) }
        });
    }
}

/// Brings every file into a state, runs, and says which have other pages in
/// memory. One that has fewer is tried again: the system, too, takes pages back,
/// but not each time of the same file.
fn moved(files: &[PathBuf], bring_about: fn(&Path), run: &dyn Fn()) -> Vec<(PathBuf, u64, u64)> {
    let mut lost: Vec<(PathBuf, u64, u64)> = Vec::new();
    for round in 0..5 {
        files.iter().for_each(|file| bring_about(file));
        let before = pages(files);
        run();
        let after = pages(files);
        let pairs = before.into_iter().map(|(file, before)| (after[&file], file, before));
        let moved: Vec<_> = pairs
            .filter(|(after, _, before)| after != before)
            .map(|(after, file, before)| (file, before, after))
            .filter(|(file, before, after)| {
                let is_lost_again = round == 0 || lost.iter().any(|(lost, ..)| lost == file);
                after > before || is_lost_again
            })
            .collect();
        let has_more = moved.iter().any(|(_, before, after)| after > before);
        if moved.is_empty() || has_more {
            return moved;
        }
        lost = moved;
    }
    lost
}

/// In every state, with every command, nothing comes into memory nor goes.
fn assert_memory_is_left_as_it_was(recorded: &Recorded, files: &[PathBuf], on: &str) {
    for (state, bring_about) in [
        ("cold", cool as fn(&Path)),
        ("resident", warm),
        ("half resident", half_warm),
        ("cold again", cool),
    ] {
        for (command, more) in [("verify", ""), ("update", "--full"), ("update", "new")] {
            let case = format!("{state}, {command} {more} on {on}");
            let moved = moved(files, bring_about, &|| {
                if more == "new" {
                    recorded.forget();
                }
                let arguments: &[&str] = if more == "--full" { &["--full"] } else { &[] };
                let report = recorded.run(command, arguments);
                assert_eq!(report.code, 0, "{case}: {report:?}");
            });
            assert!(moved.is_empty(), "{case}: {moved:?}");
        }
    }
}

/// The first file of a run is used to find out what the file system can do.
#[test]
fn the_first_file_is_left_as_it_was_too() {
    let _alone = crate::support::serial::alone();
    let test = "the_first_file_is_left_as_it_was";
    for format in [&EXT4, &XFS, &BTRFS] {
        let Some(image) = or_skip(test, Image::new(format, 300)) else { continue };
        let beside = Tree::new();
        let file = [image.root().join("file")];
        std::fs::write(&file[0], content(MIB as usize, 1)).expect("write");
        cool(&file[0]);
        let recorded = Recorded::outside(image.root(), &beside.path("catalog.db"));
        recorded.record();
        assert_eq!(pages(&file)[&file[0]], 0, "{}", format.name);
    }
}

#[test]
fn half_of_a_file_can_be_in_memory() {
    let _alone = crate::support::serial::alone();
    let Some(setting) = Setting::new("half_of_a_file_can_be_in_memory", &EXT4) else { return };
    let large = [setting.image.root().join(format!("large {}", 20 * MIB))];
    half_warm(&large[0]);
    // What is read at once is up to the file system.
    let there = pages(&large)[&large[0]];
    assert!((5120 / 8..=5120 / 8 * 7).contains(&there), "{there} of 5120");
}

#[test]
fn the_page_cache_is_left_as_it_was() {
    let _alone = crate::support::serial::alone();
    for format in [&EXT4, &XFS, &BTRFS] {
        let Some(setting) = Setting::new("the_page_cache_is_left", format) else { continue };
        let files = names(&setting.files);
        assert_memory_is_left_as_it_was(&setting.recorded, &files, format.name);
    }
}

#[test]
fn a_file_system_in_memory_stays_there() {
    let _alone = crate::support::serial::alone();
    let (tree, beside) = (Tree::new(), Tree::new());
    let mounted = Mounted::tmpfs(tree.root(), 80 << 10);
    let Some(_mounted) = or_skip("a_file_system_in_memory", mounted) else { return };
    let files = names(&plant(tree.root()));
    let recorded = Recorded::outside(tree.root(), &beside.path("catalog.db"));
    recorded.record();
    assert_memory_is_left_as_it_was(&recorded, &files, "tmpfs");
    let report = recorded.verify();
    let ways = ["direct", "dontcache", "dropped"].map(|name| way(&report, name));
    assert!(ways == [0; 3] && way(&report, "cached") > 30 * MIB, "{report:?}");
}

#[test]
fn packed_data_are_never_called_direct_and_do_not_stay() {
    let _alone = crate::support::serial::alone();
    let Some(image) = or_skip("packed_data_are_never_called", Image::new(&BTRFS_PACKED, 300))
    else {
        return;
    };
    let beside = Tree::new();
    let line = b"the same again and again\n";
    let mut files = Vec::new();
    for (name, repeats) in [("tiny", 4), ("small", 4000), ("large", 1_600_000)] {
        files.push(image.root().join(name));
        std::fs::write(files.last().expect("a name"), line.repeat(repeats)).expect("write");
    }
    let packed: u64 = files.iter().map(|file| file.metadata().expect("stat").len()).sum();
    // Its first part cannot be packed, the rest can.
    files.push(image.root().join("mixed"));
    let plain = content(8 << 20, 1);
    let mixed = [&plain[..], &line.repeat(400_000)].concat();
    std::fs::write(files.last().expect("a name"), &mixed).expect("write");
    let recorded = Recorded::outside(image.root(), &beside.path("catalog.db"));
    recorded.record();
    let states: [fn(&Path); 4] = [cool, warm, cool, half_warm];
    for state in states {
        files.iter().for_each(|file| state(file));
        let before = pages(&files);
        let report = recorded.verify();
        let is_cold = before.values().all(|pages| *pages == 0);
        let direct = way(&report, "direct");
        assert_eq!(direct, plain.len() as u64, "{report:?}");
        let through = if is_cold { "dropped" } else { "cached" };
        assert_eq!(way(&report, through), packed + mixed.len() as u64 - direct, "{report:?}");
        // What is missing of the 4 MiB around the middle comes and stays
        // (docs/promises.md), and so may what the system took back while it was warm.
        let most = if is_cold { 0 } else { 1024 };
        let after = pages(&files);
        let is_left = |(file, before): (&PathBuf, &u64)| after[file] <= before + most;
        assert!(before.iter().all(is_left), "{before:?}, {after:?}, {report:?}");
    }
}

/// A file of 16 GiB with four places of data, which hold their own offset in
/// eight bytes, least significant first.
const SPARSE: u64 = 16 << 30;
const PLACES: [u64; 4] = [0, 5 << 30, (10 << 30) + 4096, SPARSE - 8];
/// Its digest, from `b3sum` 1.2.0.
const SPARSE_SUM: &str = "b4b3fb3f0b59bf03a6821065258557562fd845d134d8fe3b5249a98672d77806";

#[test]
fn holes_are_hashed_and_not_read() {
    let _alone = crate::support::serial::alone();
    let Some(image) = or_skip("holes_are_hashed", Image::new(&XFS, 300)) else { return };
    let beside = Tree::new();
    let path = image.root().join("sparse");
    let file = File::create(&path).expect("create");
    file.set_len(SPARSE).expect("size");
    for place in PLACES {
        file.write_all_at(&place.to_le_bytes(), place).expect("write");
    }
    cool(&path);
    let recorded = Recorded::outside(image.root(), &beside.path("catalog.db"));
    let before = image.device_reads();
    let report = recorded.run("update", &[""; 0]);
    let read = image.device_reads() - before;
    assert_eq!(report.code, 0, "{report:?}");
    let sum = support::bytes(&recorded.row("sparse")["blake3"]);
    let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(sum, SPARSE_SUM);
    let places = PLACES.len() as u64;
    let may = places * 4096..=places * 4096 + METADATA_MAX;
    assert!(may.contains(&read), "{read} of {may:?}: {report:?}");
    // A read takes 4 MiB around each place, most of them holes.
    assert_eq!(way(&report, "direct"), places * 4 * MIB, "{report:?}");
}
