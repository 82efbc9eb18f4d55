//! A heal that is cut off, by a kill, a full disk, a medium that fails or
//! another process that writes meanwhile: nothing that was there before is lost,
//! and the next heal completes it.
#![cfg(target_os = "linux")]

use crate::support;
use crate::support::campaign;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::{
    BTRFS, Fault, FaultyFs, Image, Meanwhile, Moment, Mounted, Recorded, Report, Tree, content,
    flip_byte, or_skip,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

const MIB: u64 = 1 << 20;
const FILES: u64 = 24;
const SIZE: u64 = 3 * MIB + 7;

/// A recorded tree whose files are all damaged, and a sound copy.
struct Setting {
    tree: Tree,
    copy: Tree,
    recorded: Recorded,
    _beside: Tree,
}

fn name(number: u64) -> String {
    format!("{}/file{number}", number % 3)
}

fn flip(path: &Path, at: u64) {
    let date = support::mtime_ns(path);
    flip_byte(&mut std::fs::File::options().read(true).write(true).open(path).unwrap(), at);
    support::set_mtime_ns(path, date);
}

impl Setting {
    fn new() -> Self {
        let (tree, copy, beside) = (Tree::new(), Tree::new(), Tree::new());
        for number in 0..FILES {
            tree.write(name(number), content(SIZE as usize, number + 1));
            tree.age(name(number));
            copy.write(name(number), content(SIZE as usize, number + 1));
        }
        let recorded = Recorded::outside(tree.root(), &beside.path("catalog.db"));
        recorded.record();
        Self { tree, copy, recorded, _beside: beside }
    }

    fn damage(&self) {
        for number in 0..FILES {
            let path = self.tree.path(name(number));
            match number % 4 {
                _ if !path.exists() => {}
                0 => std::fs::remove_file(path).unwrap(),
                1 => flip(&path, 3 * MIB),
                2 => flip(&path, number * 1000),
                _ => {
                    let date = support::mtime_ns(&path);
                    let file = std::fs::File::options().write(true).open(&path).unwrap();
                    file.set_len(MIB + number).unwrap();
                    support::set_mtime_ns(&path, date);
                }
            }
        }
    }

    fn contents(&self) -> Vec<Option<Vec<u8>>> {
        (0..FILES).map(|number| std::fs::read(self.tree.path(name(number))).ok()).collect()
    }

    fn arguments(&self, more: &[&str]) -> Vec<std::ffi::OsString> {
        let from = ["--from", self.copy.root().to_str().unwrap()];
        let all = [&from[..], &["--yes", "--quiet"], more].concat();
        self.recorded.arguments("heal", &all)
    }

    fn start(&self, more: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
        command.args(self.arguments(more)).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("start fsure")
    }

    fn journal(&self) -> PathBuf {
        let mut name = self.recorded.catalog.clone().into_os_string();
        name.push(".healing");
        name.into()
    }

    fn assert_whole(&self, case: &str) {
        for (number, now) in (1..).zip(self.contents()) {
            assert!(now == Some(content(SIZE as usize, number)), "{case}: file {number}");
        }
        let report = self.recorded.verify();
        assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{case}: {report:?}");
        assert!(report.stderr.is_empty(), "{case}: {report:?}");
        let mut names = walk(self.tree.root());
        names.retain(|name| !name.contains("/file"));
        assert_eq!(names, [""; 0], "{case}");
    }
}

fn walk(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names.extend(walk(&path));
        } else {
            names.push(path.to_str().unwrap().to_owned());
        }
    }
    names
}

/// The verdicts to expect. A file that was damaged again between a rename and its record
/// no longer has the recorded inode.
const EXPECTED: [&str; 3] = ["altered", "damaged-copy", "missing"];

/// Kills one heal after the other until they have come to the end several
/// times; `look` sees what each has left.
fn kill_heals(set: &Setting, signal: Signal, more: &[&str], look: &dyn Fn(&str)) {
    let kills = campaign(9);
    let dice = content(8 * kills as usize, 99);
    let (mut cut_off, mut ends) = (0_u32, 0_u32);
    set.damage();
    for (number, bytes) in dice.as_chunks::<8>().0.iter().enumerate() {
        let delay = Duration::from_micros(u64::from_le_bytes(*bytes) % 450_000);
        let mut child = set.start(more);
        std::thread::sleep(delay);
        // It may have ended by itself.
        let _ = kill_process(Pid::from_child(&child), signal);
        let code = support::code(child.wait().expect("wait"));
        let case = format!("number {number}, after {delay:?}: {code}");
        look(&case);
        match code {
            7 | 0 => {
                set.assert_whole(&case);
                set.damage();
                ends += 1;
            }
            130 | 137 => cut_off += 1,
            other => panic!("exit code {other}: {case}"),
        }
    }
    let code = support::fsure(&set.arguments(more)).code;
    assert!([0, 7].contains(&code), "the last: {code}");
    set.assert_whole("the last");
    assert!(cut_off > kills / 7, "{cut_off} were cut off, {ends} came to their end");
}

#[test]
fn a_killed_heal_leaves_each_file_as_it_was_or_whole() {
    let set = Setting::new();
    set.damage();
    let damaged = set.contents();
    let look = |case: &str| {
        for ((number, now), damaged) in (1..).zip(set.contents()).zip(&damaged) {
            let is_whole = now.as_deref() == Some(&content(SIZE as usize, number));
            assert!(is_whole || now == *damaged, "{case}: file {number}");
        }
        let report = set.recorded.verify();
        let is_strange = |verdict: &String| !EXPECTED.contains(&&**verdict);
        let strange = report.verdicts().into_values().find(is_strange);
        assert_eq!(strange, None, "{case}: {report:?}");
    };
    kill_heals(&set, Signal::KILL, &[], &look);
}

#[test]
fn a_killed_heal_in_place_is_finished_by_the_next() {
    let set = Setting::new();
    let look = |case: &str| {
        if !set.journal().exists() {
            let report = set.recorded.verify();
            let is_strange = |verdict: &String| !EXPECTED.contains(&&**verdict);
            let strange = report.verdicts().into_values().find(is_strange);
            assert_eq!(strange, None, "{case}: {report:?}");
            return;
        }
        let report = set.recorded.update();
        assert_eq!(report.code, 5, "half a file would be recorded: {case}: {report:?}");
    };
    kill_heals(&set, Signal::KILL, &["--in-place", "--no-keep"], &look);
}

#[test]
fn an_interrupted_heal_leaves_nothing_behind() {
    let set = Setting::new();
    let look = |case: &str| {
        let names = walk(set.tree.root());
        let stray = names.iter().find(|name| !name.contains("/file"));
        assert_eq!(stray, None, "{case}");
    };
    kill_heals(&set, Signal::INT, &[], &look);
}

/// One damaged file in a tree on a tmpfs, and its copy.
fn on_tmpfs(kibibytes: u32) -> Option<(Tree, Mounted, Tree, Recorded)> {
    let (tree, beside) = (Tree::new(), Tree::new());
    let mounted = or_skip("a full disk", Mounted::tmpfs(tree.root(), kibibytes))?;
    tree.write("f", content(SIZE as usize, 1));
    tree.age("f");
    beside.write("copy/f", content(SIZE as usize, 1));
    let recorded = Recorded::outside(tree.root(), &beside.path("catalog.db"));
    recorded.record();
    tree.flip("f", 2 * MIB);
    Some((tree, mounted, beside, recorded))
}

fn heal_from(recorded: &Recorded, copy: &Path, more: &[&str]) -> Report {
    let from = ["--from", copy.to_str().unwrap(), "--no-keep", "--yes"];
    recorded.run("heal", &[&from[..], more].concat())
}

fn reason(report: &Report) -> String {
    let remedy = report.lines.iter().find(|line| line["type"] == "remedy");
    remedy.expect("a remedy")["reason"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_full_disk_costs_nothing_that_was_there() {
    let Some((tree, _mounted, beside, recorded)) = on_tmpfs(4096) else { return };
    let before = tree.read("f");
    let report = heal_from(&recorded, &beside.path("copy"), &[]);
    assert_eq!(report.code, 3, "{report:?}");
    assert!(reason(&report).contains("No space left"), "{report:?}");
    assert!(tree.read("f") == before);
    assert_eq!(walk(tree.root()).len(), 1, "the draft is gone");
    // In place nothing more is needed there: the journal is beside the catalog.
    let report = heal_from(&recorded, &beside.path("copy"), &["--in-place"]);
    assert_eq!(report.code, 7, "{report:?}");
    assert!(tree.read("f") == content(SIZE as usize, 1));
    assert_eq!(recorded.verify().code, 0);
}

#[test]
fn a_full_disk_under_the_journal_costs_nothing_either() {
    let Some((tree, _mounted, beside, recorded)) = on_tmpfs(8192) else { return };
    let home = beside.path("home");
    std::fs::create_dir(&home).unwrap();
    let Some(_small) = or_skip("a full disk", Mounted::tmpfs(&home, 1500)) else { return };
    std::fs::copy(&recorded.catalog, home.join("catalog.db")).unwrap();
    let recorded = Recorded::outside(tree.root(), &home.join("catalog.db"));
    let before = (tree.read("f"), std::fs::metadata(tree.path("f")).unwrap().ctime_nsec());
    let report = heal_from(&recorded, &beside.path("copy"), &["--in-place"]);
    assert_eq!(report.code, 3, "{report:?}");
    assert!(reason(&report).contains("its journal"), "{report:?}");
    let after = (tree.read("f"), std::fs::metadata(tree.path("f")).unwrap().ctime_nsec());
    assert!(after == before, "it was touched");
    let stray: Vec<_> = walk(&home).into_iter().filter(|name| name.contains("healing")).collect();
    assert_eq!(stray, [""; 0]);
}

#[test]
fn what_can_still_be_read_of_an_unreadable_file_counts() {
    let Some(mut image) = or_skip("an_unreadable_file", Image::new(&BTRFS, 128)) else { return };
    let (beside, copies) = (Tree::new(), Tree::new());
    for in_place in [false, true] {
        let name = format!("f{in_place}");
        let data = content(5 * MIB as usize, 7 + u64::from(in_place));
        std::fs::write(image.root().join(&name), &data).unwrap();
        // The copy has nothing but the block that cannot be read.
        let mut other = vec![0; data.len()];
        other[2 << 20..3 << 20].copy_from_slice(&data[2 << 20..3 << 20]);
        copies.write(&name, other);
        let catalog = beside.path(format!("catalog{in_place}.db"));
        let recorded = Recorded::outside(image.root(), &catalog);
        recorded.record();
        // btrfs has checksums: what does not fit them cannot be read.
        image.flip_in_image(&data[(2 << 20) + 8192..(2 << 20) + 8224], 3);
        let report = recorded.verify();
        assert_eq!(report.verdict(&name).as_deref(), Some("unreadable"), "{report:?}");
        let more = ["--in-place"];
        let report = heal_from(&recorded, copies.root(), &more[..usize::from(in_place)]);
        assert_eq!(report.code, 7, "{report:?}");
        let remedy = report.lines.iter().find(|line| line["type"] == "remedy").unwrap();
        assert_eq!(remedy["taken"][0]["blocks"], json!([[2 * MIB, 3 * MIB]]));
        image.unmounted(|_| ());
        assert!(std::fs::read(image.root().join(&name)).unwrap() == data);
        let report = recorded.verify();
        assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{report:?}");
    }
}

#[test]
fn a_replica_that_fails_costs_only_what_it_alone_has() {
    let copy = Tree::new();
    copy.write("f", content(SIZE as usize, 1));
    let Some(view) = or_skip("a_replica_that_fails", FaultyFs::new(copy.root())) else { return };
    let (tree, beside) = (Tree::new(), Tree::new());
    tree.write("f", content(SIZE as usize, 1));
    let recorded = Recorded::outside(tree.root(), &beside.path("catalog.db"));
    recorded.record();
    for at in [5, MIB, 3 * MIB] {
        tree.flip("f", at);
    }
    let before = tree.read("f");
    view.set([Fault::eio("f", MIB..MIB + 4096)]);
    let report = heal_from(&recorded, view.root(), &[]);
    assert_eq!(report.code, 3, "{report:?}");
    assert!(reason(&report).contains("Input/output error"), "{report:?}");
    assert!(tree.read("f") == before);
    // A replica that lies, beside one that has the block.
    view.set([Fault::flip("f", MIB..MIB + 1)]);
    let other = beside.path("other");
    let mut bytes = vec![1; SIZE as usize];
    let whole = content(SIZE as usize, 1);
    bytes[MIB as usize..2 << 20].copy_from_slice(&whole[MIB as usize..2 << 20]);
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("f"), bytes).unwrap();
    let report = heal_from(&recorded, view.root(), &["--from", other.to_str().unwrap()]);
    assert_eq!(report.code, 7, "{report:?}");
    assert!(tree.read("f") == whole);
}

#[test]
fn a_write_to_a_file_that_is_being_healed_is_kept() {
    // At once, or when the draft or the journal is being written.
    for (more, late) in
        [(&[][..], false), (&[], true), (&["--in-place"], false), (&["--in-place"], true)]
    {
        let copy = Tree::new();
        copy.write("f", content(SIZE as usize, 1));
        let view = FaultyFs::new(copy.root());
        let Some(view) = or_skip("a_write_to_a_file_that_is_being_healed_is_kept", view) else {
            return;
        };
        let (tree, beside) = (Tree::new(), Tree::new());
        tree.write("f", content(SIZE as usize, 1));
        let recorded = Recorded::outside(tree.root(), &beside.path("catalog.db"));
        recorded.record();
        tree.flip("f", 5);
        let victim = tree.path("f");
        let places = [tree.root().to_owned(), beside.root().to_owned()];
        let meanwhile = Meanwhile::new(move |_, moment| {
            let is_begun = |name: &String| name.contains(".making") || name.contains("heal-");
            let is_late = || places.iter().flat_map(|place| walk(place)).any(|n| is_begun(&n));
            if moment == Moment::Read && (!late || is_late()) {
                std::fs::write(&victim, "an edit").unwrap();
            }
        });
        view.faults.lock().unwrap().meanwhile = meanwhile;
        let report = heal_from(&recorded, view.root(), more);
        assert_eq!(report.code, 3, "{report:?}");
        assert!(reason(&report).contains("busy"), "{report:?}");
        assert_eq!(tree.read("f"), b"an edit");
        assert_eq!(walk(tree.root()).len(), 1);
        let stray = walk(beside.root()).into_iter().find(|name| name.contains("healing"));
        assert_eq!(stray, None);
    }
}

/// A journal as `docs/heal.md` describes it, of one piece.
fn journal(path: &str, inode: u64, dates: [i64; 2], whole: &[u8], old: &[u8]) -> Vec<u8> {
    let (at, end) = (MIB as usize, 2 * MIB as usize);
    let mut bytes = b"fsure heal 1\n".to_vec();
    bytes.extend((path.len() as u32).to_le_bytes());
    bytes.extend(path.as_bytes());
    for number in [inode, whole.len() as u64, whole.len() as u64] {
        bytes.extend(number.to_le_bytes());
    }
    dates.iter().for_each(|date| bytes.extend(date.to_le_bytes()));
    bytes.extend(blake3::hash(whole).as_bytes());
    for number in [1, MIB, MIB, MIB] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend([0xff; 32]);
    bytes.extend(&old[at..end]);
    bytes.extend(&whole[at..end]);
    bytes.extend(*blake3::hash(&bytes).as_bytes());
    bytes
}

#[test]
fn a_journal_is_carried_out_unless_another_process_wrote_meanwhile() {
    for (half, spoils_journal, is_finished) in
        [(true, false, true), (false, false, false), (true, true, false)]
    {
        let (tree, beside) = (Tree::new(), Tree::new());
        let whole = content(SIZE as usize, 1);
        tree.write("f", &whole);
        tree.age("f");
        let recorded = Recorded::outside(tree.root(), &beside.path("catalog.db"));
        recorded.record();
        let date = tree.mtime("f");
        let mut old = whole.clone();
        old[MIB as usize + 5000] ^= 1;
        let inode = std::fs::metadata(tree.path("f")).unwrap().ino();
        let mut journal = journal("f", inode, [date; 2], &whole, &old);
        if spoils_journal {
            journal[1000] ^= 1;
        }
        let place = beside.path("catalog.db.healing");
        std::fs::write(&place, &journal).unwrap();
        // Half of it is written, or another process wrote something else.
        old[MIB as usize..MIB as usize + 512].copy_from_slice(&whole[MIB as usize..][..512]);
        if !half {
            old[MIB as usize + 100] = 0;
        }
        tree.write("f", &old);
        let report = recorded.update();
        assert_eq!(report.code, 5, "{report:?}");
        assert!(report.stderr.contains("'fsure heal ") && report.stderr.contains(" --yes'"));
        assert!(recorded.verify().stderr.contains("an earlier heal was interrupted"));
        let report = recorded.run("heal", &[""; 0]);
        assert!(report.stderr.contains("an earlier heal was interrupted"), "{report:?}");
        assert!(tree.read("f") == old, "a dry run writes nothing");
        let report = recorded.run("heal", &["--yes"]);
        assert!(!place.exists(), "{report:?}");
        assert_eq!(tree.read("f") == whole, is_finished, "{report:?}");
        if is_finished {
            assert!(report.stderr.contains("is now finished"), "{report:?}");
            assert_eq!((recorded.verify().code, tree.mtime("f")), (0, date));
        } else {
            assert!(tree.read("f") == old, "it was touched");
            assert_eq!(std::fs::read(beside.path("catalog.db.healing.1")).unwrap(), journal);
            assert!(report.stderr.contains("left alone"), "{report:?}");
        }
    }
}
