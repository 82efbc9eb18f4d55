//! A dry run writes nothing: no byte and no date of the tree, of the record, of the files beside
//! it or of the user's own folders. It says what the run says that follows it, and is refused as
//! that is.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::support::signable::{Signable, make_keys};
use crate::support::{Recorded, Report, Run, Tree, content, fsure_of};
use serde_json::Value;

/// The facts of a name that a write would change.
#[derive(Debug, PartialEq, Eq)]
struct Facts {
    content: Vec<u8>,
    modified: (i64, i64),
    changed: (i64, i64),
    mode: u32,
    inode: u64,
}

/// Everything in some folders, and the folders themselves.
fn facts(folders: &[&Path]) -> BTreeMap<PathBuf, Facts> {
    let mut all = BTreeMap::new();
    let mut left: Vec<PathBuf> = folders.iter().map(|folder| folder.to_path_buf()).collect();
    while let Some(path) = left.pop() {
        let stat = fs::symlink_metadata(&path).expect("stat");
        let mut content = Vec::new();
        if stat.is_dir() {
            left.extend(fs::read_dir(&path).expect("list").map(|entry| entry.expect("it").path()));
        } else if stat.is_file() {
            content = fs::read(&path).expect("read");
        }
        let facts = Facts {
            content,
            modified: (stat.mtime(), stat.mtime_nsec()),
            changed: (stat.ctime(), stat.ctime_nsec()),
            mode: stat.mode(),
            inode: stat.ino(),
        };
        all.insert(path, facts);
    }
    all
}

/// A user with a tree, and a place for what is outside of it.
struct Sample {
    tree: Tree,
    own: Tree,
    recorded: Recorded,
}

impl Sample {
    /// A tree without a record.
    fn new() -> Self {
        let (tree, own) = (Tree::new(), Tree::new());
        for (name, size) in [("a", 100), ("b", 3 << 20), ("sub/c", 200), ("sub/d", 300)] {
            tree.write(name, content(size, size as u64));
            tree.age(name);
        }
        make_keys(&own, "mine");
        let recorded = Recorded::inside(tree.root());
        Self { tree, own, recorded }
    }

    /// A recorded tree with an edit, damage, a file that is new and one that is gone.
    fn changed() -> Self {
        let sample = Self::new();
        sample.recorded.record();
        sample.tree.write("a", "another content");
        sample.tree.flip("b", 1 << 20);
        sample.tree.write("new", "new");
        fs::remove_file(sample.tree.path("sub/d")).expect("remove");
        sample
    }

    fn run(&self, command: &str, more: &[&str]) -> Run {
        let more = more.iter().map(|more| match more.split_once('@') {
            Some(("own", name)) => self.own.path(name).into_os_string(),
            Some(("tree", name)) => self.tree.path(name).into_os_string(),
            _ => more.into(),
        });
        let more: Vec<_> = more.collect();
        fsure_of(&self.own.path("home"), &self.recorded.arguments(command, &more))
    }

    /// Runs a command with `-n`, and fails if it has changed anything.
    fn dry(&self, command: &str, more: &[&str]) -> Run {
        let folders = [self.tree.root(), self.own.root()];
        let before = facts(&folders);
        let run = self.run(command, &[more, &["-n"]].concat());
        let after = facts(&folders);
        for (path, facts) in &before {
            assert_eq!(after.get(path), Some(facts), "{command} {more:?}: {}", path.display());
        }
        let more_names: Vec<_> = after.keys().filter(|path| !before.contains_key(*path)).collect();
        assert!(more_names.is_empty(), "{command} {more:?} has made {more_names:?}");
        run
    }

    fn dry_json(&self, command: &str, more: &[&str]) -> Report {
        Report::new(self.dry(command, &[more, &["--json"]].concat()))
    }

    fn json(&self, command: &str, more: &[&str]) -> Report {
        Report::new(self.run(command, &[more, &["--json"]].concat()))
    }
}

/// The lines of a report without what a dry run says of itself and without its times.
fn comparable(report: &Report) -> Vec<Value> {
    let mut lines = report.lines.clone();
    for line in lines.iter_mut().filter_map(Value::as_object_mut) {
        for name in ["dry_run", "recorded_now", "seconds", "time", "parity"] {
            line.remove(name);
        }
    }
    lines.sort_by_key(ToString::to_string);
    lines
}

#[test]
fn an_update_says_what_the_next_one_does() {
    for (what, more) in [
        ("as it is", &[][..]),
        ("all of it read", &["--full"]),
        ("what is found is accepted", &["--accept-all"]),
        ("copies of the record in each folder", &["--layout", "folder"]),
        ("another digest", &["--digest", "blake3,sha256"]),
        ("what is gone is forgotten", &["--forget", "0"]),
    ] {
        let sample = Sample::changed();
        let dry = sample.dry_json("update", more);
        assert_eq!(dry.summary()["dry_run"], true, "{what}: {dry:?}");
        assert!(dry.findings().all(|line| line["recorded_now"].is_null()), "{what}: {dry:?}");
        let real = sample.json("update", more);
        assert_eq!(real.code, dry.code, "{what}: {real:?}");
        assert!(real.summary()["dry_run"].is_null(), "{what}: {real:?}");
        assert_eq!(comparable(&dry), comparable(&real), "{what}");
    }
}

#[test]
fn nothing_is_called_recorded_that_is_not() {
    let sample = Sample::changed();
    let dry = sample.dry("update", &["--accept-all"]);
    for words in ["Would record: ", "would be accepted", "Dry run: nothing was written"] {
        assert!(dry.stdout.contains(words), "{words}: {}", dry.stdout);
    }
    for words in ["Recorded: ", "the record now holds"] {
        assert!(!dry.stdout.contains(words), "{words}: {}", dry.stdout);
    }
}

#[test]
fn a_first_update_makes_no_record() {
    let sample = Sample::new();
    let dry = sample.dry("update", &[]);
    assert_eq!(dry.code, 0, "{}", dry.stderr);
    assert!(dry.stdout.contains("Would record: 4 files"), "{}", dry.stdout);
    assert_eq!(sample.run("status", &[]).code, 5, "there is a record");
    let elsewhere = sample.dry("update", &["--catalog", "own@c.db"]);
    assert_eq!(elsewhere.code, 0, "{}", elsewhere.stderr);
}

#[test]
fn verify_and_scrub_note_nothing() {
    let sample = Sample::changed();
    for command in ["verify", "scrub"] {
        let dry = sample.dry_json(command, &[]);
        assert_eq!(dry.code, 3, "{command}: {dry:?}");
        assert_eq!(dry.summary()["dry_run"], true, "{command}: {dry:?}");
    }
    // The damage would be known otherwise.
    assert_eq!(sample.run("status", &[]).code, 1);
    let (dry, real) = (sample.dry_json("verify", &[]), sample.json("verify", &[]));
    assert_eq!(comparable(&dry), comparable(&real));
}

#[test]
fn a_list_is_not_imported() {
    let sample = Sample::new();
    let list = format!("{}  a\n", blake3::hash(&sample.tree.read("a")).to_hex());
    sample.own.write("list.b3", list);
    let import = |dry: bool| {
        let (list, root) = (sample.own.path("list.b3"), sample.tree.root());
        let mut args: Vec<std::ffi::OsString> =
            vec!["import".into(), list.into(), "--root".into(), root.into()];
        args.extend(["--format", "b3sum"].map(Into::into));
        args.extend(dry.then(|| "-n".into()));
        fsure_of(&sample.own.path("home"), &args)
    };
    let folders = [sample.tree.root(), sample.own.root()];
    for has_record in [false, true] {
        if has_record {
            sample.recorded.record();
        }
        let before = facts(&folders);
        let dry = import(true);
        assert_eq!(dry.code, 0, "{}", dry.stderr);
        assert!(dry.stdout.contains("Dry run: nothing was written"), "{}", dry.stdout);
        assert_eq!(facts(&folders), before);
    }
    assert_eq!(import(false).code, 0);
}

#[test]
fn nothing_is_signed_and_nothing_remembered() {
    let sample = Sample::new();
    sample.recorded.record();
    let key = ["--sign", "own@mine.key"];
    let dry = sample.dry("seal", &key);
    assert_eq!(dry.code, 0, "{}", dry.stderr);
    assert!(dry.stdout.contains("Would sign"), "{}", dry.stdout);
    assert_eq!(sample.run("seal", &key).code, 0);
    // On a machine that has seen no signature yet.
    fs::remove_dir_all(sample.own.path("home")).expect("remove what is remembered");
    for command in ["verify", "scrub"] {
        let dry = sample.dry(command, &["--signed-by", "own@mine.pub"]);
        assert_eq!(dry.code, 0, "{command}: {}{}", dry.stdout, dry.stderr);
    }
}

#[test]
fn nothing_is_healed() {
    let sample = Sample::new();
    sample.recorded.record();
    sample.own.write("copy/b", sample.tree.read("b"));
    sample.tree.flip("b", 9);
    let from = ["--from", "own@copy"];
    let dry = sample.dry("heal", &from);
    assert_eq!(dry.code, 3, "{}", dry.stderr);
    assert!(dry.stdout.contains("would be put back"), "{}", dry.stdout);
    let both = sample.run("heal", &[&from[..], &["--yes", "-n"]].concat());
    assert_eq!(both.code, 2, "{}", both.stderr);
    assert_eq!(sample.run("heal", &[&from[..], &["--yes"]].concat()).code, 7);
}

#[test]
fn protect_says_how_much_it_writes_and_where() {
    let sample = Sample::new();
    sample.recorded.record();
    let mut made = Vec::new();
    for more in [&[][..], &[], &["--redundancy", "10%"]] {
        let dry = sample.dry("protect", more);
        let folder = sample.recorded.catalog.with_extension("db.parity");
        assert!(dry.stdout.contains(&format!("to {}", folder.display())), "{}", dry.stdout);
        assert!(dry.stdout.contains("Dry run: nothing was written"), "{}", dry.stdout);
        let (dry, real) = (sample.dry_json("protect", more), sample.json("protect", more));
        assert_eq!(dry.summary()["dry_run"], true);
        assert_eq!(comparable(&dry), comparable(&real));
        made.push(real.summary()["groups_made"].as_u64());
    }
    // For the last, the pool has as many shards at ten percent as at five.
    assert_eq!(made, [Some(2), Some(0), Some(1)]);
}

#[test]
fn a_damaged_record_is_left_as_it_is() {
    let sample = Sample::new();
    sample.recorded.record();
    let mut bytes = fs::read(&sample.recorded.catalog).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 4096].fill(0);
    fs::write(&sample.recorded.catalog, bytes).expect("write");
    let dry = sample.dry("recover", &[]);
    assert_eq!(dry.code, 6, "{}", dry.stderr);
    assert!(dry.stdout.contains("Nothing was changed"), "{}", dry.stdout);
    for command in ["update", "verify", "scrub"] {
        let (dry, real) = (sample.dry(command, &[]), sample.run(command, &[]));
        assert_eq!(dry.code, real.code, "{command}: {}{}", dry.stdout, dry.stderr);
    }
}

#[test]
fn a_record_that_cannot_be_trusted_refuses_the_dry_run_too() {
    let sample = Sample::new();
    sample.recorded.record();
    sample.recorded.edit("UPDATE record SET size = 1 WHERE path = x'61'");
    for command in ["verify", "scrub", "update"] {
        let (dry, real) = (sample.dry(command, &[]), sample.run(command, &[]));
        assert_eq!((dry.code, real.code), (6, 6), "{command}: {}{}", dry.stdout, dry.stderr);
    }
    let key = ["--sign", "own@mine.key"];
    assert_eq!((sample.dry("seal", &key).code, sample.run("seal", &key).code), (6, 6));
}

/// A transaction that was cut off is taken back in the copy, and stays as it is in the record.
#[test]
fn a_transaction_that_was_cut_off_is_left_to_the_next_run() {
    let sample = Sample::new();
    sample.recorded.record();
    let copy = sample.own.path("copy.db");
    fs::copy(&sample.recorded.catalog, &copy).expect("copy");
    let connection = rusqlite::Connection::open(&copy).expect("open");
    let spill = "PRAGMA cache_size = 1; BEGIN IMMEDIATE; UPDATE record SET size = 1; \
                 CREATE TABLE much AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 \
                 FROM n WHERE i < 3000) SELECT randomblob(900) FROM n;";
    connection.execute_batch(spill).expect("half a transaction");
    let journal = |file: &Path| PathBuf::from(format!("{}-journal", file.display()));
    for (from, to) in [
        (journal(&copy), journal(&sample.recorded.catalog)),
        (copy.clone(), sample.recorded.catalog.clone()),
    ] {
        fs::copy(from, to).expect("copy");
    }
    drop(connection);
    let heal = ("heal", &["--from", "own@"][..]);
    let others = ["update", "verify", "scrub", "recover"].map(|command| (command, &[][..]));
    for (command, more) in others.into_iter().chain([heal]) {
        let dry = sample.dry(command, more);
        assert_eq!(dry.code, 0, "{command}: {}{}", dry.stdout, dry.stderr);
    }
    assert_eq!(sample.run("verify", &[]).code, 0);
    assert!(!journal(&sample.recorded.catalog).exists(), "the journal was not carried out");
}

#[test]
fn metrics_of_a_dry_run_are_refused() {
    let sample = Sample::new();
    sample.recorded.record();
    let dry = sample.dry("verify", &["--metrics", "own@m.prom"]);
    assert_eq!(dry.code, 2, "{}", dry.stderr);
}

#[test]
fn a_signed_record_is_as_signed_after_a_dry_run() {
    let sample = Signable::sealed();
    sample.tree.write("new", "new");
    assert_eq!(sample.run("update", &["-n"]).code, 0);
    fs::remove_file(sample.tree.path("new")).expect("remove");
    assert_eq!(sample.verify().code, 0);
}
