//! Names that came and names that went, until all names are known: only then
//! can be said which of them are one file under another name. They are kept in
//! a temporary database of SQLite's, which holds what fits into its cache in
//! memory and the rest in a file without a name: a whole tree may have got
//! another name, and memory must not grow with it. Nothing of it is a record.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::row::PAGE_ROWS;
use super::row::kind_code;
use super::sqlite_error::map_sqlite_error;
use crate::model::{Entry, EntryKind, Record, folded, nfc};
use fsure_core::{Algorithm, Digests, RelPath, Result};

const SETTINGS: &str = "
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -16384;
BEGIN;
CREATE TABLE waiting (
    path BLOB PRIMARY KEY,
    is_here INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    size INTEGER NOT NULL,
    device INTEGER NOT NULL,
    identity BLOB,
    content BLOB,
    nfc BLOB NOT NULL,
    folded BLOB NOT NULL,
    is_recorded INTEGER NOT NULL DEFAULT 0,
    doubt INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE pair (
    now BLOB PRIMARY KEY,
    was BLOB NOT NULL UNIQUE,
    key TEXT NOT NULL,
    value BLOB NOT NULL,
    UNIQUE (value, key)
) WITHOUT ROWID;
CREATE TABLE size (size INTEGER PRIMARY KEY);
";

/// Of which no pair was made yet.
const UNPAIRED: &str = "path NOT IN (SELECT now FROM pair) AND path NOT IN (SELECT was FROM pair)";

const DOUBT_MOVE: i64 = 1;
const DOUBT_NAME_MISMATCH: i64 = 2;

/// Reason why a name that came or went was not paired with another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ambiguity {
    /// Several names that came or went have its inode or its content.
    Move,
    /// Several names have a name mismatch with it.
    NameMismatch,
}

/// A name that came, with what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppearedName {
    /// Its path.
    pub path: RelPath,
    /// Type of the entry.
    pub kind: EntryKind,
    /// Its length.
    pub size: u64,
    /// The device of the folder it is in, as the walk reported it.
    pub device: u64,
    /// The recorded path that is gone and of which this is the new name.
    pub moved_from: Option<RelPath>,
    /// Reason why it was not taken for a recorded name although it could be one;
    /// otherwise `None`.
    pub doubt: Option<Ambiguity>,
    /// True if its content is recorded under this name by now.
    pub is_recorded: bool,
}

/// A recorded name that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingName {
    /// Its path.
    pub path: RelPath,
    /// Type of the recorded entry.
    pub kind: EntryKind,
    /// Reason why it was not taken for a name that came although it could be one;
    /// otherwise `None`.
    pub doubt: Option<Ambiguity>,
}

/// The names that came and went in one run.
pub struct MoveCandidates {
    pub(super) connection: Connection,
    /// Names that are recorded and gone.
    pub(super) departed: u64,
    /// True if any name has a name mismatch with several others.
    pub(super) has_ambiguous_names: bool,
}

impl MoveCandidates {
    /// Creates an empty set of names.
    pub fn new() -> Result<Self> {
        let open = || {
            let connection = Connection::open("")?;
            connection.execute_batch(SETTINGS)?;
            Ok(connection)
        };
        let connection = open().map_err(|error| fault(&error))?;
        Ok(Self { connection, departed: 0, has_ambiguous_names: false })
    }

    /// Adds a name that is there and not recorded.
    pub fn arrive(&mut self, path: &RelPath, entry: &Entry, device: u64) -> Result<()> {
        self.insert(path, entry, Some(device), identity_key(entry), None)
    }

    /// Adds a record whose name is gone. `has_identity` is true if its inode
    /// distinguishes it from other files; its content is recognised by `content`.
    pub fn depart(
        &mut self,
        record: &Record,
        has_identity: bool,
        content: Option<Vec<u8>>,
    ) -> Result<()> {
        self.departed += 1;
        let identity = if has_identity { identity_key(&record.entry) } else { None };
        self.insert(&record.path, &record.entry, None, identity, content)
    }

    fn insert(
        &mut self,
        path: &RelPath,
        entry: &Entry,
        device: Option<u64>,
        identity: Option<Vec<u8>>,
        content: Option<Vec<u8>>,
    ) -> Result<()> {
        let sql = "INSERT OR REPLACE INTO waiting \
                   (path, is_here, kind, size, device, identity, content, nfc, folded) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        let mut statement = self.connection.prepare_cached(sql).map_err(|e| fault(&e))?;
        let values = params![
            path.as_bytes(),
            device.is_some(),
            kind_code(entry.kind),
            entry.size.cast_signed(),
            device.unwrap_or(0).cast_signed(),
            identity,
            content,
            &*nfc(path),
            folded(path),
        ];
        statement.execute(values).map_err(|e| fault(&e))?;
        Ok(())
    }

    /// Makes pairs of what came and went with the same inode and stat, where
    /// there is one of each, and notes what contents are still looked for.
    pub fn pair_by_identity(&mut self) -> Result<()> {
        if self.departed == 0 {
            return Ok(());
        }
        self.pair("identity")?;
        self.run(
            "INSERT INTO size SELECT DISTINCT size FROM waiting WHERE NOT is_here \
             AND content IS NOT NULL AND path NOT IN (SELECT was FROM pair)",
        )
    }

    /// The same by the contents that were found.
    pub fn pair_by_content(&mut self) -> Result<()> {
        if self.departed == 0 {
            return Ok(());
        }
        // Those made before were claimed or have come to nothing.
        self.run("DELETE FROM pair")?;
        self.pair("content")
    }

    /// Every group is looked at as a whole and never name by name: a tree of
    /// backups has inodes with thousands of names.
    pub(super) fn pair(&mut self, key: &str) -> Result<()> {
        let doubt = match key {
            "nfc" | "folded" => DOUBT_NAME_MISMATCH,
            _ => DOUBT_MOVE,
        };
        let groups =
            format!("FROM waiting WHERE {key} IS NOT NULL AND {UNPAIRED} GROUP BY {key} HAVING");
        self.run(&format!(
            "CREATE INDEX by_{key} ON waiting ({key}, is_here) WHERE {key} IS NOT NULL;
             INSERT INTO pair SELECT max(CASE WHEN is_here THEN path END), \
                 max(CASE WHEN NOT is_here THEN path END), '{key}', {key} \
                 {groups} count(*) = 2 AND sum(is_here) = 1 AND min(kind) = max(kind);
             UPDATE waiting SET doubt = {doubt} WHERE doubt = 0 AND {UNPAIRED} AND {key} IN \
                 (SELECT {key} {groups} count(*) > 2 AND sum(is_here) BETWEEN 1 AND count(*) - 1)"
        ))
    }

    pub(super) fn run(&self, sql: &str) -> Result<()> {
        self.connection.execute_batch(sql).map_err(|error| fault(&error))
    }

    /// Returns the number of recorded files that are gone and for which no pair was found.
    pub fn files_gone(&self) -> Result<u64> {
        let sql = "SELECT count(*) FROM waiting WHERE NOT is_here AND kind = 0 \
                   AND path NOT IN (SELECT was FROM pair)";
        let count = self.connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        count.map(i64::cast_unsigned).map_err(|error| fault(&error))
    }

    /// Bytes of the files that came and are the pair of one that went.
    pub fn moved_bytes(&self) -> Result<u64> {
        let sql = "SELECT total(size) FROM waiting JOIN pair ON now = path WHERE kind = 0";
        let bytes = self.connection.query_row(sql, [], |row| row.get::<_, f64>(0));
        bytes.map(|bytes| bytes as u64).map_err(|error| fault(&error))
    }

    /// The next names that came, in the order of paths; `with_content` for
    /// those whose content was found only.
    pub fn arrivals(
        &self,
        after: Option<&RelPath>,
        with_content: bool,
    ) -> Result<Vec<AppearedName>> {
        let sql = format!(
            "SELECT path, device, was, doubt, is_recorded, kind, size FROM waiting \
             LEFT JOIN pair ON now = path \
             WHERE is_here AND path > ?1 AND (content IS NOT NULL OR NOT ?2) \
             ORDER BY path LIMIT {PAGE_ROWS}"
        );
        let mut statement = self.connection.prepare_cached(&sql).map_err(|e| fault(&e))?;
        // The root is recorded under no name.
        let after = after.map_or(&b""[..], RelPath::as_bytes);
        let rows = statement.query_map(params![after, with_content], |row| {
            Ok(AppearedName {
                path: RelPath::from_bytes(row.get::<_, Vec<u8>>(0)?),
                device: row.get::<_, i64>(1)?.cast_unsigned(),
                moved_from: row.get::<_, Option<Vec<u8>>>(2)?.map(RelPath::from_bytes),
                doubt: doubt_of(row.get(3)?),
                is_recorded: row.get(4)?,
                kind: kind_of(row.get(5)?),
                size: row.get::<_, i64>(6)?.cast_unsigned(),
            })
        });
        rows.and_then(Iterator::collect).map_err(|error| fault(&error))
    }

    /// The next names that went and were not claimed.
    pub fn departures(&self, after: Option<&RelPath>) -> Result<Vec<MissingName>> {
        let sql = format!(
            "SELECT path, kind, doubt FROM waiting WHERE NOT is_here AND path > ?1 \
             ORDER BY path LIMIT {PAGE_ROWS}"
        );
        let mut statement = self.connection.prepare_cached(&sql).map_err(|e| fault(&e))?;
        let after = after.map_or(&b""[..], RelPath::as_bytes);
        let rows = statement.query_map([after], |row| {
            let path = RelPath::from_bytes(row.get::<_, Vec<u8>>(0)?);
            Ok(MissingName { path, kind: kind_of(row.get(1)?), doubt: doubt_of(row.get(2)?) })
        });
        rows.and_then(Iterator::collect).map_err(|error| fault(&error))
    }

    /// Removes a name that went from those to be reported.
    pub fn claim(&mut self, departed: &RelPath) -> Result<()> {
        let sql = "DELETE FROM waiting WHERE path = ?1";
        let mut statement = self.connection.prepare_cached(sql).map_err(|e| fault(&e))?;
        statement.execute([departed.as_bytes()]).map(|_| ()).map_err(|e| fault(&e))
    }

    /// Returns true if a file of this size is gone and could be there under another name.
    pub fn is_wanted(&self, size: u64) -> Result<bool> {
        if self.departed == 0 {
            return Ok(false);
        }
        let sql = "SELECT 1 FROM size WHERE size = ?1";
        let mut statement = self.connection.prepare_cached(sql).map_err(|e| fault(&e))?;
        let found = statement.query_row([size.cast_signed()], |_| Ok(())).optional();
        found.map(|found| found.is_some()).map_err(|e| fault(&e))
    }

    /// Notes the content of a name that came, and whether it is recorded.
    pub fn found(&mut self, path: &RelPath, content: &[u8], is_recorded: bool) -> Result<()> {
        let sql = "UPDATE waiting SET content = ?2, is_recorded = ?3 WHERE path = ?1";
        let mut statement = self.connection.prepare_cached(sql).map_err(|e| fault(&e))?;
        let values = params![path.as_bytes(), content, is_recorded];
        statement.execute(values).map(|_| ()).map_err(|e| fault(&e))
    }
}

fn doubt_of(code: i64) -> Option<Ambiguity> {
    match code {
        0 => None,
        DOUBT_NAME_MISMATCH => Some(Ambiguity::NameMismatch),
        _ => Some(Ambiguity::Move),
    }
}

fn kind_of(code: i64) -> EntryKind {
    let all = [EntryKind::File, EntryKind::Folder, EntryKind::Link];
    all.into_iter().find(|kind| kind_code(*kind) == code).unwrap_or(EntryKind::Special)
}

/// Returns the key that two names of one inode have in common, if inodes are stable. The
/// size and dates of a folder change with the names in it; without a birth time, its
/// inode number alone might have been given to another folder, and the key is `None`.
fn identity_key(entry: &Entry) -> Option<Vec<u8>> {
    let inode = entry.inode?;
    let is_folder = entry.kind == EntryKind::Folder;
    if is_folder && entry.birth_ns.is_none() {
        return None;
    }
    let mut key = vec![kind_code(entry.kind) as u8];
    key.extend(entry.file_system.0.to_be_bytes());
    key.extend(inode.to_be_bytes());
    key.extend(entry.birth_ns.map_or(0, |time| time).to_be_bytes());
    if !is_folder {
        key.extend(entry.size.to_be_bytes());
        key.extend(entry.mtime_ns.to_be_bytes());
    }
    Some(key)
}

/// Returns true if an entry is the recorded one under another name, as far as a stat can show.
pub fn is_same_inode(then: &Entry, now: &Entry) -> bool {
    identity_key(then).is_some_and(|key| Some(key) == identity_key(now))
}

/// Returns the key that two names of one content have in common. It is `None` for empty
/// files: their equality proves nothing.
pub fn content_key(entry: &Entry, digests: &Digests, algorithm: Algorithm) -> Option<Vec<u8>> {
    let is_some_file = entry.kind == EntryKind::File && entry.size > 0;
    let digest = digests.get(algorithm).filter(|_| is_some_file)?;
    Some([&entry.size.to_be_bytes()[..], digest].concat())
}

pub(super) fn fault(error: &rusqlite::Error) -> fsure_core::Error {
    map_sqlite_error(Path::new("the temporary table of moved files"), error)
}
