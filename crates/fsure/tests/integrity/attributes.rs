//! Records that travel with the data, in an attribute of each file: set without
//! a trace in any verdict, and good for judging a file that was copied with its
//! attributes. With a file system that has none, and a run that is killed.
#![cfg(target_os = "linux")]

use crate::support;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::layout::*;
use crate::support::{EXT4, FaultyFs, Image, Recorded, Tree, content, or_skip, path_verdicts};
use rustix::fs::{XattrFlags, lgetxattr, lremovexattr, lsetxattr};
use serde_json::json;

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
            (report.code, report.path_verdicts(), carriers(&report).len()),
            (0, vec![], 0),
            "{report:?}"
        );
    }
    // Nor does a comparison read what is as recorded.
    let report = support::fsure_json(&["compare".as_ref(), tree.root(), tree.root()]);
    assert_eq!((report.code, &report.summary()["bytes_read"]), (0, &json!(0)), "{report:?}");
    tree.flip("a", 3);
    let report = recorded.verify();
    assert_eq!(
        (report.code, report.path_verdicts()),
        (3, path_verdicts(&[("a", "altered")])),
        "{report:?}"
    );
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
    // Nothing is read for it afterwards but what had just been written.
    let report = recorded.update();
    let (code, read, _) = seen(&report);
    assert!(code == 0 && read <= 6, "{report:?}");
    let report = recorded.verify();
    assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{report:?}");
}

#[test]
fn what_is_not_as_recorded_gets_no_attribute() {
    let test = "what_is_not_as_recorded_gets_no_attribute";
    let Some((_image, tree, recorded)) = on_ext4(test) else { return };
    tree.flip("a", 3);
    for report in [recorded.run("update", &XATTR), recorded.verify()] {
        assert_eq!(
            (report.code, report.path_verdicts()),
            (3, path_verdicts(&[("a", "altered")])),
            "{report:?}"
        );
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
    assert_eq!(
        (report.code, report.path_verdicts(), report.count("ok")),
        (0, vec![], 3),
        "{report:?}"
    );
    assert_eq!(carriers(&report), counts(&[("used", 3)]).into_iter().collect());
    elsewhere.flip("sub/b", 1_500_000);
    let report = alone.verify();
    assert_eq!(
        (report.code, report.path_verdicts()),
        (3, path_verdicts(&[("b", "damaged-copy")])),
        "{report:?}"
    );
    // Both kinds of carriers, and they disagree.
    elsewhere.flip("sub/b", 1_500_000);
    assert_eq!(recorded.run("update", &FOLDER).code, 0);
    fs::copy(tree.path("sub").join(FILE), elsewhere.path("sub").join(FILE)).expect("copy");
    assert_eq!(alone.verify().code, 0);
    forge(&elsewhere.path("sub").join(FILE), "b");
    let report = alone.verify();
    assert_eq!(
        (report.code, report.path_verdicts()),
        (6, path_verdicts(&[("b", "new")])),
        "{report:?}"
    );
    assert_eq!(alone.update().code, 6);
    assert!(!alone.root.join(".fsure").exists());
    // Damaged.
    fs::remove_file(elsewhere.path("sub").join(FILE)).expect("remove");
    let value = attribute(&elsewhere.path("sub/b"), ATTRIBUTE).expect("a value");
    set(&elsewhere.path("sub/b"), ATTRIBUTE, &value.as_bytes()[1..]).expect("set");
    let report = alone.verify();
    assert_eq!(
        (report.code, report.path_verdicts()),
        (6, path_verdicts(&[("b", "new")])),
        "{report:?}"
    );
}

/// They share the attribute, and each would have its own.
#[test]
fn names_of_one_file_with_different_digests_come_to_rest() {
    let test = "names_of_one_file_with_different_digests_come_to_rest";
    let Some((_image, tree, recorded)) = on_ext4(test) else { return };
    assert_eq!(recorded.run("update", &XATTR).code, 0);
    for (digests, from, name) in [("blake3,sha256", "a", "two"), ("blake3", "sub/b", "sub/two")] {
        let report = recorded.run("update", &["--digest", digests]);
        assert_eq!(report.code, 0, "{report:?}");
        fs::hard_link(tree.path(from), tree.path(name)).expect("link");
    }
    // Each name may be read once for what was written under another one.
    for _ in 0..3 {
        assert_eq!(recorded.update().code, 0);
    }
    assert_eq!(seen(&recorded.update()), (0, 0, vec![]));
    let report = recorded.verify();
    assert_eq!((report.code, carriers(&report).len()), (0, 0), "{report:?}");
}

#[test]
fn an_unwritable_attribute_is_reported() {
    let test = "an_unwritable_attribute_is_reported";
    let Some((_image, tree, recorded)) = on_ext4(test) else { return };
    let immutable = |on: &str| Command::new("chattr").arg(on).arg(tree.path("a")).status();
    let made = immutable("+i").map_err(|error| format!("chattr: {error}"));
    let made = made.and_then(|done| done.success().then_some(()).ok_or("chattr failed".into()));
    if or_skip(test, made).is_some() {
        let report = recorded.run("update", &XATTR);
        immutable("-i").expect("run chattr");
        // Making it immutable moved its change time, so it was read.
        assert_eq!((report.code, carriers(&report)["refused"]), (5, 1), "{report:?}");
        assert!(report.stderr.contains("a: its sidecar"), "{}", report.stderr);
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
        assert_eq!((report.code, report.path_verdicts()), (0, vec![]), "{layout:?}: {report:?}");
        let report = recorded.verify();
        assert_eq!(
            (report.code, report.path_verdicts(), carriers(&report).len()),
            (0, vec![], 0),
            "{layout:?}"
        );
    }
    let left = (0..3000_u64)
        .filter(|n| lremovexattr(tree.path(format!("{:02}/{n}", n % 40)), ATTRIBUTE).is_ok());
    assert_eq!(left.count(), 0, "attributes left");
    assert!(!tree.path("07").join(FILE).exists());
}
