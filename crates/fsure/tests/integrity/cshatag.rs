//! The attributes that cshatag gives to files, taken for a list: what they say
//! is judged as cshatag would, recorded like a list with dates, and never
//! followed through a link.
#![cfg(target_os = "linux")]

use std::path::Path;

use crate::support::{Recorded, Report, Tree, fsure, fsure_json, path_verdicts, skip};
use rusqlite::types::Value;
use rustix::fs::XattrFlags;

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Gives a file what cshatag would give it now; `false` where files have no
/// attributes.
fn tag(tree: &Tree, path: &str) -> bool {
    let ns = tree.mtime(path);
    let date = format!("{:010}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    set(&tree.path(path), "sha256", &sha256(&tree.read(path))) && set(&tree.path(path), "ts", &date)
}

fn set(path: &Path, name: &str, value: &str) -> bool {
    let name = format!("user.shatag.{name}");
    rustix::fs::setxattr(path, name, value.as_bytes(), XattrFlags::empty()).is_ok()
}

/// `a`, `sub/b` and `c` with attributes, `new` without.
fn sample(test: &str) -> Option<Tree> {
    let tree = Tree::new();
    for (path, bytes) in [("a", "one"), ("sub/b", "two"), ("c", "three"), ("new", "new")] {
        tree.write(path, bytes);
        tree.age(path);
        if path != "new" && !tag(&tree, path) {
            skip(test, "files have no attributes here");
            return None;
        }
    }
    Some(tree)
}

fn against(tree: &Tree) -> Report {
    let root = tree.root().as_os_str();
    let args = ["verify".as_ref(), root, "--against".as_ref(), root];
    fsure_json(&[&args[..], &["--format".as_ref(), "cshatag".as_ref()]].concat())
}

fn import(tree: &Tree) -> Report {
    let args = ["import".as_ref(), tree.root().as_os_str(), "--format".as_ref()];
    fsure_json(&[&args[..], &["cshatag".as_ref()]].concat())
}

#[test]
fn an_edit_is_an_edit_and_rot_is_damage() {
    let Some(tree) = sample("an_edit_is_an_edit") else { return };
    let report = against(&tree);
    assert_eq!(
        (report.code, report.path_verdicts()),
        (1, path_verdicts(&[("new", "new")])),
        "{report:?}"
    );
    tree.flip("a", 1);
    tree.write("c", "three, edited");
    let report = against(&tree);
    let expected = path_verdicts(&[("a", "damaged-copy"), ("c", "modified"), ("new", "new")]);
    assert_eq!((report.code, report.path_verdicts()), (3, expected), "{report:?}");
    assert!(!tree.path(".fsure").exists(), "it wrote");
}

#[test]
fn they_are_recorded_with_their_dates() {
    let Some(tree) = sample("they_are_recorded") else { return };
    tree.write("c", "three, edited");
    let report = import(&tree);
    assert_eq!((report.code, &report.summary()["recorded"]), (0, &3.into()), "{report:?}");
    let recorded = Recorded::inside(tree.root());
    let row = recorded.row("sub/b");
    assert_eq!(row["mtime_ns"], Value::Integer(tree.mtime("sub/b")));
    assert_eq!(row["verified_s"], Value::Integer(0));
    assert!(matches!(row["sha256"], Value::Blob(_)), "{row:?}");
    tree.flip("sub/b", 0);
    let report = recorded.verify();
    let expected = path_verdicts(&[("c", "modified"), ("new", "new"), ("sub/b", "damaged-copy")]);
    assert_eq!((report.code, report.path_verdicts()), (3, expected), "{report:?}");
    // A part of a root, by the names it has there.
    assert!(tag(&tree, "new"));
    let part = tree.path("sub");
    let part =
        fsure_json(&["import".as_ref(), part.as_os_str(), "--format".as_ref(), "cshatag".as_ref()]);
    assert_eq!((part.code, &part.summary()["known"]), (0, &1.into()), "{part:?}");
}

#[test]
fn a_bad_attribute_is_reported_and_no_link_is_followed() {
    let Some(tree) = sample("a_bad_attribute_is_reported") else { return };
    let outside = Tree::new();
    outside.write("far/x", "x");
    assert!(tag(&outside, "far/x"));
    std::os::unix::fs::symlink(outside.path("far"), tree.path("folder")).expect("link");
    std::os::unix::fs::symlink(outside.path("far/x"), tree.path("link")).expect("link");
    set(&tree.path("a"), "sha256", "nonsense");
    set(&tree.path("c"), "ts", "yesterday");
    let report = import(&tree);
    assert_eq!((report.code, &report.summary()["recorded"]), (6, &1.into()), "{report:?}");
    for reason in [
        "a: in its attributes: not a sha256 digest of 64 hexadecimal digits",
        "c: in its attributes: its date is not valid",
    ] {
        assert!(report.stderr.contains(reason), "{}", report.stderr);
    }
    let paths: Vec<_> = Recorded::inside(tree.root()).rows().into_keys().collect();
    assert_eq!(paths, [&b"sub"[..], b"sub/b"]);
    let file = tree.path("a");
    let run =
        fsure(&["import".as_ref(), file.as_os_str(), "--format".as_ref(), "cshatag".as_ref()]);
    assert_eq!(run.code, 2, "{}", run.stderr);
}
