//! A root with its record: the command is run on it as its users do, and the
//! record is read by way of SQLite and `docs/catalog.md` alone, without a line
//! of fsure's own code, so that a fault in reading cannot hide one in writing.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::types::Value;

use super::run::{Report, Run, fsure, fsure_json};

/// A row of the `record` table, by column.
pub type Row = BTreeMap<String, Value>;

/// A root folder and where its catalog is.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The root folder.
    pub root: PathBuf,
    /// The catalog's file.
    pub catalog: PathBuf,
    is_outside: bool,
}

impl Recorded {
    /// The catalog lies in the root, as it does by default.
    pub fn inside(root: &Path) -> Self {
        let catalog = root.join(".fsure/catalog.db");
        Self { root: root.to_owned(), catalog, is_outside: false }
    }

    /// The catalog is kept elsewhere, with `--catalog`.
    pub fn outside(root: &Path, catalog: &Path) -> Self {
        Self { root: root.to_owned(), catalog: catalog.to_owned(), is_outside: true }
    }

    /// The whole command line.
    pub fn arguments(&self, command: &str, more: &[impl AsRef<OsStr>]) -> Vec<OsString> {
        let mut all: Vec<OsString> = vec![command.into(), self.root.clone().into()];
        if self.is_outside {
            all.extend(["--catalog".into(), self.catalog.clone().into()]);
        }
        all.extend(more.iter().map(|more| more.as_ref().to_owned()));
        all
    }

    /// Runs a command with `--json`.
    pub fn run(&self, command: &str, more: &[impl AsRef<OsStr>]) -> Report {
        fsure_json(&self.arguments(command, more))
    }

    /// Runs a command for people.
    pub fn text(&self, command: &str, more: &[impl AsRef<OsStr>]) -> Run {
        fsure(&self.arguments(command, more))
    }

    /// `update`, without further arguments.
    pub fn update(&self) -> Report {
        self.run("update", &[""; 0])
    }

    /// `verify`, without further arguments.
    pub fn verify(&self) -> Report {
        self.run("verify", &[""; 0])
    }

    /// `status`, without further arguments.
    pub fn status(&self) -> Report {
        self.run("status", &[""; 0])
    }

    /// Records the tree for the first time, late enough after it was made for
    /// no file to be racy: see `Record::is_racy`.
    ///
    /// # Panics
    /// Unless the update ends with 0.
    pub fn record(&self) -> Report {
        sleep(Duration::from_millis(60));
        let report = self.update();
        assert_eq!(report.code, 0, "the first update of {}: {report:?}", self.root.display());
        report
    }

    /// Removes the catalog and its backup, so that the next update begins anew.
    ///
    /// # Panics
    /// If one that is there cannot be removed.
    pub fn forget(&self) {
        for file in [self.catalog.clone(), self.catalog.with_extension("db.backup")] {
            match std::fs::remove_file(&file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    panic!("remove {}: {error}", file.display())
                }
                _ => {}
            }
        }
    }

    /// Has the record look as if it had been made long after the last change of
    /// each file: a younger one proves no rot.
    #[cfg(target_os = "linux")]
    pub fn age_records(&self) {
        const LATER_NS: i64 = 3_600_000_000_000;
        let sql = format!("UPDATE record SET hashed_ns = hashed_ns + {LATER_NS} WHERE kind = 0");
        super::forger::forge(&self.connect(), &sql);
    }

    /// All rows of `record`, by path. Makes SQLite roll back what a killed
    /// process has left behind.
    pub fn rows(&self) -> BTreeMap<Vec<u8>, Row> {
        let connection = self.connect();
        let mut statement = connection.prepare("SELECT * FROM record").expect("a record table");
        let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let rows = statement.query_map([], |row| {
            let value = |(place, name): (usize, &String)| Ok((name.clone(), row.get(place)?));
            names.iter().enumerate().map(value).collect::<rusqlite::Result<Row>>()
        });
        let rows = rows.expect("rows").map(|row| row.expect("a row"));
        rows.map(|row| (bytes(&row["path"]), row)).collect()
    }

    /// The row of a path.
    ///
    /// # Panics
    /// If there is none.
    pub fn row(&self, path: &str) -> Row {
        let mut rows = self.rows();
        rows.remove(path.as_bytes()).unwrap_or_else(|| panic!("no row of {path}: {rows:#?}"))
    }

    /// The catalog's database.
    pub fn connect(&self) -> Connection {
        let connection = Connection::open(&self.catalog).expect("open the catalog");
        connection.busy_timeout(Duration::from_secs(20)).expect("set a timeout");
        connection
    }

    /// Changes the catalog by SQL, behind fsure's back.
    pub fn edit(&self, sql: &str) {
        self.connect().execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// The catalog's file as it is.
    pub fn catalog_bytes(&self) -> Vec<u8> {
        std::fs::read(&self.catalog).expect("read the catalog")
    }
}

/// A blob's bytes.
///
/// # Panics
/// If it is none.
pub fn bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::Blob(bytes) => bytes.clone(),
        other => panic!("not a blob: {other:?}"),
    }
}

/// Bytes that do not repeat, the same for the same length and seed: a block
/// that is taken for another one is not equal to it by chance.
pub fn content(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
