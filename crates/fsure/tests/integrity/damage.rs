//! The damage matrix: every fault on a real file, at every place where the
//! code takes another way (no byte, one byte, exactly one block, a byte more,
//! several blocks, several segments, holes), and what `verify`, `scrub` and
//! `update` make of it. The heart of the promise is in the second half of each case:
//! what looks like damage is never written over the record of what was well.
#![cfg(target_os = "linux")]

use std::fs::{OpenOptions, Permissions};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::Path;

use crate::support::{
    Recorded, Tree, bytes, content, flip_byte, mtime_ns, path_verdicts, set_mtime_ns,
};
use rusqlite::types::Value;
use serde_json::json;

const MIB: u64 = 1 << 20;
const HOUR_NS: i64 = 3_600_000_000_000;

/// A change to a recorded file.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// One byte inverted, and the date put back.
    Flip(u64),
    /// One byte inverted, and a date an hour later.
    FlipNewer(u64),
    /// One byte inverted, and a date an hour earlier.
    FlipOlder(u64),
    /// A date an hour later.
    Touch,
    /// A date an hour earlier.
    TouchOlder,
    /// Cut to this size, and the date put back.
    Cut(u64),
    /// Longer by so many bytes, and the date put back.
    Grow(u64),
    /// Another file of the same size and date moved to its name.
    Replace,
    /// The same content and date under another inode.
    Copy,
    Delete,
    ToFolder,
    ToLink,
    ToFifo,
    /// Other permissions.
    Chmod,
}

impl Fault {
    fn strike(self, path: &Path) {
        let date = mtime_ns(path);
        let open = || OpenOptions::new().read(true).write(true).open(path).expect("open");
        let size = path.metadata().expect("stat").len();
        let beside = path.with_extension("beside");
        match self {
            Self::Flip(at) | Self::FlipNewer(at) | Self::FlipOlder(at) => {
                flip_byte(&mut open(), at);
            }
            Self::Cut(size) => open().set_len(size).expect("cut"),
            Self::Grow(more) => {
                open().write_all_at(&content(more as usize, 9), size).expect("grow");
            }
            Self::Replace => std::fs::write(&beside, content(size as usize, 7)).expect("write"),
            Self::Copy => _ = std::fs::copy(path, &beside).expect("copy"),
            Self::Delete => std::fs::remove_file(path).expect("delete"),
            Self::ToFolder | Self::ToLink | Self::ToFifo => self.change_type(path),
            Self::Chmod => {
                std::fs::set_permissions(path, Permissions::from_mode(0o600)).expect("chmod");
            }
            Self::Touch | Self::TouchOlder => {}
        }
        if matches!(self, Self::Replace | Self::Copy) {
            std::fs::rename(&beside, path).expect("rename");
        }
        match self {
            Self::FlipNewer(_) | Self::Touch => set_mtime_ns(path, date + HOUR_NS),
            Self::FlipOlder(_) | Self::TouchOlder => set_mtime_ns(path, date - HOUR_NS),
            Self::Flip(_) | Self::Cut(_) | Self::Grow(_) | Self::Replace | Self::Copy => {
                set_mtime_ns(path, date);
            }
            _ => {}
        }
    }

    fn change_type(self, path: &Path) {
        std::fs::remove_file(path).expect("remove");
        match self {
            Self::ToFolder => std::fs::create_dir(path).expect("make a folder"),
            Self::ToLink => std::os::unix::fs::symlink("good", path).expect("make a link"),
            _ => {
                let mode = rustix::fs::Mode::RWXU;
                let fifo = rustix::fs::FileType::Fifo;
                rustix::fs::mknodat(rustix::fs::CWD, path, fifo, mode, 0).expect("make a FIFO");
            }
        }
    }
}

/// The content of a place: its size, and where it has data.
#[derive(Clone, Copy, Debug)]
enum Place {
    Full(u64),
    /// Data in the second half of the fourth block and nowhere else.
    Sparse(u64),
}

const EMPTY: Place = Place::Full(0);
const BYTE: Place = Place::Full(1);
const BLOCK: Place = Place::Full(MIB);
const OVER: Place = Place::Full(MIB + 1);
const LARGE: Place = Place::Full(5 * MIB + 123);
const SEGMENTED: Place = Place::Full(70 * MIB);
const SPARSE: Place = Place::Sparse(9 * MIB + 5);
/// Offset of the only data of [`SPARSE`], in bytes.
const ISLAND: u64 = 3 * MIB + MIB / 2;

impl Place {
    fn make(self, tree: &Tree, path: &str) {
        match self {
            Self::Full(size) => _ = tree.write(path, content(size as usize, 1)),
            Self::Sparse(size) => {
                let file = std::fs::File::create(tree.path(path)).expect("create");
                file.set_len(size).expect("size");
                file.write_all_at(&content(4096, 1), ISLAND).expect("write");
            }
        }
        tree.age(path);
    }
}

/// The damaged ranges in `blocks`.
type Blocks = &'static [[u64; 2]];

/// Fault, place, the verdict on it, the damaged ranges.
type Case = (Fault, Place, &'static str, Blocks);

/// Damage: exit code 3, and the record stays as it is.
const DAMAGE: &[Case] = &[
    (Fault::Flip(0), BYTE, "altered", &[[0, 1]]),
    (Fault::Flip(0), BLOCK, "altered", &[[0, MIB]]),
    (Fault::Flip(MIB - 1), BLOCK, "altered", &[[0, MIB]]),
    (Fault::Flip(MIB - 1), OVER, "altered", &[[0, MIB]]),
    (Fault::Flip(MIB), OVER, "altered", &[[MIB, MIB + 1]]),
    (Fault::Flip(0), LARGE, "altered", &[[0, MIB]]),
    (Fault::Flip(2 * MIB + 7), LARGE, "altered", &[[2 * MIB, 3 * MIB]]),
    (Fault::Flip(5 * MIB + 122), LARGE, "altered", &[[5 * MIB, 5 * MIB + 123]]),
    (Fault::Flip(65 * MIB + 9), SEGMENTED, "altered", &[[65 * MIB, 66 * MIB]]),
    (Fault::Flip(ISLAND), SPARSE, "altered", &[[3 * MIB, 4 * MIB]]),
    (Fault::Flip(7 * MIB), SPARSE, "altered", &[[7 * MIB, 8 * MIB]]),
    (Fault::Flip(9 * MIB + 4), SPARSE, "altered", &[[9 * MIB, 9 * MIB + 5]]),
    (Fault::Grow(1), EMPTY, "altered", &[[0, 1]]),
    (Fault::Grow(2 * MIB), EMPTY, "altered", &[[0, 2 * MIB]]),
    (Fault::Grow(1), BYTE, "altered", &[[0, 2]]),
    // A single block has no value of its own to compare: only lengths tell.
    (Fault::Grow(5), BLOCK, "altered", &[[MIB, MIB + 5]]),
    (Fault::Cut(MIB), OVER, "altered", &[[MIB, MIB + 1]]),
    (Fault::Grow(1), LARGE, "altered", &[[5 * MIB, 5 * MIB + 124]]),
    (Fault::Grow(MIB), LARGE, "altered", &[[5 * MIB, 6 * MIB + 123]]),
    (Fault::Cut(0), BYTE, "altered", &[[0, 1]]),
    (Fault::Cut(0), LARGE, "altered", &[[0, 5 * MIB + 123]]),
    (Fault::Cut(5 * MIB), LARGE, "altered", &[[5 * MIB, 5 * MIB + 123]]),
    (Fault::Cut(3 * MIB - 1), LARGE, "altered", &[[2 * MIB, 5 * MIB + 123]]),
    (Fault::Cut(4 * MIB), SPARSE, "altered", &[[4 * MIB, 9 * MIB + 5]]),
    (Fault::Replace, BYTE, "damaged-copy", &[[0, 1]]),
    (Fault::Replace, OVER, "damaged-copy", &[[0, MIB + 1]]),
    (Fault::Replace, LARGE, "damaged-copy", &[[0, 5 * MIB + 123]]),
    (Fault::Replace, SPARSE, "damaged-copy", &[[0, 9 * MIB + 5]]),
];

/// Other content that its date explains: `verify` says so with exit code 1,
/// `update` records it.
const EDITS: &[Case] = &[
    (Fault::FlipNewer(0), BYTE, "modified", &[]),
    (Fault::FlipNewer(MIB - 1), BLOCK, "modified", &[]),
    (Fault::FlipNewer(2 * MIB), LARGE, "modified", &[]),
    (Fault::FlipNewer(ISLAND), SPARSE, "modified", &[]),
    (Fault::FlipOlder(0), BYTE, "reverted", &[]),
    (Fault::FlipOlder(MIB), OVER, "reverted", &[]),
    (Fault::FlipOlder(5 * MIB), LARGE, "reverted", &[]),
];

/// The recorded content: exit code 0, whatever became of the stat.
const WELL: &[Case] = &[
    (Fault::Touch, EMPTY, "touched", &[]),
    (Fault::Touch, LARGE, "touched", &[]),
    (Fault::TouchOlder, OVER, "touched", &[]),
    (Fault::Chmod, EMPTY, "ok", &[]),
    (Fault::Chmod, LARGE, "ok", &[]),
    (Fault::Copy, BYTE, "ok", &[]),
    (Fault::Copy, LARGE, "ok", &[]),
    (Fault::Copy, SPARSE, "ok", &[]),
];

const CHANGED_TYPE: &[Case] = &[
    (Fault::ToFolder, EMPTY, "type-changed", &[]),
    (Fault::ToFolder, LARGE, "type-changed", &[]),
    (Fault::ToLink, BYTE, "type-changed", &[]),
    (Fault::ToFifo, LARGE, "type-changed", &[]),
];

/// A recorded tree with one file that was struck, and one that was not.
fn struck(fault: Fault, place: Place) -> (Tree, Recorded) {
    let tree = Tree::new();
    place.make(&tree, "victim");
    tree.write("good", content(3000, 2));
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    fault.strike(&tree.path("victim"));
    (tree, recorded)
}

/// `verify`, `scrub` and then `update` of one case; returns what is left.
fn judge(case: &Case, verify: i32, update: i32) -> (Tree, Recorded) {
    let (fault, place, verdict, blocks) = *case;
    let (tree, recorded) = struck(fault, place);
    let before = recorded.row("victim");
    let report = recorded.run("verify", &["--all"]);
    let expected = path_verdicts(&[("good", "ok"), ("victim", verdict)]);
    assert_eq!(report.path_verdicts(), expected, "verify: {case:?}: {report:?}");
    assert_eq!(report.code, verify, "exit code of verify: {case:?}: {report:?}");
    let finding = report.finding("victim").expect("it was told");
    assert_eq!(finding["blocks"], json!(blocks), "{case:?}: {finding:#}");
    let damaged = blocks.iter().map(|[start, end]| (end - start).div_ceil(MIB)).sum::<u64>();
    assert_eq!(report.summary()["damaged_blocks"], damaged, "{case:?}: {report:?}");
    if verdict == "touched" {
        assert_eq!(recorded.row("victim")["mtime_ns"], before["mtime_ns"], "{case:?}");
    } else if verdict != "ok" {
        assert_eq!(recorded.row("victim"), before, "verify wrote: {case:?}");
    }
    // In one go, and by the blocks of every file that has them.
    for budget in ["1GiB", "1h"] {
        let report = recorded.run("scrub", &["--all", "--budget", budget]);
        assert_eq!(report.path_verdicts(), expected, "scrub for {budget}: {case:?}: {report:?}");
        assert_eq!(report.code, verify, "exit code of scrub: {case:?}: {report:?}");
        let finding = report.finding("victim").expect("it was told");
        assert_eq!(finding["blocks"], json!(blocks), "{case:?}: {finding:#}");
        if verdict != "ok" && verdict != "touched" {
            assert_eq!(recorded.row("victim"), before, "scrub wrote: {case:?}");
        }
    }
    let report = recorded.run("update", &["--all"]);
    assert_eq!(report.path_verdicts(), expected, "update: {case:?}: {report:?}");
    assert_eq!(report.code, update, "exit code of update: {case:?}: {report:?}");
    if verdict == "ok" {
        return (tree, recorded);
    }
    let overwrites = ["modified", "reverted", "touched"].contains(&verdict);
    assert_eq!(recorded.row("victim") != before, overwrites, "the row after update: {case:?}");
    (tree, recorded)
}

/// `heal --yes` from a sound copy. What is left then is as the case says: healed,
/// with the record as it was but for dates, or untouched.
fn heal(case: &Case, more: &[&str], code: i32) {
    let (fault, place, verdict, _) = *case;
    let (tree, recorded) = struck_with_copy(fault, place);
    let is_file = || tree.path("victim").symlink_metadata().is_ok_and(|stat| stat.is_file());
    let look = || is_file().then(|| tree.read("victim"));
    let before = look();
    let copy = tree.path(COPY);
    let from = ["--from", copy.to_str().expect("text"), "--yes"];
    let report = recorded.run("heal", &[&from[..], more].concat());
    assert_eq!(report.code, code, "{case:?}: {report:?}");
    let is_healed = code == 7;
    let wanted = if is_healed { std::fs::read(copy.join("victim")).ok() } else { before };
    assert!(look() == wanted, "{case:?}");
    let report = recorded.verify();
    let left = if is_healed { None } else { report.verdict("victim") };
    let expected = (verdict != "ok" && !is_healed).then(|| verdict.to_owned());
    assert_eq!(left, expected, "{case:?}: {report:?}");
    assert_eq!(report.code == 0, is_healed || code == 0, "{case:?}: {report:?}");
}

const COPY: &str = ".fsure/copy";

/// As [`struck`], with a copy of the file from before, and more files, so that
/// one that is gone is not most of them.
fn struck_with_copy(fault: Fault, place: Place) -> (Tree, Recorded) {
    let tree = Tree::new();
    place.make(&tree, "victim");
    for good in ["good", "better", "best"] {
        tree.write(good, content(3000, 2));
    }
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    std::fs::create_dir(tree.path(COPY)).expect("make a folder");
    std::fs::copy(tree.path("victim"), tree.path(COPY).join("victim")).expect("copy");
    fault.strike(&tree.path("victim"));
    (tree, recorded)
}

#[test]
fn heal_puts_back_what_is_damaged_and_touches_nothing_else() {
    for case in DAMAGE {
        heal(case, &[], 7);
        let has_blocks = matches!(case.1, Place::Full(size) | Place::Sparse(size) if size > 0);
        if has_blocks {
            // What may be an edit is healed only if it is kept.
            let code = if case.2 == "damaged-copy" { 3 } else { 7 };
            heal(case, &["--altered", "--in-place"], code);
        }
    }
    for case in EDITS.iter().chain(CHANGED_TYPE) {
        heal(case, &["--altered"], 1);
    }
    for case in WELL {
        heal(case, &["--altered"], 0);
    }
    for place in [EMPTY, LARGE, SPARSE] {
        heal(&(Fault::Delete, place, "missing", &[]), &[], 7);
    }
}

/// The record holds what is there, and a further run finds nothing to say.
fn assert_recorded(case: &Case, tree: &Tree, recorded: &Recorded) {
    let now = tree.read("victim");
    let row = recorded.row("victim");
    assert_eq!(bytes(&row["blake3"]), blake3::hash(&now).as_bytes(), "{case:?}");
    assert_eq!(row["size"], Value::Integer(now.len() as i64), "{case:?}");
    assert_eq!(row["mtime_ns"], Value::Integer(tree.mtime("victim")), "{case:?}");
    let report = recorded.verify();
    assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{case:?}: {report:?}");
}

#[test]
fn damage_is_named_by_block_and_never_recorded_until_it_is_accepted() {
    for case in DAMAGE {
        let (tree, recorded) = judge(case, 3, 3);
        let victim = tree.path("victim");
        let report = recorded.run("update", &[Path::new("--accept"), &tree.path("good")]);
        assert_eq!(report.verdict("victim").as_deref(), Some(case.2), "{case:?}: {report:?}");
        assert_eq!(report.code, 3, "another path was accepted: {case:?}: {report:?}");
        let report = recorded.run("update", &[Path::new("--accept"), &victim]);
        assert_eq!(report.verdict("victim").as_deref(), Some(case.2), "{case:?}: {report:?}");
        assert_eq!(report.code, 0, "nothing is wrong any more: {case:?}: {report:?}");
        assert_recorded(case, &tree, &recorded);
    }
}

#[test]
fn edits_are_differences_until_they_are_recorded() {
    for case in EDITS {
        let (tree, recorded) = judge(case, 1, 0);
        assert_recorded(case, &tree, &recorded);
    }
}

#[test]
fn the_same_content_is_well_whatever_its_stat() {
    for case in WELL {
        let (tree, recorded) = judge(case, 0, 0);
        assert_recorded(case, &tree, &recorded);
    }
}

#[test]
fn a_file_that_became_something_else_keeps_its_record() {
    for case in CHANGED_TYPE {
        let (tree, recorded) = judge(case, 1, 1);
        let report = recorded.run("update", &[Path::new("--accept"), &tree.path("victim")]);
        assert_eq!(report.code, 0, "accepted: {case:?}: {report:?}");
        let report = recorded.verify();
        assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{case:?}: {report:?}");
    }
}

#[test]
fn a_deleted_file_is_missing_and_its_record_becomes_a_tombstone() {
    for place in [EMPTY, LARGE] {
        let (_tree, recorded) = struck(Fault::Delete, place);
        let before = recorded.row("victim");
        let report = recorded.verify();
        assert_eq!(report.path_verdicts(), path_verdicts(&[("victim", "missing")]), "{place:?}");
        assert_eq!((report.code, recorded.row("victim")), (1, before.clone()), "{place:?}");
        let report = recorded.run("scrub", &[""; 0]);
        assert_eq!(report.path_verdicts(), path_verdicts(&[("victim", "missing")]), "{place:?}");
        assert_eq!((report.code, recorded.row("victim")), (1, before.clone()), "{place:?}");
        let report = recorded.update();
        assert_eq!(report.path_verdicts(), path_verdicts(&[("victim", "missing")]), "{place:?}");
        assert_eq!(report.code, 0, "{place:?}: {report:?}");
        let after = recorded.row("victim");
        assert!(matches!(after["gone_s"], Value::Integer(_)), "{place:?}: {after:?}");
        for column in ["size", "mtime_ns", "inode", "blake3", "blocks", "hashed_ns"] {
            assert_eq!(after[column], before[column], "{column} of a tombstone, {place:?}");
        }
        let report = recorded.verify();
        assert_eq!(
            (report.code, report.path_verdicts()),
            (0, vec![]),
            "missing is told once: {place:?}"
        );
    }
}

#[test]
fn a_new_file_is_a_difference_until_it_is_recorded() {
    for place in [EMPTY, BYTE, BLOCK, OVER, LARGE, SPARSE] {
        let tree = Tree::new();
        tree.write("good", "x");
        let recorded = Recorded::inside(tree.root());
        recorded.record();
        place.make(&tree, "victim");
        let report = recorded.verify();
        assert_eq!(report.path_verdicts(), path_verdicts(&[("victim", "new")]), "{place:?}");
        assert_eq!((report.code, recorded.rows().len()), (1, 1), "{place:?}: {report:?}");
        let report = recorded.update();
        assert_eq!(report.path_verdicts(), path_verdicts(&[("victim", "new")]), "{place:?}");
        assert_eq!(report.code, 0, "{place:?}: {report:?}");
        assert_recorded(&(Fault::Chmod, place, "new", &[]), &tree, &recorded);
    }
}

#[test]
fn a_date_put_back_is_seen_by_update_without_reading_everything() {
    let (_tree, recorded) = struck(Fault::Flip(MIB), LARGE);
    let report = recorded.update();
    assert_eq!(report.verdict("victim").as_deref(), Some("altered"), "{report:?}");
    let read = report.summary()["bytes_read"].as_u64().expect("a number");
    // The file, and its damaged block once more; not the other file.
    let (least, most) = (6 * MIB + 123, 6 * MIB + 4096);
    assert!((least..=most).contains(&read), "{read} bytes were read: {report:?}");
}

#[test]
fn accept_all_and_folders_accept_everything_in_them() {
    let tree = Tree::new();
    let faults = [("a/flip", Fault::Flip(9)), ("a/copy", Fault::Replace), ("b/cut", Fault::Cut(2))];
    for (path, _) in faults {
        tree.write(path, content(2 * MIB as usize, 3));
    }
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    for (path, fault) in faults {
        fault.strike(&tree.path(path));
    }
    let all =
        path_verdicts(&[("a/copy", "damaged-copy"), ("a/flip", "altered"), ("b/cut", "altered")]);
    let report = recorded.run("update", &[Path::new("--accept"), &tree.path("a")]);
    assert_eq!((report.code, report.path_verdicts()), (3, all.clone()), "b was not accepted");
    let report = recorded.verify();
    assert_eq!((report.code, report.path_verdicts()), (3, path_verdicts(&[("b/cut", "altered")])));
    let report = recorded.run("update", &["--accept-all"]);
    assert_eq!((report.code, report.path_verdicts()), (0, path_verdicts(&[("b/cut", "altered")])));
    let report = recorded.verify();
    assert_eq!((report.code, report.path_verdicts()), (0, vec![]));
    let noted: i64 = recorded
        .connect()
        .query_row("SELECT count(*) FROM accepted WHERE before != after", [], |row| row.get(0))
        .expect("count");
    assert_eq!(noted, 3, "what was recorded against advice is noted");
}
