//! The record survives its own bit rot: whatever page of it is lost, `fsure recover`
//! puts it together from its backup, and without one from all rows that still
//! prove themselves. Nothing unproved is ever taken, and what is lacking is said.
#![cfg(target_os = "linux")]

use crate::support;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{Recorded, Report, Row, Tree, content, fsure, fsure_of, is_campaign};

const NONE: [&str; 0] = [];
const PAGE: usize = 4096;
/// Rows that are on one page at most: 32 bytes of digest and as much again.
const ROWS_PER_PAGE_MAX: u64 = 45;

/// Several pages of records, block values, known damage, and a history.
fn tree() -> (Tree, Recorded) {
    let tree = Tree::new();
    for number in 0..300 {
        tree.write(format!("many/file-{number:03}"), content(50 + number, number as u64));
    }
    tree.write("large", content(3 << 20, 1001));
    tree.write("bad", content(3000, 1002));
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    tree.flip("bad", 9);
    assert_eq!(recorded.verify().code, 3);
    tree.write("late", "late");
    assert_eq!(recorded.update().code, 3);
    (tree, recorded)
}

fn backup_of(recorded: &Recorded) -> PathBuf {
    recorded.catalog.with_extension("db.backup")
}

/// Rows without what a verification changes.
fn claims(recorded: &Recorded) -> BTreeMap<Vec<u8>, Row> {
    let mut rows = recorded.rows();
    for row in rows.values_mut() {
        for column in ["verified_s", "hashed_ns", "seal", "blocks", "file_system"] {
            row.remove(column);
        }
    }
    rows
}

/// Removes the catalog and all files beside it, except the lock file.
fn clear(recorded: &Recorded) {
    let folder = recorded.catalog.parent().expect("a folder");
    for name in fs::read_dir(folder).expect("list").map(|entry| entry.expect("list").path()) {
        if !name.ends_with("catalog.db.lock") {
            fs::remove_file(name).expect("remove");
        }
    }
}

fn recover(recorded: &Recorded) -> Report {
    recorded.run("recover", &NONE)
}

/// Returns catalogs that have lost a page: each page in one of three ways, in turn, and in all
/// three in a campaign.
fn damages(whole: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for page in 0..whole.len() / PAGE {
        let range = page * PAGE..(page + 1) * PAGE;
        let mut zeroed = whole.to_vec();
        zeroed[range.clone()].fill(0);
        let mut flipped = whole.to_vec();
        // In its header, and in its content.
        flipped[range.start + 5] ^= 0x40;
        flipped[range.end - 100] ^= 0x04;
        let mut ways = vec![
            (format!("page {page} zeroed"), zeroed),
            (format!("page {page} flipped"), flipped),
            (format!("cut before page {page}"), whole[..range.start].to_vec()),
        ];
        if !is_campaign() {
            ways = vec![ways.swap_remove(page % 3)];
        }
        all.append(&mut ways);
    }
    all
}

#[test]
fn with_its_backup_it_is_whole_whatever_page_is_lost() {
    let (_tree, recorded) = tree();
    let (whole, backup) = (recorded.catalog_bytes(), fs::read(backup_of(&recorded)).expect("read"));
    let before = claims(&recorded);
    for (case, damaged) in damages(&whole) {
        clear(&recorded);
        fs::write(&recorded.catalog, &damaged).expect("damage");
        fs::write(backup_of(&recorded), &backup).expect("put back");
        let report = recover(&recorded);
        let summary = report.summary();
        // A flip may hit what is in no use.
        assert!([0, 5, 7].contains(&report.code), "{case}: {report:?}");
        if report.code == 5 {
            // Nothing is left that says how new the catalog was.
            assert_eq!(summary["is_whole"], false, "{case}: {report:?}");
        }
        assert!(claims(&recorded) == before, "{case}: {report:?}");
        let verify = recorded.verify();
        assert_eq!((verify.code, verify.path_verdicts().len()), (3, 1), "{case}: {verify:?}");
        assert_eq!(recorded.text("log", &NONE).code, 3, "{case}");
    }
}

#[test]
fn without_a_backup_only_the_rows_of_that_page_are_lost() {
    let (_tree, recorded) = tree();
    let whole = recorded.catalog_bytes();
    let before = recorded.rows();
    let (mut saved, mut all, mut worst) = (0, 0, 0);
    for (case, damaged) in damages(&whole) {
        clear(&recorded);
        fs::write(&recorded.catalog, &damaged).expect("damage");
        let report = recover(&recorded);
        if damaged.len() < whole.len() && report.code == 6 {
            assert!(damaged.len() < 6 * PAGE, "{case}: nothing is left: {report:?}");
            assert_eq!(recorded.catalog_bytes(), damaged, "and nothing was changed");
            continue;
        }
        assert!([0, 5, 7].contains(&report.code), "{case}: {report:?}");
        let after = recorded.rows();
        for (path, row) in &after {
            let then = before.get(path).unwrap_or_else(|| panic!("{case}: {path:?} is made up"));
            let same = ["blake3", "size", "mtime_ns", "kind"];
            assert!(same.iter().all(|column| row[*column] == then[*column]), "{case}: {path:?}");
        }
        let lost = (before.len() - after.len()) as u64;
        if damaged.len() == whole.len() {
            assert!(lost <= ROWS_PER_PAGE_MAX, "{case}: {lost} rows are lost");
            worst = worst.max(lost);
            saved += after.len();
            all += before.len();
        }
        let is_whole = report.summary()["is_whole"] == true;
        assert!(report.code != 7 || (is_whole && lost == 0), "{case}: {report:?}");
        // What is lacking is new, and nothing else is wrong.
        let verify = recorded.verify();
        let reported = verify.path_verdicts();
        let new = reported.iter().filter(|(_, verdict)| verdict == "new").count() as u64;
        assert_eq!(new, lost, "{case}: {report:?} {verify:?}");
        // Without the row of the file system the root is judged as a copy.
        let counted = ["ok", "new", "altered", "damaged-copy"].map(|verdict| verify.count(verdict));
        assert_eq!(counted.iter().sum::<u64>(), 303, "{case}: {verify:?}");
    }
    assert!(saved * 100 > all * 96, "{saved} of {all} rows saved, at worst {worst} lost");
}

/// A run that was killed between its commit and its backup has commits that the backup
/// lacks.
#[test]
fn a_backup_that_is_behind_is_brought_together_with_what_is_sound() {
    let (tree, recorded) = tree();
    let old_backup = fs::read(backup_of(&recorded)).expect("read");
    tree.write("newer", "newer");
    tree.write("many/file-007", "another content");
    assert_eq!(recorded.update().code, 3);
    fs::write(backup_of(&recorded), &old_backup).expect("put back");
    let before = claims(&recorded);
    let mut whole = recorded.catalog_bytes();
    // A page in the middle, of rows that both have.
    let page = whole.windows(12).position(|bytes| bytes == b"many/file-15").expect("a row") / PAGE;
    whole[page * PAGE..(page + 1) * PAGE].fill(0);
    fs::write(&recorded.catalog, &whole).expect("damage");
    let report = recover(&recorded);
    assert_eq!(report.summary()["has_current_backup"], false, "{report:?}");
    assert!(claims(&recorded) == before, "{report:?}");
}

#[test]
fn a_damaged_backup_gives_what_is_sound_of_it() {
    let (_tree, recorded) = tree();
    let before = claims(&recorded);
    let mut backup = fs::read(backup_of(&recorded)).expect("read");
    let middle = backup.len() / 2;
    backup[middle] ^= 1;
    fs::write(backup_of(&recorded), &backup).expect("damage");
    let mut whole = recorded.catalog_bytes();
    let page = whole.windows(12).position(|bytes| bytes == b"many/file-15").expect("a row") / PAGE;
    whole[page * PAGE..(page + 1) * PAGE].fill(0);
    fs::write(&recorded.catalog, &whole).expect("damage");
    let report = recover(&recorded);
    assert_eq!(report.code, 5, "{report:?}");
    let after = claims(&recorded);
    assert!(after.iter().all(|(path, row)| before.get(path) == Some(row)), "nothing made up");
    let lost = before.len() - after.len();
    assert!(lost as u64 <= ROWS_PER_PAGE_MAX, "{lost}");
}

/// A transaction that was cut off is taken back from its journal.
#[test]
fn a_hot_journal_counts() {
    let (tree, recorded) = tree();
    let before = claims(&recorded);
    let whole = recorded.catalog_bytes();
    // A journal as SQLite leaves it when it is killed between two writes.
    let script = "
import os, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute('PRAGMA cache_size = 2')
db.execute('BEGIN IMMEDIATE')
db.execute('UPDATE record SET hashed_ns = 1, size = size + 7')
db.execute('DELETE FROM block')
os._exit(0)
";
    let status = Command::new("python3").args(["-c", script]).arg(&recorded.catalog).status();
    assert!(status.expect("run python3").success());
    let journal = recorded.catalog.with_extension("db-journal");
    assert!(journal.exists() && recorded.catalog_bytes() != whole, "there is something to undo");
    let mut damaged = recorded.catalog_bytes();
    damaged[..100].fill(0);
    fs::write(&recorded.catalog, &damaged).expect("damage");
    fs::remove_file(backup_of(&recorded)).expect("remove");
    let report = recover(&recorded);
    assert!([5, 7].contains(&report.code), "{report:?}");
    assert!(claims(&recorded) == before, "{report:?}");
    assert!(!journal.exists(), "it would be carried out in the new record");
    drop(tree);
}

#[test]
fn every_run_that_changes_it_keeps_it_and_costs_what_it_changes() {
    let (tree, recorded) = tree();
    let length = || fs::metadata(backup_of(&recorded)).expect("a backup").len();
    let first = length();
    assert_eq!(recorded.status().code, 3);
    assert_eq!(length(), first, "nothing was written");
    tree.write("another", "another");
    assert_eq!(recorded.update().code, 3);
    assert!((1..2_000).contains(&(length() - first)), "{} bytes for one file", length() - first);
    // It stays as small as the record is large.
    for number in 0..40 {
        for file in 0..300 {
            tree.write(
                format!("many/file-{file:03}"),
                content(50 + file, 1000 * number + file as u64),
            );
        }
        assert_eq!(recorded.update().code, 3);
    }
    let most = 3 * first + (3 << 20);
    assert!(length() < most, "{} of at most {most}", length());
    fs::remove_file(&recorded.catalog).expect("remove");
    let report = recover(&recorded);
    assert_eq!(report.code, 5, "nothing says how new it was: {report:?}");
    let verify = recorded.verify();
    assert_eq!((verify.code, verify.path_verdicts().len()), (3, 1), "{verify:?}");
}

/// A run that is killed at any moment leaves a backup that fits, or one that the
/// next run renews.
#[test]
fn kills_leave_a_backup_that_can_be_used() {
    let tree = Tree::new();
    for number in 0..2_000 {
        tree.write(format!("{:02}/{number}", number % 50), content(3000, number));
    }
    let recorded = Recorded::inside(tree.root());
    for kill_ms in [30, 120, 400, 900, 1500, 2500] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fsure"));
        command.args(["update", "--rate", "2MiB", "--quiet"]).arg(tree.root());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("start");
        std::thread::sleep(Duration::from_millis(kill_ms));
        child.kill().expect("kill");
        child.wait().expect("wait");
    }
    assert_eq!(recorded.update().code, 0);
    let before = claims(&recorded);
    let mut damaged = recorded.catalog_bytes();
    for page in (3..damaged.len() / PAGE).step_by(2) {
        damaged[page * PAGE..(page + 1) * PAGE].fill(0);
    }
    fs::write(&recorded.catalog, damaged).expect("damage");
    let report = recover(&recorded);
    assert!([5, 7].contains(&report.code), "{report:?}");
    assert!(claims(&recorded) == before, "{report:?}");
    assert_eq!(recorded.verify().code, 0);
}

#[test]
fn a_copy_elsewhere_is_kept_if_the_user_asks_for_it() {
    let (tree, own) = (Tree::new(), Tree::new());
    tree.write("photos/a", "a");
    let elsewhere = own.path("elsewhere");
    fs::create_dir(&elsewhere).expect("make a folder");
    own.write("home/config/fsure/config.toml", format!("backup = ['{}']\n", elsewhere.display()));
    let home = own.path("home");
    let run = |command: &str, more: &[&str]| {
        let root = tree.path("photos");
        let args = [&[command, root.to_str().expect("text")], more].concat();
        fsure_of(&home, &args)
    };
    assert_eq!(run("update", &[]).code, 0);
    let names = || -> Vec<PathBuf> {
        fs::read_dir(&elsewhere).expect("list").map(|name| name.expect("list").path()).collect()
    };
    let [copy] = &names()[..] else { panic!("{:?}", names()) };
    assert!(copy.file_name().expect("a name").to_string_lossy().starts_with("photos-"));
    for name in ["b", "c"] {
        tree.write(format!("photos/{name}"), name);
        assert_eq!(run("update", &[]).code, 0);
        assert!(
            fs::read(copy).expect("read")
                == fs::read(tree.path("photos/.fsure/catalog.db.backup")).expect("read")
        );
    }
    assert_eq!(names().len(), 1);
    fs::remove_dir_all(tree.path("photos/.fsure")).expect("remove");
    fs::create_dir(tree.path("photos/.fsure")).expect("make a folder");
    let catalog = tree.path("photos/.fsure/catalog.db");
    let more =
        ["--catalog", catalog.to_str().expect("text"), "--from", copy.to_str().expect("text")];
    let recovered = run("recover", &more);
    assert_eq!(recovered.code, 5, "{}{}", recovered.stdout, recovered.stderr);
    let verify = run("verify", &[]);
    assert_eq!(verify.code, 0, "{}{}", verify.stdout, verify.stderr);
    assert!(verify.stdout.contains("All 3 files are as recorded."), "{}", verify.stdout);
}

#[test]
fn what_travels_with_the_data_helps_where_nothing_else_does() {
    let tree = Tree::new();
    for name in ["a", "b", "c"] {
        tree.write(format!("sub/{name}"), content(500, 3));
    }
    let recorded = Recorded::inside(tree.root());
    std::thread::sleep(Duration::from_millis(60));
    assert_eq!(recorded.run("update", &["--layout", "folder"]).code, 0);
    fs::remove_file(backup_of(&recorded)).expect("remove");
    let mut whole = recorded.catalog_bytes();
    let page = whole.windows(5).position(|bytes| bytes == b"sub/a").expect("a row") / PAGE;
    whole[page * PAGE..(page + 1) * PAGE].fill(0);
    fs::write(&recorded.catalog, whole).expect("damage");
    let report = recover(&recorded);
    assert_eq!((report.code, &report.summary()["from_sidecars"]), (5, &3.into()), "{report:?}");
    let verify = recorded.verify();
    assert_eq!(verify.count("ok"), 3, "{verify:?}");
}

#[test]
fn a_sound_record_is_left_alone_and_a_dry_run_changes_nothing() {
    let (tree, recorded) = tree();
    let whole = recorded.catalog_bytes();
    let text = recorded.text("recover", &NONE);
    assert_eq!((text.code, recorded.catalog_bytes() == whole), (0, true), "{}", text.stdout);
    assert!(text.stdout.contains("there is nothing to do"), "{}", text.stdout);
    let mut damaged = whole;
    damaged[..PAGE].fill(0);
    fs::write(&recorded.catalog, &damaged).expect("damage");
    let names = || {
        let folder = recorded.catalog.parent().expect("a folder");
        let mut names: Vec<_> = fs::read_dir(folder)
            .expect("list")
            .map(|name| name.expect("list").file_name())
            .collect();
        names.sort();
        names
    };
    let before = names();
    let dry = recorded.run("recover", &["--dry-run"]);
    assert_eq!((dry.code, dry.summary()["rows"].clone()), (6, 304.into()), "{dry:?}");
    assert!(recorded.catalog_bytes() == damaged && names() == before);
    // Whatever it is that cannot be read: the file is kept.
    let report = recover(&recorded);
    assert_eq!(report.code, 7, "{report:?}");
    let kept = report.summary()["kept_as"].as_str().expect("kept").to_owned();
    assert!(fs::read(kept).expect("read") == damaged);
    drop(tree);
}

#[test]
fn nothing_is_followed_to_a_backup_or_from_it() {
    let (tree, recorded) = tree();
    let outside = Tree::new();
    outside.write("target", "as it was");
    let backup = backup_of(&recorded);
    fs::remove_file(&backup).expect("remove");
    std::os::unix::fs::symlink(outside.path("target"), &backup).expect("make a link");
    tree.write("newer", "newer");
    let update = recorded.update();
    assert_eq!(update.code, 2, "{update:?}");
    assert_eq!(outside.read("target"), b"as it was", "{update:?}");
    let mut damaged = recorded.catalog_bytes();
    damaged[..PAGE].fill(0);
    fs::write(&recorded.catalog, &damaged).expect("damage");
    let report = recover(&recorded);
    assert_eq!(report.code, 2, "{report:?}");
    assert_eq!(outside.read("target"), b"as it was", "{report:?}");
    // A FIFO is not waited for.
    let _ = fs::remove_file(&backup);
    assert!(Command::new("mkfifo").arg(&backup).status().expect("run mkfifo").success());
    for report in [recover(&recorded), recorded.update()] {
        assert_eq!(report.code, 2, "{report:?}");
        assert!(format!("{report:?}").contains("is a FIFO"), "{report:?}");
    }
    fs::remove_file(&backup).expect("remove");
    assert_eq!(recover(&recorded).code, 7);
}

#[test]
fn of_nothing_nothing_is_made() {
    let tree = Tree::new();
    tree.write("a", "a");
    let run = fsure(&["recover".as_ref(), tree.root().as_os_str()]);
    assert_ne!(run.code, 0, "{}", run.stdout);
    assert!(!tree.path(".fsure").exists(), "{}", run.stderr);
    fs::create_dir(tree.path(".fsure")).expect("make a folder");
    fs::write(tree.path(".fsure/catalog.db"), vec![7; 20_000]).expect("write");
    let before = fs::read(tree.path(".fsure/catalog.db")).expect("read");
    let run = fsure(&["recover".as_ref(), tree.root().as_os_str()]);
    assert_eq!(run.code, 6, "{}{}", run.stdout, run.stderr);
    assert!(fs::read(tree.path(".fsure/catalog.db")).expect("read") == before);
}

/// Fills with zeros the page of the catalog in which these bytes are, the last of them.
fn lose_page(recorded: &Recorded, with: &[u8]) {
    let mut bytes = recorded.catalog_bytes();
    let found = bytes.windows(with.len()).rposition(|bytes| bytes == with);
    let page = found.unwrap_or_else(|| panic!("no {with:?}")) / PAGE;
    bytes[page * PAGE..(page + 1) * PAGE].fill(0);
    fs::write(&recorded.catalog, bytes).expect("damage");
}

/// A small tree that is recorded.
fn small(files: usize) -> (Tree, Recorded) {
    let tree = Tree::new();
    for number in 0..files {
        tree.write(format!("many/file-{number:03}"), content(50, number as u64));
    }
    let recorded = Recorded::inside(tree.root());
    recorded.record();
    (tree, recorded)
}

/// Commits that a backup does not get count as well: it is never taken for current.
#[test]
fn a_backup_that_could_not_be_written_is_not_current() {
    let (tree, recorded) = small(50);
    let backup = backup_of(&recorded);
    let immutable = |flag: &str| Command::new("chattr").arg(flag).arg(&backup).status();
    if !immutable("+i").is_ok_and(|status| status.success()) {
        support::skip("a_backup_that_could_not_be_written", "chattr +i is refused here");
        return;
    }
    for number in 50..300 {
        tree.write(format!("many/file-{number:03}"), content(50, number));
    }
    let update = recorded.text("update", &NONE);
    assert!(immutable("-i").expect("run chattr").success());
    assert_eq!(update.code, 0, "{update:?}");
    assert!(update.stderr.contains("could not be written"), "{update:?}");
    let before = claims(&recorded);
    lose_page(&recorded, b"many/file-020");
    let report = recover(&recorded);
    assert_eq!((report.code, &report.summary()["is_whole"]), (5, &false.into()), "{report:?}");
    assert!(claims(&recorded).len() > 250, "{report:?}");
    let after = claims(&recorded);
    assert!(after.iter().all(|(path, row)| before.get(path) == Some(row)), "{report:?}");
}

/// Both copies of a tree count on from the same commit.
#[test]
fn the_backup_of_a_copy_is_not_current() {
    let (tree, recorded) = small(20);
    let other = Tree::new();
    let copied = Command::new("cp").arg("-a").arg(tree.root()).arg(other.path("copy")).status();
    assert!(copied.expect("run cp").success());
    let copy = Recorded::inside(&other.path("copy"));
    tree.write("own", "own");
    other.write("copy/another", "another");
    assert_eq!((recorded.update().code, copy.update().code), (0, 0));
    fs::remove_file(backup_of(&recorded)).expect("remove");
    lose_page(&recorded, b"many/file-007");
    let from = backup_of(&copy);
    let report = recorded.run("recover", &["--from", from.to_str().expect("text")]);
    assert_eq!((report.code, &report.summary()["is_whole"]), (5, &false.into()), "{report:?}");
}

/// A catalog that is gone while its backup is there is a damaged record, and no folder
/// that was never recorded.
#[test]
fn a_catalog_that_is_gone_is_not_begun_anew() {
    let tree = Tree::new();
    tree.write("a", "a");
    tree.write("inner/b", "b");
    let (outer, inner) = (Recorded::inside(tree.root()), Recorded::inside(&tree.path("inner")));
    inner.record();
    outer.record();
    for recorded in [&inner, &outer] {
        let backup = fs::read(backup_of(recorded)).expect("read");
        fs::remove_file(&recorded.catalog).expect("remove");
        for command in ["verify", "status", "update", "scrub", "log"] {
            let run = recorded.text(command, &NONE);
            assert_eq!(run.code, 6, "{command}: {run:?}");
            assert!(run.stderr.contains("fsure recover"), "{command}: {run:?}");
        }
        let update = recorded.text("update", &["--new"]);
        assert_eq!(update.code, 6, "{update:?}");
        assert!(!recorded.catalog.exists());
        assert!(fs::read(backup_of(recorded)).expect("read") == backup);
        if recorded.catalog == inner.catalog {
            let report = outer.text("update", &NONE);
            assert_eq!(report.code, 6, "a root of its own is left to its record: {report:?}");
            let rows: Vec<_> = outer.rows().into_keys().collect();
            assert_eq!(rows, [b"a".to_vec(), b"inner".to_vec()]);
        }
        assert_eq!(recover(recorded).code, 5);
        assert_eq!(recorded.verify().code, 0);
    }
}

/// A damaged table other than that of the files is lost as well, and is reported.
#[test]
fn a_table_that_is_lost_is_named() {
    for (table, options) in [("finding", &[][..]), ("choice", &["--meta", "mode"]), ("nested", &[])]
    {
        let tree = Tree::new();
        tree.write("many/file-003", content(50, 3));
        tree.write("inner/b", "b");
        Recorded::inside(&tree.path("inner")).record();
        let recorded = Recorded::inside(tree.root());
        recorded.record();
        recorded.age_records();
        assert_eq!(recorded.run("update", options).code, 0);
        tree.flip("many/file-003", 9);
        assert_eq!(recorded.verify().code, 3);
        fs::remove_file(backup_of(&recorded)).expect("remove");
        let page: i64 = recorded
            .connect()
            .query_row("SELECT rootpage FROM sqlite_master WHERE name = ?1", [table], |row| {
                row.get(0)
            })
            .expect("a page");
        let mut bytes = recorded.catalog_bytes();
        let start = (page as usize - 1) * PAGE;
        bytes[start..start + PAGE].fill(0);
        fs::write(&recorded.catalog, bytes).expect("damage");
        let report = recover(&recorded);
        let summary = report.summary();
        assert_eq!(
            (report.code, &summary["is_whole"], &summary["lost_tables"]),
            (5, &false.into(), &serde_json::json!([table])),
            "{table}: {report:?}"
        );
    }
}

/// A backup that begins with an emptied record is a copy of all of it.
#[test]
fn a_backup_of_an_emptied_record_is_whole() {
    let (tree, recorded) = small(1);
    assert_eq!(recorded.run("update", &["--meta", "mode"]).code, 0);
    fs::remove_dir_all(tree.path("many")).expect("remove");
    assert_eq!(recorded.run("update", &["--force"]).code, 0);
    assert_eq!(recorded.run("update", &["--force", "--forget", "0"]).code, 0);
    assert_eq!(recorded.rows().len(), 0);
    tree.write("later", "later");
    assert_eq!(recorded.update().code, 0);
    fs::remove_file(&recorded.catalog).expect("remove");
    assert_eq!(recover(&recorded).code, 5);
    let choices: i64 = recorded
        .connect()
        .query_row("SELECT count(*) FROM choice", [], |row| row.get(0))
        .expect("count");
    assert!(choices > 0, "what 'update' was asked to record is kept");
}

#[test]
fn a_record_of_a_later_version_is_left_alone() {
    let (_tree, recorded) = small(2);
    recorded.edit("PRAGMA user_version = 5; CREATE TABLE later (a)");
    let before = recorded.catalog_bytes();
    for command in ["verify", "update", "recover"] {
        let run = recorded.text(command, &NONE);
        assert_eq!(run.code, 6, "{command}: {run:?}");
        assert!(run.stderr.contains("a later version of fsure"), "{command}: {run:?}");
        assert!(recorded.catalog_bytes() == before, "{command}");
    }
}

/// Killed at each of its renames, a second run has all that the first one had.
#[test]
fn a_recover_that_is_killed_is_gone_on_with() {
    if Command::new("strace").arg("-V").output().is_err() {
        support::skip("a_recover_that_is_killed_is_gone_on_with", "no strace");
        return;
    }
    for has_backup in [true, false] {
        let mut kills = 0;
        for rename in 1..12 {
            let (_tree, recorded) = small(200);
            let before = claims(&recorded);
            lose_page(&recorded, b"many/file-033");
            if !has_backup {
                fs::remove_file(backup_of(&recorded)).expect("remove");
            }
            let inject = format!("inject=rename,renameat,renameat2:signal=KILL:when={rename}");
            let mut command = Command::new("strace");
            command.args(["-f", "-qq", "-o", "/dev/null", "-e", &inject]);
            command.arg(env!("CARGO_BIN_EXE_fsure")).args(recorded.arguments("recover", &NONE));
            let killed = command.output().expect("run strace");
            if killed.status.code().is_some_and(|code| code < 64) {
                break;
            }
            kills += 1;
            let report = recover(&recorded);
            assert!([0, 5, 7].contains(&report.code), "{rename}: {report:?}");
            let rows = claims(&recorded);
            assert!(rows.iter().all(|(path, row)| before.get(path) == Some(row)));
            let lost = (before.len() - rows.len()) as u64;
            assert!(lost == 0 || (!has_backup && lost <= ROWS_PER_PAGE_MAX), "{rename}: {lost}");
            // The row of their folder may be in the page, too.
            let is_file = |row: &&Row| row["kind"] == rusqlite::types::Value::Integer(0);
            let files = |rows: &BTreeMap<_, Row>| rows.values().filter(is_file).count() as u64;
            let verify = recorded.verify();
            assert_eq!(verify.count("new"), files(&before) - files(&rows), "{rename}: {verify:?}");
        }
        assert!(kills >= 3, "{kills}");
    }
}

/// The counts of an update that was interrupted are needed to judge the rest of the tree.
#[test]
fn what_an_interrupted_update_has_counted_is_kept() {
    let (_tree, recorded) = small(5);
    let connection = recorded.connect();
    support::forger::forge(&connection, "INSERT INTO redated VALUES (X'6d616e79', 20)");
    drop(connection);
    fs::remove_file(backup_of(&recorded)).expect("remove");
    let mut bytes = recorded.catalog_bytes();
    bytes[..100].fill(0);
    fs::write(&recorded.catalog, bytes).expect("damage");
    assert_eq!(recover(&recorded).code, 7);
    let files: i64 = recorded
        .connect()
        .query_row("SELECT files FROM redated WHERE scope = X'6d616e79'", [], |row| row.get(0))
        .expect("the row");
    assert_eq!(files, 20);
}

#[test]
fn a_file_that_was_never_a_record_is_left_alone() {
    let tree = Tree::new();
    tree.write("w/a", "a");
    tree.write("photo.jpg", content(50_000, 7));
    let (photo, root) = (tree.path("photo.jpg"), tree.path("w"));
    let carried = Recorded::inside(&root);
    assert_eq!(carried.run("update", &["--new", "--layout", "folder"]).code, 0);
    let run =
        fsure(&["recover".as_ref(), "--catalog".as_ref(), photo.as_os_str(), root.as_os_str()]);
    assert_eq!(run.code, 6, "{run:?}");
    assert!(tree.read("photo.jpg") == content(50_000, 7), "{run:?}");
    assert!(!tree.path("photo.jpg.damaged-1").exists());
}

/// The files that `recover` keeps beside a catalog in the tree are not new files of the
/// tree.
#[test]
fn what_is_kept_is_not_recorded() {
    let tree = Tree::new();
    tree.write("a", "a");
    let recorded = Recorded::outside(tree.root(), &tree.path("record.db"));
    recorded.record();
    let mut bytes = recorded.catalog_bytes();
    bytes[..100].fill(0);
    fs::write(&recorded.catalog, bytes).expect("damage");
    assert_eq!(recover(&recorded).code, 7);
    assert!(tree.path("record.db.damaged-1").exists());
    let verify = recorded.verify();
    assert_eq!((verify.code, verify.path_verdicts()), (0, vec![]), "{verify:?}");
}
