//! SQLite by its own settings. Each commit is one transfer between two of a
//! hundred accounts: a row that says so, and two balances. So a commit that is
//! there in part shows, and not only one that is gone: the balances follow from
//! the transfers.

use std::io;
use std::path::Path;

use fsure_os::durable_write::Names;
use rusqlite::{Connection, ErrorCode, OpenFlags, params};

use super::{AckWriter, LastIntact};
use fsure_core::Random;
use fsure_core::{Error, IoContext as _, Result};

const FILE: &str = "bank.db";
const ACCOUNTS: u64 = 100;
const BALANCE: i64 = 1000;

const TABLES: &str = "
CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
CREATE TABLE transfer (
    n INTEGER PRIMARY KEY,
    sender INTEGER NOT NULL,
    receiver INTEGER NOT NULL,
    amount INTEGER NOT NULL
);
";

/// Accounts whose balance does not follow from the transfers.
const WRONG: &str = "
WITH moved AS (
    SELECT sender AS id, -amount AS amount FROM transfer
    UNION ALL SELECT receiver, amount FROM transfer
), due AS (SELECT id, sum(amount) AS amount FROM moved GROUP BY id)
SELECT count(*) FROM account LEFT JOIN due USING (id)
WHERE balance <> ?1 + coalesce(amount, 0)
";

/// Settings by which SQLite commits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pragmas {
    pub(super) journal_mode: &'static str,
    pub(super) synchronous: &'static str,
}

pub(super) fn run(pragmas: Pragmas, folder: &Path, acks: &mut AckWriter<'_>) -> Result<()> {
    let path = folder.join(FILE);
    let blame = |error: &rusqlite::Error| blame(&path, error);
    let mut connection = prepare(&path, pragmas).map_err(|e| blame(&e))?;
    // The commits are tested, and not the creation of the file.
    let names = Names::open(folder).and_then(|names| names.flush());
    names.context("flush the folder", folder)?;
    connection.pragma_update(None, "synchronous", pragmas.synchronous).map_err(|e| blame(&e))?;
    for number in 1.. {
        transfer(&mut connection, number).map_err(|e| blame(&e))?;
        if acks.acknowledge(number).is_break() {
            break;
        }
    }
    Ok(())
}

fn prepare(path: &Path, pragmas: Pragmas) -> rusqlite::Result<Connection> {
    let mut connection = Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", pragmas.journal_mode)?;
    connection.pragma_update(None, "synchronous", "EXTRA")?;
    let transaction = connection.transaction()?;
    transaction.execute_batch(TABLES)?;
    for id in 0..ACCOUNTS.cast_signed() {
        transaction.execute("INSERT INTO account VALUES (?1, ?2)", params![id, BALANCE])?;
    }
    transaction.commit()?;
    Ok(connection)
}

fn transfer(connection: &mut Connection, number: u64) -> rusqlite::Result<()> {
    let mut random = Random::new(number);
    let sender = random.below(ACCOUNTS);
    let receiver = (sender + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
    let [sender, receiver] = [sender, receiver].map(u64::cast_signed);
    let amount = 1 + random.below(100).cast_signed();
    let transaction = connection.transaction()?;
    {
        let mut insert =
            transaction.prepare_cached("INSERT INTO transfer VALUES (?1, ?2, ?3, ?4)")?;
        insert.execute(params![number.cast_signed(), sender, receiver, amount])?;
        let pay = "UPDATE account SET balance = balance + ?1 WHERE id = ?2";
        let mut pay = transaction.prepare_cached(pay)?;
        pay.execute(params![-amount, sender])?;
        pay.execute(params![amount, receiver])?;
    }
    transaction.commit()
}

fn blame(path: &Path, error: &rusqlite::Error) -> Error {
    let kind = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => io::ErrorKind::StorageFull,
        _ => io::ErrorKind::Other,
    };
    let source = io::Error::new(kind, error.to_string());
    Error::Io { doing: "commit to", path: path.to_owned(), source }
}

/// Checks the database after a cut. If there is none, or one without tables, the state is
/// that before the first commit: everything is lost, and nothing is damaged.
pub(super) fn check(folder: &Path) -> LastIntact {
    let path = folder.join(FILE);
    if !fsure_os::path::exists(&path) {
        return Ok(0);
    }
    look(&path).unwrap_or_else(|error| Err(error.to_string()))
}

/// Opens a database; returns the connection, and the fault that SQLite itself finds in
/// it, if any. The database is opened for writing: the content of its journal belongs to
/// it.
pub(super) fn objection(path: &Path) -> rusqlite::Result<(Connection, Option<String>)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    let sound: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    let why = || format!("integrity_check: {}", sound.trim().replace('\n', "; "));
    let objection = (sound != "ok").then(why);
    Ok((connection, objection))
}

fn look(path: &Path) -> rusqlite::Result<LastIntact> {
    let (connection, objection) = objection(path)?;
    if let Some(why) = objection {
        return Ok(Err(why));
    }
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    if number("SELECT count(*) FROM sqlite_schema")? == 0 {
        return Ok(Ok(0));
    }
    let last = number("SELECT coalesce(max(n), 0) FROM transfer")?;
    let count = number("SELECT count(*) FROM transfer")?;
    let sum = number("SELECT coalesce(sum(balance), 0) FROM account")?;
    let wrong = connection.query_row(WRONG, [BALANCE], |row| row.get::<_, i64>(0))?;
    let due = BALANCE * ACCOUNTS.cast_signed();
    Ok(if count != last {
        Err(format!("{} commits below number {last} are missing", last - count))
    } else if sum != due {
        Err(format!("the balances are {sum} together, not {due}"))
    } else if wrong > 0 {
        Err(format!("{wrong} balances do not follow from the transfers"))
    } else {
        Ok(last.cast_unsigned())
    })
}
