//! Records of other versions of fsure. One of a later version is refused by every command and
//! not touched. One of an earlier version is read as it is, and the first run that writes it
//! upgrades it.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::support::signable::{Signable, copy};
use crate::support::{Recorded, Run, Tree, fsure, fsure_of};

/// The version of the catalogs that this fsure writes.
const VERSION: i64 = 4;

/// The tables that each version has added.
const ADDED: [(i64, &[&str]); 3] = [
    (2, &["choice", "metadata", "own_change", "looked", "part", "generation", "verification"]),
    (3, &["finding", "backup", "redated", "table_total"]),
    (4, &["verified_paths"]),
];

/// Makes a catalog one of a later version, which has a table that this one does not know.
const LATER: &str = "PRAGMA user_version = 5; CREATE TABLE later (a)";

/// Each command that asks a record, in each of its ways. `verify --against` is not among them: it
/// asks a list instead. `ROOT`, `COPY`, `LIST`, `KEY` and `PUB` stand for paths.
const LINES: &[&str] = &[
    "update ROOT",
    "update ROOT --full",
    "update ROOT --accept-all",
    "update ROOT --dry-run",
    "verify ROOT",
    "verify ROOT --signed-by PUB",
    "status ROOT",
    "status ROOT --age",
    "scrub ROOT",
    "heal ROOT --from COPY",
    "heal ROOT --from COPY --yes",
    "protect ROOT",
    "recover ROOT",
    "recover ROOT --dry-run",
    "compare ROOT COPY",
    "compare COPY ROOT",
    "dupes ROOT",
    "log ROOT",
    "seal ROOT --sign KEY",
    "export ROOT --format sha256sums",
    "export ROOT --format json",
    "import LIST --root ROOT",
];

/// The lines that write nothing to a record.
const READERS: &[&str] = &[
    "update ROOT --dry-run",
    "status ROOT",
    "status ROOT --age",
    "scrub ROOT --dry-run",
    "heal ROOT --from COPY",
    "compare ROOT COPY",
    "dupes ROOT",
    "log ROOT",
    "export ROOT --format json",
];

/// The lines that upgrade a record.
const WRITERS: &[&str] = &[
    "update ROOT",
    "verify ROOT",
    "scrub ROOT",
    "protect ROOT",
    "seal ROOT --sign KEY",
    "heal ROOT --from COPY --yes",
];

/// A recorded root, a copy of it, and a list of a file.
struct Place {
    sample: Signable,
    beside: Tree,
}

impl Place {
    fn new() -> Self {
        let (sample, beside) = (Signable::new(), Tree::new());
        let digest = "ab".repeat(32);
        beside.write("list.sha256", format!("{digest}  a\n"));
        copy(sample.tree.root(), &beside.path("copy"));
        Self { sample, beside }
    }

    fn recorded(&self) -> &Recorded {
        &self.sample.recorded
    }

    fn run(&self, line: &str) -> Run {
        let word = |word: &str| -> OsString {
            match word {
                "ROOT" => self.sample.tree.root().into(),
                "COPY" => self.beside.path("copy").into(),
                "LIST" => self.beside.path("list.sha256").into(),
                "KEY" => self.sample.own.path("mine.key").into(),
                "PUB" => self.sample.own.path("mine.pub").into(),
                word => word.into(),
            }
        };
        let words: Vec<_> = line.split(' ').map(word).collect();
        fsure_of(&self.sample.own.path("home"), &words)
    }

    /// Makes the record one of an earlier version, which has neither the later tables nor, before
    /// version 3, a backup.
    fn downgrade(&self, version: i64) {
        for (_, tables) in ADDED.iter().filter(|(since, _)| *since > version) {
            for table in *tables {
                self.recorded().edit(&format!("DROP TABLE {table}"));
            }
        }
        self.recorded().edit(&format!("PRAGMA user_version = {version}"));
        if version < 3 {
            fs::remove_file(self.backup()).expect("remove the backup");
        }
    }

    fn backup(&self) -> PathBuf {
        self.recorded().catalog.with_extension("db.backup")
    }

    fn version(&self) -> i64 {
        let pragma = |row: &rusqlite::Row<'_>| row.get(0);
        self.recorded().connect().pragma_query_value(None, "user_version", pragma).expect("version")
    }

    /// The statements that make the tables. Any version has `healing` after a heal only.
    fn tables(&self) -> BTreeMap<String, Option<String>> {
        let connection = self.recorded().connect();
        let sql = "SELECT name, sql FROM sqlite_master WHERE name != 'healing'";
        let mut select = connection.prepare(sql).expect("select");
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("rows");
        rows.map(|row| row.expect("a row")).collect()
    }
}

/// All that is below a folder: the content of files, and the dates of files and folders. A lock
/// names the process that holds it, so that only its name counts.
fn all_below(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, (i64, i64))> {
    let (mut all, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).expect("list") {
            let path = entry.expect("list").path();
            let stat = fs::symlink_metadata(&path).expect("stat");
            let is_lock = path.extension().is_some_and(|extension| extension == "lock");
            let content = match stat.is_file() && !is_lock {
                true => fs::read(&path).expect("read"),
                false => Vec::new(),
            };
            if stat.is_dir() {
                folders.push(path.clone());
            }
            let date = if is_lock { (0, 0) } else { (stat.mtime(), stat.mtime_nsec()) };
            all.insert(path, (content, date));
        }
    }
    all
}

/// A command that is added is not forgotten here.
#[test]
fn every_command_for_files_has_a_line() {
    let help = fsure(&["--help"]).stdout;
    let (_, group) = help.split_once("My files:\n").expect("the group");
    let (group, _) = group.split_once("\n\n").expect("its end");
    let names = group.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let names: Vec<_> = names.filter(|name| !name.is_empty()).collect();
    assert!(names.len() >= 13, "{names:?}");
    for name in names {
        assert!(LINES.iter().any(|line| line.split(' ').next() == Some(name)), "{name}");
    }
}

#[test]
fn a_record_of_a_later_version_is_refused_by_every_command_and_not_touched() {
    let place = Place::new();
    place.sample.tree.write("new", "not recorded yet");
    place.recorded().edit(LATER);
    let before = all_below(place.sample.tree.root());
    for line in LINES {
        let run = place.run(line);
        assert_eq!(run.code, 6, "{line}: {run:?}");
        let says = |words: &str| run.stderr.contains(words);
        assert!(says("has format version 5, and this fsure reads versions up to 4"), "{run:?}");
        assert!(says("use a later version of fsure"), "{line}: {run:?}");
        assert!(all_below(place.sample.tree.root()) == before, "{line} has changed something");
    }
}

#[test]
fn a_record_of_an_earlier_version_is_read_as_it_is() {
    for version in 1..VERSION {
        let place = Place::new();
        place.downgrade(version);
        let before = all_below(place.sample.tree.root());
        for line in READERS {
            let run = place.run(line);
            assert_eq!(run.code, 0, "version {version}, {line}: {run:?}");
            let after = all_below(place.sample.tree.root());
            assert!(after == before, "version {version}: {line} has changed something");
        }
    }
}

#[test]
fn damage_is_found_by_a_record_of_an_earlier_version() {
    for version in 1..VERSION {
        let place = Place::new();
        place.recorded().age_records();
        place.downgrade(version);
        place.sample.tree.flip("b", 1 << 20);
        let run = place.run("verify ROOT");
        assert_eq!(run.code, 3, "version {version}: {run:?}");
        assert!(run.stdout.contains("/b"), "version {version}: {run:?}");
        assert_eq!(place.version(), VERSION);
        assert_eq!(place.run("status ROOT").code, 3, "version {version}: it is known now");
    }
}

#[test]
fn a_record_of_an_earlier_version_is_upgraded_by_the_first_run_that_writes_it() {
    for (version, line) in
        (1..VERSION).flat_map(|version| WRITERS.iter().map(move |l| (version, l)))
    {
        let case = format!("version {version}, {line}");
        let place = Place::new();
        let (tables, rows) = (place.tables(), place.recorded().rows());
        place.downgrade(version);
        if line.starts_with("heal") {
            place.sample.tree.flip("b", 1 << 20);
        }
        let run = place.run(line);
        assert!([0, 7].contains(&run.code), "{case}: {run:?}");
        assert_eq!((place.version(), place.tables()), (VERSION, tables), "{case}");
        assert_eq!(place.recorded().rows().len(), rows.len(), "{case}");
        assert_eq!(place.run("verify ROOT").code, 0, "{case}");
        // The backup has every row. Without the catalog nothing proves that there were no more.
        fs::remove_file(&place.recorded().catalog).expect("remove");
        assert_eq!(place.run("recover ROOT").code, 5, "{case}");
        assert_eq!(place.recorded().rows().len(), rows.len(), "{case}");
        assert_eq!(place.run("verify ROOT").code, 0, "{case}");
    }
}

/// A flipped bit in the version must not pass for a later version, which nothing here can repair.
#[test]
fn a_flipped_version_is_damage_after_a_heal_too() {
    let place = Place::new();
    place.sample.tree.flip("b", 1 << 20);
    assert_eq!(place.run("heal ROOT --from COPY --yes").code, 7);
    place.recorded().edit("PRAGMA user_version = 5");
    let run = place.run("verify ROOT");
    assert_eq!(run.code, 6, "{run:?}");
    assert!(run.stderr.contains("and has the tables of version 4"), "{run:?}");
    assert_eq!(place.run("recover ROOT").code, 7);
    assert_eq!((place.version(), place.run("verify ROOT").code), (VERSION, 0));
}
