//! Classifies the errors of SQLite for a user who relies on the record: the catalog is
//! damaged, it cannot be written, or this program is at fault.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags};

use fsure_os::machine::is_full;
use fsure_os::path as os_path;

use super::own_names::OWN_CATALOG;
use super::reject_special_files::refuse_irregular;
use fsure_core::{Error, ROOM_HINT, Result, shell_quoted};

/// The objection to a file of something else.
pub(super) const FOREIGN: &str = "it is not a catalog of fsure, or its first page is damaged";

/// Memory for pages, as SQLite takes it: KiB, negative. Rows are read from one
/// end to the other, so that a page that was left behind is not wanted again;
/// memory for it would only be touched for nothing.
pub(super) const CACHE_KIB_TO_READ: i64 = -2_048;

/// The same while rows are written, which come in the order of the disk:
/// enough for the inner pages of 10^8 rows.
pub(super) const CACHE_KIB_TO_WRITE: i64 = -16_384;

/// Opens a database file with the settings of `docs/catalog.md`, or one without a name.
pub(super) fn connect(file: &Path, extra: OpenFlags) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | extra;
    if !file.as_os_str().is_empty() {
        refuse_irregular(file)?;
    }
    let open = || {
        let connection = Connection::open_with_flags(file, flags)?;
        let may_write = !connection.is_readonly(MAIN_DB)?;
        connection.busy_timeout(Duration::from_secs(600))?;
        // With FULL, a cut brings back the journal that a commit has removed, and
        // with it undoes the commit: 18 of 36 cuts lost up to a second of it.
        connection.pragma_update(None, "synchronous", "EXTRA")?;
        connection.pragma_update(None, "fullfsync", true)?;
        connection.pragma_update(None, "cache_size", CACHE_KIB_TO_READ)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        connection.pragma_update(None, "cell_size_check", true)?;
        let can_write = !connection.is_readonly(MAIN_DB)?;
        Ok((connection, may_write && !can_write))
    };
    // The system permits writing, and SQLite does not after a look at the header: the header
    // names a write version that does not exist, which one flipped bit does. fsure does not
    // open the file to see that: on closing it, this process would lose all its locks on it.
    match open().map_err(|error| map_sqlite_error(file, &error))? {
        (_, true) => Err(untrusted(file, "it is damaged (its write version)".to_owned())),
        (connection, false) => Ok(connection),
    }
}

/// Returns the reason why a database file is not as SQLite left it: it ends within a page.
/// SQLite takes what is missing of its last page for zeros, which is right by chance only.
pub(super) fn length_objection(
    connection: &Connection,
    file: &Path,
) -> rusqlite::Result<Option<String>> {
    // A transaction keeps other processes from writing, and takes back what one left half done.
    let reading = connection.unchecked_transaction()?;
    let page_size: i64 = reading.pragma_query_value(None, "page_size", |row| row.get(0))?;
    reading.query_row("SELECT count(*) FROM main.sqlite_master", [], |_| Ok(()))?;
    // A database without a name has no length.
    let length = os_path::length(file).unwrap_or(0);
    reading.commit()?;
    let why = || format!("its length of {length} bytes is not a whole number of pages");
    Ok((!length.is_multiple_of(page_size.unsigned_abs())).then(why))
}

/// A transaction has to be rolled back, but the medium does not permit writing.
const SQLITE_READONLY_ROLLBACK: i32 = 776;

/// Converts an error of SQLite into the error that the run reports.
pub(super) fn map_sqlite_error(file: &Path, error: &rusqlite::Error) -> Error {
    use ErrorCode::{
        CannotOpen, ConstraintViolation, DatabaseBusy, DatabaseCorrupt, DiskFull, NotADatabase,
        ReadOnly, SchemaChanged, SystemIoFailure, TypeMismatch, Unknown,
    };
    let code = match error {
        rusqlite::Error::SqlInputError { error, .. } => Some(error.code),
        other => other.sqlite_error_code(),
    };
    match code {
        Some(NotADatabase) => foreign(file),
        // The last ones: statements that fit the tables of `schema.rs` do not
        // fit those in the file (`SQLITE_ERROR`: no such table, a schema that
        // cannot be parsed).
        Some(DatabaseCorrupt | ConstraintViolation | SchemaChanged | TypeMismatch | Unknown) => {
            untrusted(file, format!("it is damaged ({error})"))
        }
        // A stored value is of another type than its column: one flipped bit of a
        // row's header does that, and SQLite does not mind.
        None if is_of_wrong_type(error) => untrusted(file, format!("it is damaged ({error})")),
        Some(DiskFull) => not_written_because(file, "the disk is full", ROOM_HINT),
        _ if error.sqlite_error().is_some_and(|e| e.extended_code == SQLITE_READONLY_ROLLBACK) => {
            Error::RecordUntrusted {
                catalog: file.to_owned(),
                why: "it was being written when its medium became read-only".to_owned(),
                hint: "copy it and the -journal beside it to a place that can be written, and \
                       name the copy by '--catalog FILE'"
                    .to_owned(),
                is_recoverable: false,
            }
        }
        // SQLite opens a file anew, or a journal beside it, and does not tell why it cannot.
        Some(CannotOpen) if file.parent().is_some_and(is_full) => {
            not_written_because(file, "the disk is full", ROOM_HINT)
        }
        Some(ReadOnly | CannotOpen) => not_written(file, error),
        Some(DatabaseBusy) => not_written_because(
            file,
            "another program keeps it locked",
            "run the same command again when that program has ended",
        ),
        // The disk does not give what is in the file, or what it gives is not a file.
        Some(SystemIoFailure) if is_unreadable(error) => {
            untrusted(file, format!("a part of it cannot be read ({error})"))
        }
        Some(SystemIoFailure) => not_written_because(
            file,
            &error.to_string(),
            "check the disk it lies on, and your quota there",
        ),
        _ => Error::Internal(format!("{}: {error}", file.display())),
    }
}

/// Tells a file that cannot be read from one that cannot be written: `SQLITE_IOERR_READ`,
/// `SQLITE_IOERR_SHORT_READ` and `SQLITE_IOERR_CORRUPTFS`, which stands for `EIO`.
fn is_unreadable(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| matches!(error.extended_code, 266 | 522 | 8458))
}

/// Tells a stored value that does not have the type of its column from a fault
/// of this program.
fn is_of_wrong_type(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{
        FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnIndex, InvalidColumnType,
        Utf8Error,
    };
    matches!(
        error,
        FromSqlConversionFailure(..)
            | IntegralValueOutOfRange(..)
            | InvalidColumnIndex(..)
            | InvalidColumnType(..)
            | Utf8Error(..)
    )
}

/// The record cannot be believed.
pub(crate) fn untrusted(file: &Path, why: String) -> Error {
    Error::RecordUntrusted {
        catalog: file.to_owned(),
        why,
        hint: "nothing was written; to restore it from its sound pages and its backup".to_owned(),
        is_recoverable: true,
    }
}

/// The catalog is gone, and its backup is not.
pub(super) fn lost(file: &Path) -> Error {
    let backup = os_path::with_suffix(file, ".backup");
    let away = os_path::with_suffix(&backup, ".away");
    Error::RecordUntrusted {
        catalog: file.to_owned(),
        why: "it is gone, and the files left beside it show that it existed".to_owned(),
        hint: format!(
            "if it was moved, name its new place with '--catalog FILE'; to begin a new record, move \
             the backup away: mv {} {}; to restore the record from its backup instead",
            shell_quoted(&backup),
            shell_quoted(&away),
        ),
        is_recoverable: true,
    }
}

/// The file is not a catalog, or the first page of one is damaged.
pub(super) fn foreign(file: &Path) -> Error {
    let mut error = untrusted(file, FOREIGN.to_owned());
    if let Error::RecordUntrusted { hint, .. } = &mut error
        && !file.ends_with(OWN_CATALOG)
    {
        *hint =
            "nothing was written; if '--catalog' names the wrong file, name the right one; if it \
                 was a catalog, to restore it from its sound pages and its backup"
                .to_owned();
    }
    error
}

/// The record cannot be written where it is.
pub(super) fn not_written(file: &Path, why: &impl std::fmt::Display) -> Error {
    Error::record_not_writable(file, why)
}

pub(super) fn not_written_because(file: &Path, why: &str, hint: &str) -> Error {
    Error::RecordNotWritten { catalog: file.to_owned(), why: why.to_owned(), hint: hint.to_owned() }
}
