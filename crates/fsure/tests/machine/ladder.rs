//! Every rung of the ladder, on every file system that can be had here: the
//! same digests, at every size at which something begins or ends, and nothing
//! said of the way that is not true.
#![cfg(target_os = "linux")]

use crate::support;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::support::cache::{assert_undisturbed, cool, pages, warm};
use crate::support::{
    BTRFS, BTRFS_PACKED, EXT4, EXT4_JOURNALED, Fault, FaultyFs, Format, How, Image, Mounted,
    Recorded, Request, Tree, XFS, content, or_skip, traced,
};
use fsure_core::{Algorithm, AlgorithmSet, NullMonitor};
use fsure_integrity::catalog::{Catalog, RootSettings};
use fsure_integrity::model::BytesByReadMode;
use fsure_integrity::scan::{ContentSource, Purpose, ScanPlan, UpdateRules, scan};
use fsure_os::filesystem_id;
use fsure_os::read::{ReadMode, WAYS};
use fsure_os::root_dir::Root;
use rusqlite::types::Value;

const MIB: usize = 1 << 20;

/// Around a page, a block, a read and a segment.
const SIZES: [usize; 13] = [
    0,
    1,
    4095,
    4096,
    4097,
    MIB - 1,
    MIB,
    MIB + 1,
    4 * MIB - 1,
    4 * MIB,
    4 * MIB + 1,
    9 * MIB + 4097,
    64 * MIB + 12_345,
];

/// The digests of a tree, by path, as `blake3` gives them at once.
type Sums = BTreeMap<Vec<u8>, [u8; 32]>;

fn plant(root: &Path) -> Sums {
    let plant = |size: &usize| {
        let (name, data) = (format!("{size}"), content(*size, *size as u64));
        std::fs::write(root.join(&name), &data).expect("write");
        (name.into_bytes(), *blake3::hash(&data).as_bytes())
    };
    SIZES.iter().map(plant).collect()
}

fn files(root: &Path) -> Vec<PathBuf> {
    SIZES.iter().map(|size| root.join(format!("{size}"))).collect()
}

fn bytes() -> u64 {
    SIZES.iter().sum::<usize>() as u64
}

/// Returns the digests that a catalog has of all files.
fn sums(catalog: &Path, root: &Path) -> Sums {
    let sum = |(path, row): (Vec<u8>, support::Row)| match &row["blake3"] {
        Value::Blob(sum) => (path, sum.as_slice().try_into().expect("32 bytes")),
        other => panic!("no digest: {other:?}"),
    };
    Recorded::outside(root, catalog).rows().into_iter().map(sum).collect()
}

/// Records a tree by the library, which takes the rung to begin on.
fn record(root: &Path, first_way: ReadMode, reads_from: ContentSource) -> (Sums, BytesByReadMode) {
    let beside = Tree::new();
    let catalog = beside.path("catalog.db");
    let opened = Arc::new(Root::open(root).expect("open"));
    let volume = filesystem_id::of(&opened, b"").expect("a volume");
    let digests = AlgorithmSet::of(&[Algorithm::Blake3]);
    let settings = RootSettings { digests, cross_file_systems: false };
    Catalog::create(&catalog, settings, (volume, 1), 0).expect("create a catalog");
    let update = Purpose::Update(UpdateRules { full: true, ..UpdateRules::new(digests) });
    let plan = ScanPlan {
        reads_from,
        first_way,
        may_write: true,
        must_write: false,
        ..ScanPlan::new(opened, update)
    };
    let mut open = Catalog::open(&catalog, None).expect("open the catalog");
    let outcome = scan(&plan, &mut open, &NullMonitor).expect("scan");
    drop(open);
    (sums(&catalog, root), outcome.bytes)
}

/// On which rung a file system's files are read that are not in memory, by the
/// first one tried, and on which if they are.
type Rungs = fn(ReadMode) -> (ReadMode, ReadMode);

/// Returns the rungs for a cold and for a cached file: only direct reads bypass what is in
/// memory.
fn or_cached(cold: ReadMode) -> (ReadMode, ReadMode) {
    (cold, if cold == ReadMode::Direct { cold } else { ReadMode::Cached })
}

fn all_rungs(first: ReadMode) -> (ReadMode, ReadMode) {
    or_cached(first)
}

fn no_dontcache(first: ReadMode) -> (ReadMode, ReadMode) {
    or_cached(if first == ReadMode::DontCache { ReadMode::Dropped } else { first })
}

fn no_direct(first: ReadMode) -> (ReadMode, ReadMode) {
    or_cached(first.max(ReadMode::DontCache))
}

/// An overlay does not say what is in memory, so nothing is dropped from it.
fn direct_or_cached(first: ReadMode) -> (ReadMode, ReadMode) {
    or_cached(if first == ReadMode::Direct { first } else { ReadMode::Cached })
}

/// This view's pages are forgotten when a file is opened.
fn forgetful(first: ReadMode) -> (ReadMode, ReadMode) {
    let (cold, _) = no_dontcache(first);
    (cold, cold)
}

fn memory(_: ReadMode) -> (ReadMode, ReadMode) {
    (ReadMode::Cached, ReadMode::Cached)
}

/// Direct reads of a view are answered by a program, which is said.
fn from_a_program(mut by_way: BytesByReadMode) -> BytesByReadMode {
    (by_way.remote, by_way.direct) = (by_way.direct, by_way.remote);
    by_way
}

/// Bytes by way, if these many could not be read directly.
fn all_by(way: ReadMode, through_memory: (u64, ReadMode)) -> BytesByReadMode {
    let mut by_way = BytesByReadMode::default();
    let mut add = |way, bytes| match way {
        ReadMode::Direct => by_way.direct += bytes,
        ReadMode::DontCache => by_way.dontcache += bytes,
        ReadMode::Dropped => by_way.dropped += bytes,
        ReadMode::Cached => by_way.cached += bytes,
    };
    let (inline, inline_way) = if way == ReadMode::Direct { through_memory } else { (0, way) };
    add(way, bytes() - inline);
    add(inline_way, inline);
    by_way
}

/// Reads by every rung what is in memory and what is not; `root` shows what
/// lies in `below`, and so many bytes of it lie among the metadata.
fn assert_every_rung(root: &Path, below: &Path, sums: &Sums, inline: u64, rungs: Rungs) {
    for first in WAYS {
        for is_cold in [true, false] {
            assert_undisturbed(|| {
                let state = if is_cold { cool } else { warm };
                files(below).iter().chain(&files(root)).for_each(|file| state(file));
                let case = format!("{first:?}, cold: {is_cold}, {}", root.display());
                let before = pages(&files(below));
                let (found, by_way) = record(root, first, ContentSource::Medium);
                assert!(found == *sums, "{case}: wrong digests");
                let (cold, warm) = rungs(first);
                let through = if is_cold { ReadMode::Dropped } else { ReadMode::Cached };
                let way = if is_cold { cold } else { warm };
                let is_view = std::ptr::fn_addr_eq(rungs, forgetful as Rungs);
                let by_way = if is_view { from_a_program(by_way) } else { by_way };
                let expected = all_by(way, (inline, through));
                if by_way != expected {
                    return Err(format!("{case}: {by_way:?} and not {expected:?}"));
                }
                // What was not in memory stays there on the last rung, and
                // below a view.
                let after = pages(&files(below));
                let is_left = root == below && !(is_cold && way == ReadMode::Cached);
                if is_left && after != before {
                    return Err(format!("{case}: {after:?} pages in memory and not {before:?}"));
                }
                Ok(())
            });
        }
    }
}

fn assert_every_rung_of(format: &'static Format, inline: u64, rungs: Rungs) {
    let image = or_skip(&format!("every_rung_of {}", format.name), Image::new(format, 400));
    let Some(image) = image else { return };
    let sums = plant(image.root());
    assert_every_rung(image.root(), image.root(), &sums, inline, rungs);
}

#[test]
fn every_rung_on_ext4_and_xfs() {
    let _alone = crate::support::serial::alone();
    assert_every_rung_of(&EXT4, 0, all_rungs);
    assert_every_rung_of(&XFS, 0, all_rungs);
}

#[test]
fn every_rung_on_btrfs() {
    let _alone = crate::support::serial::alone();
    // The file of one byte lies among the metadata.
    assert_every_rung_of(&BTRFS, 1, no_dontcache);
    // What cannot be packed is not.
    assert_every_rung_of(&BTRFS_PACKED, 1, no_dontcache);
}

#[test]
fn every_rung_without_direct_reads() {
    let _alone = crate::support::serial::alone();
    assert_every_rung_of(&EXT4_JOURNALED, 0, no_direct);
}

#[test]
fn every_rung_in_memory() {
    let _alone = crate::support::serial::alone();
    for (kind, options) in [("tmpfs", "size=200m"), ("ramfs", "")] {
        let tree = Tree::new();
        let mounted = Mounted::new(kind, tree.root(), options);
        let Some(_mounted) = or_skip("every_rung_in_memory", mounted) else { continue };
        let sums = plant(tree.root());
        assert_every_rung(tree.root(), tree.root(), &sums, 0, memory);
    }
}

#[test]
fn every_rung_on_an_overlay() {
    let _alone = crate::support::serial::alone();
    let test = "every_rung_on_an_overlay";
    let Some(image) = or_skip(test, Image::new(&EXT4, 400)) else { return };
    let [below, other] = ["below", "other"].map(|name| image.root().join(name));
    [&below, &other].iter().for_each(|folder| std::fs::create_dir(folder).expect("create"));
    let sums = plant(&below);
    let over = Tree::new();
    let options = format!("lowerdir={}:{}", below.display(), other.display());
    let mounted = Mounted::new("overlay", over.root(), &options);
    let Some(_mounted) = or_skip(test, mounted) else { return };
    assert_every_rung(over.root(), &below, &sums, 0, direct_or_cached);
}

#[test]
fn every_rung_on_fuse() {
    let _alone = crate::support::serial::alone();
    let tree = Tree::new();
    let Some(view) = or_skip("every_rung_on_fuse", FaultyFs::new(tree.root())) else { return };
    let sums = plant(tree.root());
    assert_every_rung(view.root(), tree.root(), &sums, 0, forgetful);
}

#[test]
fn without_rings_all_is_the_same() {
    let _alone = crate::support::serial::alone();
    let test = "without_rings_all_is_the_same";
    for format in [&EXT4, &XFS, &BTRFS] {
        let Some(image) = or_skip(test, Image::new(format, 400)) else { continue };
        let sums_expected = plant(image.root());
        let beside = Tree::new();
        let recorded = Recorded::outside(image.root(), &beside.path("catalog.db"));
        files(image.root()).iter().for_each(|file| cool(file));
        let forbidden = "inject=io_uring_setup:error=EPERM";
        let arguments = recorded.arguments("update", &["--json"]);
        let options = ["-e", "trace=io_uring_setup,io_uring_enter", "-e", forbidden];
        let Some(traced) = or_skip(test, traced(&options, &arguments)) else { return };
        let enters = traced.calls().filter(|(name, _)| *name == "io_uring_enter").count();
        assert!(traced.log.contains("(INJECTED)") && enters == 0, "{}", traced.log);
        let report = support::Report::new(traced.run);
        assert_eq!(report.code, 0, "{report:?}");
        assert!(sums(&recorded.catalog, image.root()) == sums_expected, "{}", format.name);
        let inline = if format.inline_max > 0 { 1 } else { 0 };
        let by_way = &report.summary()["bytes_by_way"];
        assert_eq!(by_way["direct"], bytes() - inline, "{}: {by_way}", format.name);
        assert_eq!(by_way["dropped"], inline, "{}: {by_way}", format.name);
    }
}

/// The size of the largest file: two segments.
const LARGE: &str = "67121209";

#[test]
fn a_way_that_fails_in_the_middle_is_left_and_the_rest_read_by_another() {
    let _alone = crate::support::serial::alone();
    let test = "a_way_that_fails_in_the_middle";
    let tree = Tree::new();
    let Some(view) = or_skip(test, FaultyFs::new(tree.root())) else { return };
    let sums_expected = plant(tree.root());
    // EINVAL, EOPNOTSUPP and EAGAIN, at the start, behind it, at a read's end,
    // in the second segment and in the tail.
    let mib = MIB as u64;
    let places = [0, 3 * mib, 20 * mib - 1, 64 * mib + 4096, 64 * mib + 12_344];
    for number in [22, 95, 11] {
        for (place, times) in places.into_iter().zip([1, 2, 1, 3, 1]) {
            files(view.root()).iter().for_each(|file| cool(file));
            let how = How::Error(number);
            let fault = |path: &str, place| {
                let range = place..place + 1;
                Fault { path: path.into(), range, how, times: Some(times) }
            };
            view.set([fault(LARGE, place), fault("4097", place % 4097)]);
            view.take_requests();
            let (found, by_way) = record(view.root(), ReadMode::Direct, ContentSource::Medium);
            let requests = view.take_requests();
            let case = format!("error {number} at {place}: {by_way:?}");
            assert!(found == sums_expected, "wrong digests, {case}");
            assert_eq!(by_way.remote + by_way.dropped + by_way.cached, bytes(), "{case}");
            let hit = |path: &str| {
                let is_hit = |request: &Request| request.path == Path::new(path);
                requests.iter().filter(|request| request.fault.is_some()).any(is_hit)
            };
            assert!(hit(LARGE) && hit("4097"), "it happened: {case}");
            // What fails at its start falls; behind it, Linux may go on by itself.
            assert!(place > 0 || by_way.remote < bytes(), "{case}");
            // The other files know nothing of it.
            let others = bytes() - LARGE.parse::<u64>().expect("a number") - 4097;
            assert!(by_way.remote >= others, "{case}");
        }
    }
}
