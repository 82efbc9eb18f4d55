//! `heal` as its users meet it: what it takes from where, what it leaves alone,
//! what a healed file keeps, and that nothing leads it out of its roots.
#![cfg(target_os = "linux")]

use crate::support;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use crate::support::{
    AWKWARD, EXT4, Image, Mounted, Recorded, Report, Tree, content, fsure_json, or_skip, skip,
};
use rustix::fs::{XattrFlags, getxattr, setxattr};
use serde_json::{Value, json};

const MIB: u64 = 1 << 20;
const HOUR_NS: i64 = 3_600_000_000_000;

/// A tree with a record beside it, and copies of it.
struct Setting {
    tree: Tree,
    recorded: Recorded,
    beside: Tree,
    copies: Vec<PathBuf>,
}

fn copy(from: &Path, to: &Path) {
    let done = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(done.expect("run cp").success());
}

impl Setting {
    fn new(files: &[(&str, u64)], copies: usize) -> Self {
        let tree = Tree::new();
        for (seed, (path, size)) in (1..).zip(files) {
            tree.write(path, content(*size as usize, seed));
            tree.age(path);
        }
        Self::of(tree, copies)
    }

    fn of(tree: Tree, copies: usize) -> Self {
        let beside = Tree::new();
        let copies: Vec<_> = (0..copies).map(|n| beside.path(format!("copy{n}"))).collect();
        for to in &copies {
            copy(tree.root(), to);
        }
        let recorded = Recorded::outside(tree.root(), &beside.path("catalog.db"));
        recorded.record();
        Self { tree, recorded, beside, copies }
    }

    fn arguments(&self, more: &[&str]) -> Vec<String> {
        let from = |copy: &PathBuf| ["--from".to_owned(), copy.to_str().unwrap().to_owned()];
        let mut all: Vec<_> = self.copies.iter().flat_map(from).collect();
        all.extend(more.iter().map(|more| (*more).to_owned()));
        all
    }

    fn heal(&self, more: &[&str]) -> Report {
        self.recorded.run("heal", &self.arguments(more))
    }

    /// Everything is as recorded, and nothing is left beside it.
    fn assert_clean(&self) {
        let report = self.recorded.verify();
        assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{report:?}");
        let report = self.recorded.update();
        assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{report:?}");
        assert!(report.stderr.is_empty(), "{report:?}");
    }
}

fn remedy(report: &Report, path: &str) -> Value {
    let mut all = report.lines.iter().filter(|l| l["type"] == "remedy" && l["path"] == path);
    let one = all.next().unwrap_or_else(|| panic!("no remedy for {path}: {report:?}")).clone();
    assert!(all.next().is_none(), "several remedies for {path}: {report:?}");
    one
}

fn cure(report: &Report, path: &str) -> String {
    remedy(report, path)["cure"].as_str().expect("a cure").to_owned()
}

#[test]
fn each_block_comes_from_a_source_that_has_it() {
    let set = Setting::new(&[("f", 5 * MIB + 123), ("good", 9)], 2);
    for at in [10, MIB + 10, 3 * MIB, 5 * MIB + 100] {
        set.tree.flip("f", at);
    }
    let other = |n: usize, at| {
        let copy = &set.copies[n];
        let mut file = std::fs::File::options().read(true).write(true).open(copy.join("f"));
        support::flip_byte(file.as_mut().expect("open"), at);
    };
    other(0, 0);
    other(0, 3 * MIB + 5);
    other(1, MIB);
    let (before, catalog) = (set.tree.read("f"), set.recorded.catalog_bytes());

    let dry = set.heal(&[]);
    assert_eq!((dry.code, cure(&dry, "f")), (3, "healable".to_owned()), "{dry:?}");
    assert!(set.tree.read("f") == before && set.recorded.catalog_bytes() == catalog);
    assert_eq!(std::fs::read_dir(set.tree.root()).unwrap().count(), 2, "nothing is made");

    let done = set.heal(&["--yes"]);
    assert_eq!((done.code, cure(&done, "f")), (7, "healed".to_owned()), "{done:?}");
    let path = |n: usize| set.copies[n].to_str().unwrap();
    let taken = json!([
        {"origin": "replica", "replica": path(0),
         "blocks": [[MIB, 2 * MIB], [5 * MIB, 5 * MIB + 123]]},
        {"origin": "replica", "replica": path(1), "blocks": [[0, MIB], [3 * MIB, 4 * MIB]]},
    ]);
    for report in [&dry, &done] {
        assert_eq!(remedy(report, "f")["taken"], taken, "{report:?}");
    }
    assert!(set.tree.read("f") == content(5 * MIB as usize + 123, 1));
    set.assert_clean();
}

#[test]
fn a_block_without_a_source_is_left_byte_for_byte() {
    let set = Setting::new(&[("f", 3 * MIB), ("small", 5000)], 1);
    let damage = |tree: &Path| {
        for (path, at) in [("f", MIB + 7), ("small", 1)] {
            let file = std::fs::File::options().read(true).write(true).open(tree.join(path));
            support::flip_byte(&mut file.unwrap(), at);
        }
    };
    damage(&set.copies[0]);
    for (path, at) in [("f", 5), ("f", MIB + 7), ("small", 1)] {
        set.tree.flip(path, at);
    }
    let before = ["f", "small"].map(|path| set.tree.read(path));
    let report = set.heal(&["--yes"]);
    assert_eq!(report.code, 3, "{report:?}");
    let lacking = [json!([[MIB, 2 * MIB]]), json!([[0, 5000]])];
    for ((path, before), lacking) in ["f", "small"].into_iter().zip(before).zip(lacking) {
        let remedy = remedy(&report, path);
        assert_eq!((&remedy["cure"], &remedy["lacking"]), (&json!("unhealed"), &lacking));
        assert!(remedy["reason"].as_str().unwrap().contains("not the recorded content"));
        assert!(set.tree.read(path) == before);
    }
}

#[test]
fn what_only_grew_needs_no_replica_s_bytes() {
    let set = Setting::new(&[("f", 2 * MIB + 5), ("small", 50), ("empty", 0)], 0);
    for path in ["f", "small", "empty"] {
        let date = set.tree.mtime(path);
        let longer = [set.tree.read(path), vec![7; 3 * MIB as usize]].concat();
        set.tree.write(path, longer);
        set.tree.set_mtime(path, date);
    }
    std::fs::create_dir(set.beside.path("none")).unwrap();
    let none = set.beside.path("none");
    let from = ["--from", none.to_str().unwrap(), "--yes"];
    let report = set.recorded.run("heal", &from);
    assert_eq!(report.code, 7, "{report:?}");
    set.assert_clean();
}

#[test]
fn edits_are_never_touched_and_what_was_dated_back_is() {
    let set = Setting::new(&[("newer", 2 * MIB), ("older", 9), ("back", 9), ("dated", 9)], 1);
    for (path, shift) in [("newer", HOUR_NS), ("older", -HOUR_NS), ("back", 0)] {
        let date = set.tree.mtime(path);
        set.tree.write(path, format!("edited {path}"));
        set.tree.set_mtime(path, date + shift);
    }
    set.tree.set_mtime("dated", set.tree.mtime("dated") + 1);
    let report = set.heal(&["--yes"]);
    assert_eq!((report.code, cure(&report, "back")), (7, "healed".to_owned()), "{report:?}");
    for path in ["newer", "older"] {
        assert_eq!(set.tree.read(path), format!("edited {path}").into_bytes());
        assert!(report.lines.iter().all(|l| l["type"] != "remedy" || l["path"] != path));
    }
}

/// An access ACL: owner rw, user 1 r, group r, mask r, others nothing.
const ACL: &[u8] = b"\x02\0\0\0\
    \x01\0\x06\0\xff\xff\xff\xff\x02\0\x04\0\x01\0\0\0\x04\0\x04\0\xff\xff\xff\xff\
    \x10\0\x04\0\xff\xff\xff\xff\x20\0\0\0\xff\xff\xff\xff";

/// Owner, mode, date and two attributes.
fn look(tree: &Tree, path: &str) -> ([u32; 3], [i64; 2], [Option<Vec<u8>>; 2]) {
    let path = tree.path(path);
    let stat = std::fs::symlink_metadata(&path).unwrap();
    let attribute = |name| {
        let mut value = [0; 64];
        let length = getxattr(&path, name, &mut value[..]).ok();
        length.map(|length| value[..length].to_vec())
    };
    let attributes = ["system.posix_acl_access", "user.note"].map(attribute);
    let owner_and_mode = [stat.uid(), stat.gid(), stat.mode()];
    (owner_and_mode, [stat.mtime(), stat.mtime_nsec()], attributes)
}

#[test]
fn a_healed_file_keeps_all_it_had_and_a_lost_one_gets_the_replica_s() {
    let tree = Tree::new_in(env!("CARGO_TARGET_TMPDIR"));
    for (seed, path) in (1..).zip(["kept", "lost/deep/file", "lost/link"]) {
        tree.write(path, content(2 * MIB as usize, seed));
    }
    std::fs::remove_file(tree.path("lost/link")).unwrap();
    symlink("deep/file", tree.path("lost/link")).unwrap();
    let set_acl = |name: &str, value: &[u8]| {
        setxattr(tree.path("kept"), name, value, XattrFlags::empty()).is_ok()
    };
    let has_acl = set_acl("system.posix_acl_access", ACL) && set_acl("user.note", b"mine");
    if !has_acl {
        skip("a_healed_file_keeps_all_it_had", "no ACLs here: only owner and mode");
    }
    for (path, mode) in [("kept", 0o4640), ("lost/deep/file", 0o2750), ("lost/deep", 0o1711)] {
        let _ = std::os::unix::fs::chown(tree.path(path), Some(1234), Some(4321));
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(tree.path(path), mode).unwrap();
    }
    tree.set_mtime("lost/deep", 1_500_000_000_123_456_789);
    let paths = ["kept", "lost/deep/file", "lost/deep", "lost/link"];
    let before = paths.map(|path| look(&tree, path));
    let set = Setting::of(tree, 1);
    set.tree.flip("kept", 5);
    std::fs::remove_dir_all(set.tree.path("lost")).unwrap();
    let report = set.heal(&["--yes"]);
    assert_eq!(report.code, 7, "{report:?}");
    assert_eq!(paths.map(|path| look(&set.tree, path)), before);
    set.assert_clean();
}

#[test]
fn a_file_with_two_names_is_refused_or_healed_in_place() {
    let set = Setting::new(&[("one", 3 * MIB + 9)], 1);
    std::fs::hard_link(set.tree.path("one"), set.tree.path("two")).unwrap();
    set.recorded.record();
    set.tree.flip("one", MIB);
    set.tree.flip("one", 3 * MIB + 1);
    let inode = || ["one", "two"].map(|p| std::fs::metadata(set.tree.path(p)).unwrap().ino());
    let before = (set.tree.read("one"), inode());
    for more in [&[][..], &["--yes"]] {
        let report = set.heal(more);
        assert_eq!(report.code, 3, "{report:?}");
        let reason = remedy(&report, "one")["reason"].as_str().unwrap().to_owned();
        assert!(reason.contains("--in-place"), "{reason}");
    }
    assert!((set.tree.read("one"), inode()) == before);
    let report = set.heal(&["--no-keep", "--in-place", "--yes"]);
    assert_eq!(report.code, 7, "{report:?}");
    assert_eq!(["one", "two"].map(|path| cure(&report, path)), ["healed", "healed"]);
    assert_eq!(inode(), before.1);
    assert!(set.tree.read("two") == content(3 * MIB as usize + 9, 1));
    set.assert_clean();
}

#[test]
fn a_replica_that_is_the_tree_is_none() {
    let set = Setting::new(&[("dir/f", 2 * MIB), ("dir/g", 10)], 1);
    set.tree.flip("dir/f", 3);
    let usage = |path: &str, from: &Path| {
        let path = set.tree.path(path);
        let args = ["heal".as_ref(), path.as_os_str(), "--catalog".as_ref()];
        let more = [set.recorded.catalog.as_os_str(), "--from".as_ref(), from.as_os_str()];
        fsure_json(&[&args[..], &more[..]].concat())
    };
    let bound = set.beside.path("bound");
    std::fs::create_dir(&bound).unwrap();
    let way = set.beside.path("way");
    symlink(set.tree.root(), &way).unwrap();
    let mut same = vec![set.tree.root().to_owned(), set.tree.path("dir/.."), way];
    let mounted = or_skip("a_replica_that_is_the_tree", Mounted::bind(set.tree.root(), &bound));
    same.extend(mounted.is_some().then_some(bound));
    for from in &same {
        let report = usage("", from);
        assert_eq!(report.code, 2, "{}: {report:?}", from.display());
        assert!(report.stderr.contains("not a copy of it"), "{report:?}");
    }
    drop(mounted);
    for (from, why) in [("copy0/dir/g", "is a file"), ("none", "cannot open")] {
        let report = usage("", &set.beside.path(from));
        assert_ne!(report.code, 3, "{report:?}");
        assert!(report.stderr.contains(why), "{report:?}");
    }
    // A hard link of the damaged file is the damaged file.
    let linked = set.beside.path("linked/dir");
    std::fs::create_dir_all(&linked).unwrap();
    if std::fs::hard_link(set.tree.path("dir/f"), linked.join("f")).is_ok() {
        let linked = set.beside.path("linked");
        let from = ["--from", linked.to_str().unwrap(), "--no-keep", "--in-place"];
        let report = set.recorded.run("heal", &from);
        let reason = remedy(&report, "dir/f")["reason"].as_str().unwrap().to_owned();
        assert!(reason.contains("the damaged file itself"), "{reason}");
    }
}

#[test]
fn no_link_and_no_name_leads_out() {
    let set = Setting::new(&[("dir/f", 9), ("other/g", 9), ("h", 9)], 1);
    let outside = Tree::new();
    outside.write("f", content(9, 1));
    outside.write("g", content(9, 2));
    // In the tree a folder has become a link, in the replica another one is.
    std::fs::rename(set.tree.path("dir"), set.beside.path("dir")).unwrap();
    symlink(outside.root(), set.tree.path("dir")).unwrap();
    std::fs::remove_file(outside.path("f")).unwrap();
    set.tree.flip("other/g", 1);
    std::fs::remove_dir_all(set.copies[0].join("other")).unwrap();
    symlink(outside.root(), set.copies[0].join("other")).unwrap();
    let report = set.heal(&["--yes", "--force"]);
    assert_eq!(cure(&report, "dir/f"), "unhealed", "{report:?}");
    assert_eq!(cure(&report, "other/g"), "unhealed", "{report:?}");
    assert!(!outside.path("f").exists(), "it was written through a link");
    assert_eq!(report.code, 3, "{report:?}");
}

#[test]
fn names_are_bytes() {
    let tree = Tree::new();
    for (seed, name) in (1..).zip(AWKWARD) {
        tree.write(Path::new(std::ffi::OsStr::from_bytes(name)), content(700, seed));
    }
    let set = Setting::of(tree, 1);
    for (number, name) in AWKWARD.iter().enumerate() {
        let name = Path::new(std::ffi::OsStr::from_bytes(name));
        match number % 2 {
            0 => set.tree.flip(name, 99),
            _ => std::fs::remove_file(set.tree.path(name)).unwrap(),
        }
    }
    let report = set.heal(&["--yes"]);
    assert_eq!(report.code, 7, "{report:?}");
    assert_eq!(report.summary()["healed"], AWKWARD.len());
    set.assert_clean();
}

#[test]
fn without_block_values_the_whole_is_proven_by_every_digest() {
    let tree = Tree::new();
    tree.write("f", content(2 * MIB as usize + 9, 1));
    tree.write("g", content(3 * MIB as usize, 2));
    let beside = Tree::new();
    let copies = ["a", "b"].map(|name| beside.path(name));
    for to in &copies {
        copy(tree.root(), to);
    }
    let recorded = Recorded::outside(tree.root(), &beside.path("catalog.db"));
    assert_eq!(recorded.run("update", &["--digest", "sha256,md5"]).code, 0);
    tree.flip("f", MIB);
    tree.flip("g", 1);
    let flip = |copy: &Path, path: &str| {
        let file = std::fs::File::options().read(true).write(true).open(copy.join(path));
        support::flip_byte(&mut file.unwrap(), 2 * MIB);
    };
    flip(&copies[0], "f");
    flip(&copies[0], "g");
    flip(&copies[1], "g");
    let from = copies.iter().flat_map(|copy| ["--from", copy.to_str().unwrap()]);
    let from: Vec<_> = from.chain(["--yes"]).collect();
    let report = recorded.run("heal", &from);
    assert_eq!((report.code, cure(&report, "f")), (3, "healed".to_owned()), "{report:?}");
    assert_eq!(cure(&report, "g"), "unhealed", "{report:?}");
    assert!(tree.read("f") == content(2 * MIB as usize + 9, 1));
    assert_eq!(remedy(&report, "f")["taken"][0]["replica"], copies[1].to_str().unwrap());
    tree.flip("f", 7);
    let report = recorded.run("heal", &[&from[..], &["--in-place", "--no-keep"]].concat());
    let reason = remedy(&report, "f")["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("blocks are not recorded"), "{reason}");
}

#[test]
fn a_part_of_a_tree_corresponds_to_its_copy() {
    let set = Setting::new(&[("dir/sub/f", 2 * MIB), ("dir/g", 9), ("h", 9)], 1);
    for path in ["dir/sub/f", "dir/g", "h"] {
        set.tree.flip(path, 1);
    }
    let recorded = Recorded::inside(set.tree.root());
    std::fs::create_dir(set.tree.path(".fsure")).unwrap();
    std::fs::rename(&set.recorded.catalog, &recorded.catalog).unwrap();
    let heal = |path: &str, from: &Path| {
        let path = set.tree.path(path);
        let args = ["heal".as_ref(), path.as_os_str(), "--from".as_ref(), from.as_os_str()];
        fsure_json(&[&args[..], &["--yes".as_ref()]].concat())
    };
    let report = heal("dir", &set.copies[0].join("dir"));
    assert_eq!((report.code, report.summary()["healed"].clone()), (7, json!(2)), "{report:?}");
    let report = heal("h", &set.copies[0].join("dir/sub"));
    assert_eq!(report.code, 2, "no copy of the file is in the folder: {report:?}");
    // The folder that has its copy, at the same path or under the same name, or the file itself.
    let report = heal("h", &set.copies[0]);
    assert_eq!((report.code, report.summary()["healed"].clone()), (7, json!(1)), "{report:?}");
    set.tree.flip("dir/g", 2);
    assert_eq!(heal("dir/g", &set.copies[0].join("dir")).code, 7);
    std::fs::remove_file(set.tree.path("h")).unwrap();
    let report = heal("h", &set.copies[0].join("h"));
    assert_eq!(report.code, 7, "{report:?}");
    assert_eq!(recorded.verify().code, 0);
}

#[test]
fn a_root_below_is_healed_from_what_corresponds_to_it() {
    let tree = Tree::new();
    for path in ["f", "inner/deep/g"] {
        tree.write(path, content(100, 3));
    }
    let inner = Recorded::inside(&tree.path("inner"));
    inner.record();
    let outer = Recorded::inside(tree.root());
    outer.record();
    let beside = Tree::new();
    copy(tree.root(), &beside.path("copy"));
    tree.flip("f", 1);
    tree.flip("inner/deep/g", 1);
    let copy = beside.path("copy");
    let report = outer.run("heal", &["--from", copy.to_str().unwrap(), "--yes"]);
    assert_eq!((report.code, report.summary()["healed"].clone()), (7, json!(2)), "{report:?}");
    assert_eq!(outer.verify().code, 0);
}

#[test]
fn a_root_that_is_not_there_is_not_filled() {
    let set = Setting::new(&[("a", 9), ("b", 9), ("c", 9)], 1);
    for path in ["a", "b", "c"] {
        std::fs::remove_file(set.tree.path(path)).unwrap();
    }
    let report = set.heal(&["--yes"]);
    assert_eq!(report.code, 5, "{report:?}");
    assert_eq!(std::fs::read_dir(set.tree.root()).unwrap().count(), 0);
    let report = set.heal(&["--yes", "--force"]);
    assert_eq!(report.code, 7, "{report:?}");
    set.assert_clean();
}

#[test]
fn damage_that_came_under_another_name_is_healed_there() {
    let set = Setting::new(&[("old", 2 * MIB), ("b", 9), ("c", 9)], 1);
    set.tree.flip("old", MIB + 1);
    std::fs::rename(set.tree.path("old"), set.tree.path("new")).unwrap();
    let report = set.heal(&["--yes"]);
    assert_eq!(cure(&report, "new"), "healed", "{report:?}");
    assert!(set.tree.read("new") == content(2 * MIB as usize, 1));
    let report = set.recorded.verify();
    assert_eq!((report.code, report.verdict("new").as_deref()), (1, Some("moved")), "{report:?}");
}

#[test]
fn a_list_of_digests_heals_too() {
    let tree = Tree::new();
    let beside = Tree::new();
    for (seed, path) in (1..).zip(["f", "g", "h"]) {
        tree.write(path, content(5000, seed));
    }
    copy(tree.root(), &beside.path("copy"));
    let list = beside.path("list");
    let mut sums = std::process::Command::new("sha256sum");
    let sums = sums.args(["f", "g", "h"]).current_dir(tree.root()).output().unwrap();
    std::fs::write(&list, sums.stdout).unwrap();
    let args = ["import".as_ref(), list.as_os_str(), "--root".as_ref(), tree.root().as_os_str()];
    assert_eq!(fsure_json(&args).code, 0);
    let recorded = Recorded::inside(tree.root());
    tree.write("f", "other content under another date");
    std::fs::remove_file(tree.path("g")).unwrap();
    let copy = beside.path("copy");
    let report = recorded.run("heal", &["--from", copy.to_str().unwrap(), "--yes"]);
    assert_eq!(report.code, 7, "{report:?}");
    for (seed, path) in (1..).zip(["f", "g", "h"]) {
        assert!(tree.read(path) == content(5000, seed), "{path}");
    }
    assert_eq!(recorded.verify().code, 0);
}

/// Real rot: no system call wrote it, and no flag is needed to heal it.
#[test]
fn rot_is_healed_in_both_ways() {
    let Some(mut image) = or_skip("rot_is_healed", Image::new(&EXT4, 64)) else { return };
    let beside = Tree::new();
    for in_place in [false, true] {
        let name = format!("file{in_place}");
        let data = content(5 * MIB as usize + 50, u64::from(in_place) + 40);
        std::fs::write(image.root().join(&name), &data).unwrap();
        std::fs::write(beside.path(&name), &data).unwrap();
        let recorded = Recorded::inside(image.root());
        recorded.record();
        recorded.age_records();
        image.flip_in_image(&data[3 << 20..(3 << 20) + 32], 5);
        let from = ["--from", beside.root().to_str().unwrap(), "--yes", "--in-place"];
        let report = recorded.run("heal", &from[..if in_place { 4 } else { 3 }]);
        assert_eq!((report.code, cure(&report, &name)), (7, "healed".to_owned()), "{report:?}");
        assert_eq!(report.verdict(&name).as_deref(), Some("rotten"));
        image.unmounted(|_| ());
        assert!(std::fs::read(image.root().join(&name)).unwrap() == data);
        let report = recorded.verify();
        assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{report:?}");
    }
}
