//! Slips with links, lists and mounts that must not pass for a good result: what was not read is
//! said, and a list of another folder is not recorded.
#![cfg(target_os = "linux")]

use std::fs;

use super::next_steps::{another_user, commands, photos, type_it};
use crate::support::{EXT4, Image, or_skip, typed};

#[test]
fn a_list_of_another_folder_is_recorded_in_none() {
    let tree = photos();
    typed(
        tree.root(),
        "cd photos && sha256sum *.raw > ../SUMS; mkdir ../empty ../other; touch ../other/x",
    );
    for folder in ["empty", "other"] {
        let run = typed(tree.root(), &format!("cd {folder} && fsure import - < ../SUMS"));
        assert_eq!(run.code, 2, "{folder}: {run:?}");
        assert!(run.stderr.contains("nothing was recorded"), "{folder}: {run:?}");
        assert!(!tree.path(folder).join(".fsure").exists(), "{folder}");
    }
    // Below a recorded folder, a typo would put files into its record that never were there.
    typed(tree.root(), "fsure update photos");
    let before = fs::read(tree.path("photos/.fsure/catalog.db")).expect("read");
    let run = typed(tree.root(), "fsure import SUMS --root photos/2062");
    assert_eq!(run.code, 2, "{run:?}");
    let is_named = run.stderr.contains("there is no folder") && run.stderr.contains("photos/2062");
    assert!(is_named, "{run:?}");
    assert!(fs::read(tree.path("photos/.fsure/catalog.db")).expect("read") == before);
}

#[test]
fn a_list_of_lost_files_is_recorded_if_that_is_asked_for_and_verified_as_printed() {
    let tree = photos();
    typed(
        tree.root(),
        "cd photos && sha256sum *.raw > ../SUMS; mkdir ../empty ../other; touch ../other/x",
    );
    for folder in ["empty", "other"] {
        let line = format!("fsure import SUMS --root {folder} --allow-missing");
        let run = typed(tree.root(), &line);
        assert!(run.stdout.contains("2 files of them missing"), "{folder}: {run:?}");
        let verified = type_it(&tree, &run);
        assert_eq!((run.code, verified.code), (0, 1), "{folder}: {verified:?}");
        assert!(verified.stdout.contains("missing      2 files"), "{folder}: {verified:?}");
    }
}

#[test]
fn a_link_in_a_recorded_folder_leads_to_the_file_that_can_be_verified() {
    let tree = photos();
    typed(tree.root(), "cd photos; ln -s a.raw la; ln -s nowhere dang; ln -s /etc/passwd out");
    typed(tree.root(), "fsure update photos");
    let run = typed(tree.root(), "fsure verify photos/la");
    assert!(run.stdout.contains("NO FILE WAS READ"), "{run:?}");
    assert_eq!(commands(&run), ["fsure verify photos/a.raw"], "{run:?}");
    assert!(type_it(&tree, &run).stdout.contains("1 file is as recorded."), "{run:?}");
    let run = typed(tree.root(), "fsure verify photos/dang");
    assert!(run.stdout.contains("photos/nowhere, which is not there"), "{run:?}");
    let run = typed(tree.root(), "fsure verify photos/out");
    assert!(run.stdout.contains("out of the recorded folder, to /etc/passwd"), "{run:?}");
}

#[test]
fn a_dry_run_over_a_read_only_disk_judges_the_files() {
    let image = Image::new(&EXT4, 64);
    let test = "a_dry_run_over_a_read_only_disk_judges_the_files";
    let Some(image) = or_skip(test, image) else { return };
    let root = image.root();
    fs::write(root.join("file"), "content").expect("write");
    typed(root, "fsure update .");
    assert_eq!(typed(root, "mount -o remount,ro .").code, 0);
    for command in ["verify", "scrub"] {
        let run = typed(root, &format!("fsure {command} -n ."));
        assert_eq!(run.code, 0, "{run:?}");
        assert!(run.stderr.contains("would not be saved without -n"), "{run:?}");
    }
    // What would write refuses, as the run itself does.
    assert_eq!(typed(root, "fsure update -n .").code, 5);
    assert_eq!(typed(root, "mount -o remount,rw .").code, 0);
}

#[test]
fn root_is_not_advised_to_be_root() {
    let tree = photos();
    let test = "root_is_not_advised_to_be_root";
    typed(tree.root(), "chmod -R a+rX .; mkdir -m 777 mnt");
    let Some(user) = or_skip(test, another_user(&tree)) else { return };
    let mounted = typed(tree.root(), &format!("{user} bindfs --no-allow-other photos mnt"));
    if mounted.code != 0 {
        crate::support::skip(test, &mounted.stderr);
        return;
    }
    let run = typed(tree.root(), "fsure verify mnt");
    typed(tree.root(), "umount mnt");
    assert!(run.stderr.contains("FUSE mount of another user"), "{run:?}");
    assert!(!run.stderr.contains("sudo"), "{run:?}");
}

#[test]
fn a_comparison_with_a_link_to_the_same_folder_reads_it_once() {
    let tree = photos();
    typed(tree.root(), "fsure update photos; ln -s photos link");
    let run = typed(tree.root(), "fsure compare photos link");
    assert_eq!(commands(&run), ["fsure verify photos"], "{run:?}");
}

#[test]
fn a_pattern_that_leaves_out_nothing_is_said_to() {
    let tree = photos();
    let said = "left out nothing: a pattern has to be in quotes";
    let run = typed(tree.root(), "touch a.tmp; fsure update photos --exclude *.tmp");
    assert!(run.stderr.contains(said), "{run:?}");
    let run = typed(tree.root(), "touch photos/b.tmp; fsure update photos --exclude '*.tmp'");
    assert!(!run.stderr.contains(said), "{run:?}");
}

#[test]
fn the_folder_that_holds_a_record_is_answered_with_the_file_in_it() {
    let tree = photos();
    typed(tree.root(), "mkdir records; fsure update photos --catalog records/catalog.db");
    let run = typed(tree.root(), "fsure verify photos --catalog records");
    assert_eq!(run.code, 2, "{run:?}");
    let (_, option) = run.stderr.split_once("in that folder: ").expect("an option");
    let again = typed(tree.root(), &format!("fsure verify photos {}", option.trim()));
    assert_eq!(again.code, 0, "{again:?}");
}
