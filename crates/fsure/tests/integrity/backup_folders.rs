//! The folders of the configuration get a copy of a record's backup from each run that
//! changes the record, whatever command it is.
#![cfg(target_os = "linux")]

use std::fs;

use crate::support::signable::make_keys;
use crate::support::{Tree, fsure_of};

#[test]
fn import_export_and_seal_bring_the_copies_in_step() {
    let (tree, own) = (Tree::new(), Tree::new());
    tree.write("photos/a", "a");
    tree.write("photos/b", "");
    let elsewhere = own.path("elsewhere");
    fs::create_dir(&elsewhere).expect("make a folder");
    own.write("home/config/fsure/config.toml", format!("backup = ['{}']\n", elsewhere.display()));
    make_keys(&own, "mine");
    let list = own.write("list", format!("{}  b\n", "0".repeat(128)));
    let root = tree.path("photos");
    let (root, list) = (root.to_str().expect("text"), list.to_str().expect("text"));
    let (key, to) = (own.path("mine.key"), own.path("exported"));
    let (key, to) = (key.to_str().expect("text"), to.to_str().expect("text"));
    let run = |args: &[&str]| fsure_of(&own.path("home"), args);
    let copy = || {
        let names = fs::read_dir(&elsewhere).expect("list");
        let names: Vec<_> = names.map(|name| name.expect("list").path()).collect();
        assert!(names.len() <= 1, "{names:?}");
        names.first().map(|name| fs::read(name).expect("read"))
    };
    let mut before = None;
    for args in [
        &["import", list, "--root", root][..],
        &["update", root],
        &["export", root, "--format", "sha256sums", "-o", to],
        &["seal", root, "--sign", key],
    ] {
        let done = run(args);
        let after = copy();
        assert!(after.is_some() && after != before, "{args:?} changed nothing: {done:?}");
        let own = fs::read(tree.path("photos/.fsure/catalog.db.backup")).expect("read");
        assert!(after == Some(own), "{args:?}: it is behind: {done:?}");
        before = after;
    }
}
