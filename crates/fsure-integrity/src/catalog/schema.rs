//! The tables as SQL, their version, and what is refused. `docs/catalog.md`
//! is the specification; this is its other half.

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::findings;
use super::sqlite_error::FOREIGN;
use super::table_total::TableTotals;

/// `fsur` in ASCII: tells a catalog from any other SQLite file.
pub(super) const APPLICATION_ID: i64 = 0x6673_7572;

/// The version this program writes and the highest it reads.
pub(super) const VERSION: i64 = 1 + ADDED.len() as i64;

/// The tables that each version from the second on has added.
const ADDED: [&str; 3] = [
    "
CREATE TABLE choice (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    seal INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE metadata (
    path BLOB PRIMARY KEY,
    value BLOB NOT NULL,
    seal INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE own_change (
    path BLOB PRIMARY KEY,
    ctime_ns INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE looked (
    path BLOB PRIMARY KEY,
    at_s INTEGER NOT NULL,
    verdict TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE part (
    path BLOB NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER,
    inode INTEGER,
    first_block INTEGER NOT NULL,
    blocks INTEGER NOT NULL,
    verified_s INTEGER NOT NULL,
    seal INTEGER NOT NULL,
    PRIMARY KEY (path, first_block)
) WITHOUT ROWID;
CREATE TABLE generation (
    number INTEGER PRIMARY KEY,
    at_s INTEGER NOT NULL,
    command TEXT NOT NULL,
    made_by TEXT NOT NULL,
    new INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    touched INTEGER NOT NULL,
    missing INTEGER NOT NULL,
    moved INTEGER NOT NULL,
    accepted INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    statement TEXT,
    signature TEXT
);
CREATE TABLE verification (
    number INTEGER PRIMARY KEY,
    at_s INTEGER NOT NULL,
    command TEXT NOT NULL,
    generation INTEGER NOT NULL,
    files INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    exit_code INTEGER NOT NULL
);
",
    "
CREATE TABLE finding (
    path BLOB PRIMARY KEY,
    verdict TEXT NOT NULL,
    found_s INTEGER NOT NULL,
    seen_s INTEGER NOT NULL,
    seal INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE backup (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    catalog BLOB NOT NULL,
    sequence INTEGER NOT NULL,
    length INTEGER NOT NULL,
    whole_length INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    seal INTEGER NOT NULL
);
CREATE TABLE redated (
    scope BLOB PRIMARY KEY,
    files INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE table_total (
    name TEXT PRIMARY KEY,
    rows INTEGER NOT NULL,
    digest INTEGER NOT NULL,
    seal INTEGER NOT NULL
) WITHOUT ROWID;
",
    "
CREATE TABLE verified_paths (
    first_path BLOB PRIMARY KEY,
    end_path BLOB NOT NULL,
    hashed_ns INTEGER,
    verified_s INTEGER NOT NULL,
    seal INTEGER NOT NULL
) WITHOUT ROWID;
",
];

/// The first version with totals of its tables.
const FIRST_WITH_TOTALS: i64 = 3;

const TABLES: &str = "
CREATE TABLE root (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    file_system INTEGER NOT NULL,
    inode INTEGER,
    digests TEXT NOT NULL,
    cross_file_systems INTEGER NOT NULL,
    made_by TEXT NOT NULL,
    made_s INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    files INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    root_digest INTEGER NOT NULL,
    seal INTEGER NOT NULL
);
CREATE TABLE file_system (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    uuid TEXT,
    anchor_inode INTEGER,
    mtime_granularity_ns INTEGER NOT NULL,
    stable_inodes INTEGER NOT NULL,
    seal INTEGER NOT NULL
);
CREATE TABLE record (
    path BLOB PRIMARY KEY,
    kind INTEGER NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER,
    birth_ns INTEGER,
    inode INTEGER,
    file_system INTEGER NOT NULL,
    target BLOB,
    blake3 BLOB,
    sha256 BLOB,
    sha512 BLOB,
    sha1 BLOB,
    md5 BLOB,
    xxh128 BLOB,
    hashed_ns INTEGER NOT NULL,
    verified_s INTEGER NOT NULL,
    gone_s INTEGER,
    blocks INTEGER,
    seal INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE block (
    list INTEGER NOT NULL,
    part INTEGER NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (list, part)
) WITHOUT ROWID;
CREATE TABLE unfinished (
    path BLOB NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER,
    inode INTEGER,
    first_block INTEGER NOT NULL,
    hashed_ns INTEGER NOT NULL,
    value BLOB NOT NULL,
    seal INTEGER NOT NULL,
    PRIMARY KEY (path, first_block)
) WITHOUT ROWID;
CREATE TABLE nested (
    path BLOB PRIMARY KEY
) WITHOUT ROWID;
CREATE TABLE accepted (
    at_s INTEGER NOT NULL,
    path BLOB NOT NULL,
    verdict TEXT NOT NULL,
    before BLOB,
    after BLOB
);
";

/// Makes the tables in an empty database, inside the caller's transaction.
pub(super) fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", VERSION)?;
    connection.execute_batch(TABLES)?;
    ADDED.iter().try_for_each(|tables| connection.execute_batch(tables))?;
    TableTotals::default().store(connection)
}

/// Adds what the catalog's version does not have yet: permanently if it is going
/// to be written, else as tables that only this connection sees. Returns the
/// totals of its tables; `None` where they are damaged.
pub(super) fn complete(
    connection: &Connection,
    permanently: bool,
) -> rusqlite::Result<Option<TableTotals>> {
    if missing(connection)?.is_empty() {
        return TableTotals::read(connection);
    }
    let has_totals = version(connection)? >= FIRST_WITH_TOTALS;
    if !permanently {
        for tables in missing(connection)? {
            connection.execute_batch(&tables.replace("CREATE TABLE", "CREATE TEMP TABLE"))?;
        }
        if has_totals {
            return TableTotals::read(connection);
        }
        findings::adopt_looked(connection)?;
        return TableTotals::count(connection).map(Some);
    }
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    missing(&transaction)?.iter().try_for_each(|tables| transaction.execute_batch(tables))?;
    let totals = match has_totals {
        true => TableTotals::read(&transaction)?,
        false => {
            findings::adopt_looked(&transaction)?;
            transaction.execute("DELETE FROM looked", [])?;
            Some(TableTotals::count(&transaction)?)
        }
    };
    // Damaged: nothing is written.
    let Some(totals) = totals else { return Ok(None) };
    totals.store(&transaction)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()?;
    Ok(Some(totals))
}

/// The tables of the versions after that of the catalog.
fn missing(connection: &Connection) -> rusqlite::Result<&'static [&'static str]> {
    let has = usize::try_from(version(connection)? - 1).unwrap_or(0);
    Ok(&ADDED[has.min(ADDED.len())..])
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Returns true if a database of this connection has a table, by the statements that make its
/// tables: those are what SQLite reads. A flipped bit in the names beside them hides nothing.
pub(super) fn has_table(
    connection: &Connection,
    database: &str,
    table: &str,
) -> rusqlite::Result<bool> {
    connection.table_exists(Some(database), table)
}

/// Tells whether the database has any table of a later version than it says it has:
/// one flipped bit in its version would hide what those tables know.
fn has_later_tables(connection: &Connection) -> rusqlite::Result<bool> {
    for tables in missing(connection)? {
        let names = tables.lines().filter_map(|line| line.strip_prefix("CREATE TABLE "));
        for name in names.filter_map(|rest| rest.split(' ').next()) {
            if has_table(connection, "main", name)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Bytes of the header of an SQLite database.
pub(super) const HEAD_BYTES: usize = 100;

/// Tells a catalog by the header of its database: SQLite's magic and the application's number
/// (SQLite, "Database File Format", 1.3).
pub(super) fn is_head_of_catalog(head: &[u8; HEAD_BYTES]) -> bool {
    head.starts_with(b"SQLite format 3\0") && head[68..72] == (APPLICATION_ID as u32).to_be_bytes()
}

/// The version of a catalog that a later program has written. One that has exactly the
/// tables of this version says so by a flipped bit: a newer version adds tables.
pub(super) fn newer(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (application, version) = (pragma("application_id")?, pragma("user_version")?);
    if application != APPLICATION_ID || version <= VERSION {
        return Ok(None);
    }
    let expected = Connection::open_in_memory()?;
    create(&expected)?;
    Ok((tables(connection)? != tables(&expected)?).then_some(version))
}

/// The statements that make the tables of a database. The one of a heal is of no version.
fn tables(connection: &Connection) -> rusqlite::Result<Vec<Option<String>>> {
    let sql = "SELECT sql FROM main.sqlite_master WHERE name != 'healing' ORDER BY name";
    let mut select = connection.prepare(sql)?;
    select.query_map([], |row| row.get(0))?.collect()
}

/// Returns the reason why a database cannot be used as a catalog; `None` if it can be used.
pub(super) fn objection(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (application, version) = (pragma("application_id")?, pragma("user_version")?);
    Ok(if application != APPLICATION_ID {
        Some(FOREIGN.to_owned())
    } else if version > VERSION {
        let tables = format!("and has the tables of version {VERSION}");
        Some(format!("it says that it has format version {version}, {tables}"))
    } else if version < 1 {
        Some(format!("it has the impossible format version {version}"))
    } else if has_later_tables(connection)? {
        Some(format!("it says that it has format version {version}, and has tables of a later one"))
    } else {
        None
    })
}
