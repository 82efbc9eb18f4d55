//! Records that travel with the data: written from the catalog without reading
//! a byte, believed only as far as their own digests go, and good for judging a
//! folder or a file that was taken away from its catalog.
#![cfg(target_os = "linux")]

mod support;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{XattrFlags, lgetxattr, lremovexattr, lsetxattr};
use serde_json::{Value, json};
use support::{EXT4, FaultyFs, Image, Recorded, Report, Tree, content, mtime_ns, or_skip, told};

const FILE: &str = ".fsure-folder.jsonl";
const ATTRIBUTE: &str = "user.fsure.record";
const FOLDER: [&str; 2] = ["--layout", "folder"];
const XATTR: [&str; 2] = ["--layout", "xattr"];
const TREE: [&str; 2] = ["--layout", "tree"];
const PLAIN: [&str; 0] = [];

fn fill(tree: &Tree) {
    tree.write("a", content(1000, 1));
    tree.write("sub/b", content(2_000_000, 2));
    tree.write("sub/deep/c", content(10, 3));
    tree.write(OsStr::from_bytes(b"sub/bad\xff"), content(300, 4));
    tree.write("sub-2/d", content(20, 5));
    fs::create_dir(tree.path("empty")).expect("make a folder");
    for path in [&b"a"[..], b"sub/b", b"sub/deep/c", b"sub/bad\xff", b"sub-2/d"] {
        tree.age(OsStr::from_bytes(path));
    }
}

fn recorded() -> (Tree, Recorded) {
    let tree = Tree::new();
    fill(&tree);
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    (tree, recorded)
}

/// What the summary says of carriers, without zeros.
fn carriers(report: &Report) -> BTreeMap<String, u64> {
    let all = report.summary()["carriers"].as_object().expect("an object");
    let numbers = all.iter().map(|(name, n)| (name.clone(), n.as_u64().expect("a number")));
    numbers.filter(|(_, n)| *n > 0).collect()
}

fn seen(report: &Report) -> (i32, u64, Vec<(String, u64)>) {
    let read = report.summary()["bytes_read"].as_u64().expect("a number");
    (report.code, read, carriers(report).into_iter().collect())
}

fn counts(pairs: &[(&str, u64)]) -> Vec<(String, u64)> {
    pairs.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect()
}

fn files_of_folders(tree: &Tree) -> Vec<PathBuf> {
    let folders = ["", "empty", "sub", "sub-2", "sub/deep"];
    let paths = folders.map(|folder| Path::new(folder).join(FILE));
    paths.into_iter().filter(|path| tree.path(path).exists()).collect()
}

/// Copies with dates and attributes.
fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("run cp");
    assert!(done.success());
}

/// By the document alone: the lines of files, if the digest fits.
fn parse(bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).expect("UTF-8");
    let (body, end) = text.trim_end().rsplit_once('\n').expect("lines");
    let end: Value = serde_json::from_str(end).expect("JSON");
    let digest = blake3::hash(format!("{body}\n").as_bytes()).to_hex().to_string();
    assert_eq!((&end["type"], &end["blake3"]), (&json!("end"), &json!(digest)));
    let lines: Vec<Value> =
        body.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines[0], json!({"type": "fsure-folder", "version": 1}));
    lines[1..].to_vec()
}

/// A folder's file with one byte of one digest changed and its own put right.
fn forge(path: &Path, name: &str) {
    let text = fs::read_to_string(path).expect("read");
    let (body, _) = text.trim_end().rsplit_once('\n').expect("lines");
    let lines: Vec<String> = body
        .lines()
        .map(|line| match line.contains(&format!("\"path\":\"{name}\"")) {
            true => {
                let at = line.find("\"blake3\":\"").expect("a digest") + 10;
                let other = if &line[at..=at] == "0" { "1" } else { "0" };
                format!("{}{other}{}", &line[..at], &line[at + 1..])
            }
            false => line.to_owned(),
        })
        .collect();
    let body = format!("{}\n", lines.join("\n"));
    let end = json!({"type": "end", "files": lines.len() - 1,
        "blake3": blake3::hash(body.as_bytes()).to_hex().to_string()});
    fs::write(path, format!("{body}{end}\n")).expect("write");
}

#[test]
fn folders_carry_their_records_and_nothing_is_read_for_it() {
    let (tree, recorded) = recorded();
    let report = recorded.run("update", &FOLDER);
    assert_eq!(seen(&report), (0, 0, counts(&[("written", 4)])), "{report:?}");
    assert_eq!(files_of_folders(&tree).len(), 4);
    let lines = parse(&tree.read(Path::new("sub").join(FILE)));
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!((&lines[0]["path"], &lines[1]["path_bytes"]), (&json!("b"), &json!("YmFk/w==")));
    assert_eq!(lines[0]["size"], 2_000_000);
    assert_eq!(lines[0]["mtime_ns"], tree.mtime("sub/b"));
    let digest = blake3::hash(&content(2_000_000, 2)).to_hex().to_string();
    assert_eq!(lines[0]["blake3"], digest);
    let untouched = mtime_ns(&tree.path(Path::new("sub").join(FILE)));
    for command in ["status", "verify", "update"] {
        let report = recorded.run(command, &PLAIN);
        assert_eq!(
            (report.code, report.told(), carriers(&report).len()),
            (0, vec![], 0),
            "{command}"
        );
    }
    assert_eq!(mtime_ns(&tree.path(Path::new("sub").join(FILE))), untouched);
    // What changes is followed, what goes leaves.
    tree.write("sub/deep/c", "other");
    tree.write("sub/deep/new", "new");
    fs::remove_file(tree.path("sub-2/d")).expect("remove");
    let report = recorded.update();
    assert_eq!(carriers(&report), counts(&[("removed", 1), ("written", 1)]).into_iter().collect());
    assert_eq!(parse(&tree.read(Path::new("sub/deep").join(FILE))).len(), 2);
    assert!(!tree.path("sub-2").join(FILE).exists());
    // A run that was cut off, and one that was lost.
    fs::write(tree.path("sub/.fsure-folder.jsonl.making"), "half").expect("write");
    fs::remove_file(tree.path("sub").join(FILE)).expect("remove");
    let report = recorded.verify();
    assert_eq!(seen(&report).2, counts(&[("behind", 1)]), "{report:?}");
    assert_eq!((report.code, report.told()), (1, vec![]), "{report:?}");
    assert_eq!(seen(&recorded.update()).2, counts(&[("written", 1)]));
    assert!(!tree.path("sub/.fsure-folder.jsonl.making").exists());
    let report = recorded.run("update", &TREE);
    assert_eq!(seen(&report), (0, 0, counts(&[("removed", 3)])), "{report:?}");
    assert_eq!(files_of_folders(&tree), Vec::<PathBuf>::new());
    assert_eq!(recorded.verify().code, 0);
}

#[test]
fn a_folder_moved_alone_is_judged_by_what_it_carries() {
    let (tree, recorded) = recorded();
    assert_eq!(recorded.run("update", &FOLDER).code, 0);
    let elsewhere = Tree::new();
    copy(&tree.path("sub"), &elsewhere.path("sub"));
    let alone = Recorded::inside(&elsewhere.path("sub"));
    let report = alone.verify();
    assert_eq!((report.code, report.told(), report.count("ok")), (0, vec![], 3), "{report:?}");
    assert!(report.stderr.contains("there is no record here"), "{}", report.stderr);
    assert_eq!(carriers(&report), counts(&[("used", 3)]).into_iter().collect());
    assert!(!alone.root.join(".fsure").exists(), "verify writes nothing");
    elsewhere.flip("sub/b", 1_500_000);
    elsewhere.write("sub/deep/c", "edited");
    fs::remove_file(elsewhere.path(OsStr::from_bytes(b"sub/bad\xff"))).expect("remove");
    let expected =
        told(&[("b", "damaged-copy"), ("bad\u{fffd}", "missing"), ("deep/c", "modified")]);
    let report = alone.verify();
    assert_eq!((report.code, report.told()), (3, expected), "{report:?}");
    // `update` does not bury it.
    let report = alone.update();
    assert_eq!(
        (report.code, report.verdict("b").as_deref()),
        (3, Some("damaged-copy")),
        "{report:?}"
    );
    let report = alone.verify();
    assert_eq!((report.code, report.told()), (3, told(&[("b", "damaged-copy")])), "{report:?}");
    elsewhere.flip("sub/b", 1_500_000);
    let report = alone.update();
    assert_eq!(report.code, 0, "{report:?}");
    assert_eq!(alone.verify().code, 0);
}

#[test]
fn what_carries_none_is_no_record() {
    let tree = Tree::new();
    fill(&tree);
    let report = Recorded::inside(tree.root()).verify();
    assert_eq!(report.code, 5, "{report:?}");
}

#[test]
fn a_damaged_file_of_a_folder_is_never_believed() {
    let (tree, recorded) = recorded();
    assert_eq!(recorded.run("update", &FOLDER).code, 0);
    let path = tree.path("sub").join(FILE);
    let sound = fs::read(&path).expect("read");
    let at = sound.len() as u64 / 2;
    let mut file = fs::OpenOptions::new().read(true).write(true).open(&path).expect("open");
    support::flip_byte(&mut file, at);
    let elsewhere = Tree::new();
    copy(&tree.path("sub"), &elsewhere.path("sub"));
    let alone = Recorded::inside(&elsewhere.path("sub"));
    let report = alone.verify();
    let expected = told(&[("b", "new"), ("bad\u{fffd}", "new")]);
    assert_eq!((report.code, report.told()), (6, expected), "{report:?}");
    assert!(report.stderr.contains("fails its own digest"), "{}", report.stderr);
    let report = alone.update();
    assert_eq!(report.code, 6, "{report:?}");
    assert!(!alone.root.join(".fsure").exists(), "nothing is recorded");
    // Beside its catalog it is told and made anew.
    for (command, counted) in [("verify", "behind"), ("update", "written")] {
        let report = recorded.run(command, &PLAIN);
        assert_eq!(
            (report.code, seen(&report).2),
            (
                6,
                counts(&[(counted, 1), ("damaged", 1)])
                    .into_iter()
                    .collect::<BTreeMap<_, _>>()
                    .into_iter()
                    .collect()
            ),
            "{report:?}"
        );
    }
    assert_eq!(fs::read(&path).expect("read"), sound);
    assert_eq!(recorded.verify().code, 0);
}

#[test]
fn a_conflict_is_told_and_left_until_somebody_decides() {
    let (tree, recorded) = recorded();
    assert_eq!(recorded.run("update", &FOLDER).code, 0);
    let path = tree.path("sub").join(FILE);
    let sound = fs::read(&path).expect("read");
    forge(&path, "b");
    let forged = fs::read(&path).expect("read");
    assert_ne!(forged, sound);
    for command in ["verify", "update"] {
        let report = recorded.run(command, &PLAIN);
        assert_eq!((report.code, seen(&report).2), (6, counts(&[("conflicts", 1)])), "{report:?}");
        assert!(
            report.stderr.contains("sub/b: what travels with it gives another content"),
            "{}",
            report.stderr
        );
    }
    assert_eq!(fs::read(&path).expect("read"), forged, "left as it is");
    // The word of somebody who has not had it read settles nothing.
    let accept = ["--accept".into(), tree.path("sub/b")];
    let report = recorded.run("update", &accept);
    assert_eq!((report.code, seen(&report).2), (6, counts(&[("conflicts", 1)])), "{report:?}");
    let report = recorded.run("update", &[&accept[..], &["--full".into()]].concat());
    assert_eq!((report.code, seen(&report).2), (0, counts(&[("written", 1)])), "{report:?}");
    assert_eq!(fs::read(&path).expect("read"), sound);
}

/// Damage on the way into a tree that has a record: the new place records what
/// it finds, and the file that came with it says otherwise.
#[test]
fn a_damaged_folder_moved_into_a_recorded_one_is_a_conflict() {
    let (tree, one) = recorded();
    assert_eq!(one.run("update", &FOLDER).code, 0);
    let (other, into) = recorded();
    assert_eq!(into.run("update", &FOLDER).code, 0);
    copy(&tree.path("sub"), &other.path("came"));
    other.flip("came/b", 9);
    let report = into.update();
    assert_eq!((report.code, carriers(&report)["conflicts"]), (6, 1), "{report:?}");
}

#[test]
fn somebody_s_own_file_of_that_name_is_left_alone() {
    let (tree, recorded) = recorded();
    tree.write(Path::new("sub").join(FILE), "mine");
    for (layout, others) in [(FOLDER, ("written", 3)), (TREE, ("removed", 3))] {
        let report = recorded.run("update", &layout);
        let expected = BTreeMap::from([(others.0.to_owned(), others.1), ("refused".to_owned(), 1)]);
        assert_eq!((report.code, carriers(&report)), (5, expected), "{report:?}");
        assert_eq!(tree.read(Path::new("sub").join(FILE)), b"mine");
    }
}

#[test]
fn a_record_that_lost_rows_takes_nothing_from_what_travels() {
    let (tree, recorded) = recorded();
    assert_eq!(recorded.run("update", &FOLDER).code, 0);
    let path = tree.path("sub").join(FILE);
    let sound = fs::read(&path).expect("read");
    recorded
        .connect()
        .execute("DELETE FROM record WHERE path = CAST('sub/b' AS BLOB)", [])
        .expect("lose a row");
    // Without its file nothing is to be recorded, and nothing else would tell.
    fs::remove_file(tree.path("sub/b")).expect("remove");
    let report = recorded.update();
    assert_eq!((report.code, report.told()), (6, vec![]), "{report:?}");
    assert_eq!(fs::read(&path).expect("read"), sound);
}

#[test]
fn a_root_below_keeps_what_is_its_own() {
    let (tree, outer) = recorded();
    let inner = Recorded::inside(&tree.path("sub"));
    fs::create_dir(tree.path("sub/.fsure")).expect("make a folder");
    // By name, or the outer record would be found.
    let named = Recorded::outside(&inner.root, &inner.catalog);
    assert_eq!(named.run("update", &FOLDER).code, 0);
    let kept = fs::read(tree.path("sub").join(FILE)).expect("read");
    let report = outer.run("update", &["--layout", "folder", "--accept-all"]);
    assert!(report.code < 2, "{report:?}");
    let report = outer.update();
    assert_eq!((report.code, carriers(&report).len()), (0, 0), "{report:?}");
    let report = outer.run("update", &TREE);
    assert!(report.code < 2, "{report:?}");
    assert!(!tree.path(FILE).exists());
    // The inner root was asked for the layout too, as any option is for all.
    let report = inner.run("update", &FOLDER);
    assert_eq!(report.code, 0, "{report:?}");
    assert_eq!(fs::read(tree.path("sub").join(FILE)).expect("read"), kept);
    let report = outer.update();
    assert_eq!(report.code, 0, "{report:?}");
    assert_eq!(fs::read(tree.path("sub").join(FILE)).expect("read"), kept);
}

fn on_ext4(test: &str) -> Option<(Image, Tree, Recorded)> {
    let image = or_skip(test, Image::new(&EXT4, 32))?;
    let tree = Tree::new_in(image.root());
    fill(&tree);
    or_skip(test, set(&tree.path("a"), "user.mine", b"kept"))?;
    fs::hard_link(tree.path("sub/b"), tree.path("twin")).expect("link");
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    Some((image, tree, recorded))
}

fn set(path: &Path, name: &str, value: &[u8]) -> Result<(), String> {
    lsetxattr(path, name, value, XattrFlags::empty()).map_err(|error| format!("{name}: {error}"))
}

fn attribute(path: &Path, name: &str) -> Option<String> {
    let mut buffer = vec![0; 1000];
    let length = lgetxattr(path, name, &mut buffer[..]).ok()?;
    String::from_utf8(buffer[..length].to_vec()).ok()
}

#[test]
fn files_carry_their_records_and_no_verdict_changes_for_it() {
    let test = "files_carry_their_records_and_no_verdict_changes_for_it";
    let Some((_image, tree, recorded)) = on_ext4(test) else { return };
    let mtime = tree.mtime("sub/b");
    let report = recorded.run("update", &XATTR);
    assert_eq!(seen(&report), (0, 0, counts(&[("written", 5)])), "{report:?}");
    assert_eq!(tree.mtime("sub/b"), mtime);
    let value = attribute(&tree.path("sub/b"), ATTRIBUTE).expect("an attribute");
    let digest = blake3::hash(&content(2_000_000, 2)).to_hex().to_string();
    let parts: Vec<_> = value.split(' ').collect();
    assert_eq!(parts[..3], ["fsure1", "2000000", &mtime.to_string()], "{value}");
    assert_eq!(parts[4], format!("blake3={digest}"), "{value}");
    for _ in 0..2 {
        for command in ["status", "update"] {
            let report = recorded.run(command, &PLAIN);
            assert_eq!(seen(&report), (0, 0, vec![]), "{command}: {report:?}");
        }
        let report = recorded.verify();
        assert_eq!(
            (report.code, report.told(), carriers(&report).len()),
            (0, vec![], 0),
            "{report:?}"
        );
    }
    tree.flip("a", 3);
    let report = recorded.verify();
    assert_eq!((report.code, report.told()), (3, told(&[("a", "altered")])), "{report:?}");
    let before = attribute(&tree.path("a"), ATTRIBUTE);
    assert_eq!(recorded.update().code, 3);
    assert_eq!(attribute(&tree.path("a"), ATTRIBUTE), before, "evidence stays");
    tree.flip("a", 3);
    tree.write("sub/deep/c", "edited");
    let report = recorded.update();
    assert_eq!((report.code, carriers(&report)["written"]), (0, 1), "{report:?}");
    let report = recorded.run("update", &TREE);
    assert_eq!((report.code, carriers(&report)["removed"]), (0, 5), "{report:?}");
    assert_eq!(attribute(&tree.path("a"), ATTRIBUTE), None);
    assert_eq!(attribute(&tree.path("a"), "user.mine").as_deref(), Some("kept"));
    let report = recorded.verify();
    assert_eq!((report.code, report.told()), (0, vec![]), "{report:?}");
}

#[test]
fn what_is_not_as_recorded_gets_no_attribute() {
    let test = "what_is_not_as_recorded_gets_no_attribute";
    let Some((_image, tree, recorded)) = on_ext4(test) else { return };
    tree.flip("a", 3);
    for report in [recorded.run("update", &XATTR), recorded.verify()] {
        assert_eq!((report.code, report.told()), (3, told(&[("a", "altered")])), "{report:?}");
        assert_eq!(attribute(&tree.path("a"), ATTRIBUTE), None);
    }
}

#[test]
fn a_file_copied_with_its_attributes_is_judged_by_them() {
    let test = "a_file_copied_with_its_attributes_is_judged_by_them";
    let Some((image, tree, recorded)) = on_ext4(test) else { return };
    assert_eq!(recorded.run("update", &XATTR).code, 0);
    let elsewhere = Tree::new_in(image.root());
    copy(&tree.path("sub"), &elsewhere.path("sub"));
    let alone = Recorded::inside(&elsewhere.path("sub"));
    let report = alone.verify();
    assert_eq!((report.code, report.told(), report.count("ok")), (0, vec![], 3), "{report:?}");
    assert_eq!(carriers(&report), counts(&[("used", 3)]).into_iter().collect());
    elsewhere.flip("sub/b", 1_500_000);
    let report = alone.verify();
    assert_eq!((report.code, report.told()), (3, told(&[("b", "damaged-copy")])), "{report:?}");
    // Both kinds of carriers, and they disagree.
    elsewhere.flip("sub/b", 1_500_000);
    assert_eq!(recorded.run("update", &FOLDER).code, 0);
    fs::copy(tree.path("sub").join(FILE), elsewhere.path("sub").join(FILE)).expect("copy");
    assert_eq!(alone.verify().code, 0);
    forge(&elsewhere.path("sub").join(FILE), "b");
    let report = alone.verify();
    assert_eq!((report.code, report.told()), (6, told(&[("b", "new")])), "{report:?}");
    assert_eq!(alone.update().code, 6);
    assert!(!alone.root.join(".fsure").exists());
    // Damaged.
    fs::remove_file(elsewhere.path("sub").join(FILE)).expect("remove");
    let value = attribute(&elsewhere.path("sub/b"), ATTRIBUTE).expect("a value");
    set(&elsewhere.path("sub/b"), ATTRIBUTE, &value.as_bytes()[1..]).expect("set");
    let report = alone.verify();
    assert_eq!((report.code, report.told()), (6, told(&[("b", "new")])), "{report:?}");
}

#[test]
fn what_cannot_be_written_is_told() {
    let test = "what_cannot_be_written_is_told";
    let Some((_image, tree, recorded)) = on_ext4(test) else { return };
    let immutable = |on: &str| Command::new("chattr").arg(on).arg(tree.path("a")).status();
    let made = immutable("+i").map_err(|error| format!("chattr: {error}"));
    let made = made.and_then(|done| done.success().then_some(()).ok_or("chattr failed".into()));
    if or_skip(test, made).is_some() {
        let report = recorded.run("update", &XATTR);
        immutable("-i").expect("run chattr");
        // Making it immutable moved its change time, so it was read.
        assert_eq!((report.code, carriers(&report)["refused"]), (5, 1), "{report:?}");
        assert!(report.stderr.contains("a: what travels with it"), "{}", report.stderr);
        assert_eq!(recorded.update().code, 0);
    }
    // A file system that has no attributes and cannot be written.
    let Some(view) = or_skip(test, FaultyFs::new(tree.root())) else { return };
    let beside = Tree::new();
    let seen_through = Recorded::outside(view.root(), &beside.path("catalog.db"));
    let report = seen_through.run("update", &XATTR);
    assert_eq!((report.code, carriers(&report)["refused"]), (5, 6), "{report:?}");
    let report = seen_through.run("update", &FOLDER);
    assert_eq!((report.code, carriers(&report)["refused"]), (5, 4), "{report:?}");
}

#[test]
fn a_run_that_is_killed_is_finished_by_the_next() {
    let test = "a_run_that_is_killed_is_finished_by_the_next";
    let Some(image) = or_skip(test, Image::new(&EXT4, 64)) else { return };
    let tree = Tree::new_in(image.root());
    for number in 0..3000_u64 {
        tree.write(format!("{:02}/{number}", number % 40), content(30, number));
    }
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    for layout in [XATTR, FOLDER, TREE] {
        for wait in [20, 60, 120] {
            let mut run = Command::new(env!("CARGO_BIN_EXE_fsure"))
                .args(recorded.arguments("update", &layout))
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .spawn()
                .expect("start");
            std::thread::sleep(std::time::Duration::from_millis(wait));
            run.kill().expect("kill");
            run.wait().expect("wait");
            let report = recorded.status();
            assert!(report.code < 2, "{layout:?}: {report:?}");
        }
        let report = recorded.run("update", &layout);
        assert_eq!((report.code, report.told()), (0, vec![]), "{layout:?}: {report:?}");
        let report = recorded.verify();
        assert_eq!(
            (report.code, report.told(), carriers(&report).len()),
            (0, vec![], 0),
            "{layout:?}"
        );
    }
    let left = (0..3000_u64)
        .filter(|n| lremovexattr(tree.path(format!("{:02}/{n}", n % 40)), ATTRIBUTE).is_ok());
    assert_eq!(left.count(), 0, "attributes left");
    assert!(!tree.path("07").join(FILE).exists());
}
