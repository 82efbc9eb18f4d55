//! Remembers the signatures that this machine has seen, outside of any tree, so that an
//! old record is detected if it is put back with its old signature.

use std::path::Path;
use std::time::{Duration, Instant};

use fsure_os::lock::{self, Attempt};
use fsure_os::path as os_path;
use rusqlite::{Connection, MAIN_DB, OpenFlags, params};

use super::chain::{Chain, day};
use super::key::Verifier;
use super::statement::unhex;
use fsure_core::digest::hex;

/// `fstr` in ASCII: tells it from any other SQLite file.
const APPLICATION_ID: i64 = 0x6673_7472;

/// Maximum time to wait for another process.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);

const TABLE: &str = "
CREATE TABLE seen (
    place BLOB NOT NULL,
    key BLOB NOT NULL,
    chain TEXT NOT NULL,
    generation INTEGER NOT NULL,
    head TEXT NOT NULL,
    signed_s INTEGER NOT NULL,
    PRIMARY KEY (place, key)
) WITHOUT ROWID;
";

/// The memory of this machine.
pub(crate) struct SeenChains(Connection);

/// A chain as it was seen.
struct SeenChain {
    is_here: bool,
    chain: String,
    generation: u64,
    head: String,
    signed_s: i64,
}

impl SeenChains {
    /// Opens it, empty at first; else why it cannot be. One that is there and
    /// not whole is never taken for an empty one.
    pub(crate) fn open(file: &Path) -> Result<Self, String> {
        if !os_path::exists(file) {
            make(file)?;
        }
        let open = || -> rusqlite::Result<(Connection, i64)> {
            let connection = connect(file, OpenFlags::empty())?;
            let id = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
            Ok((connection, id))
        };
        match open() {
            Ok((connection, APPLICATION_ID)) => Ok(Self(connection)),
            Ok(_) => Err("it is not fsure's file of seen signatures".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Returns an error if nothing can be remembered: a run that judges for hours is not to find
    /// that out at its end.
    pub(crate) fn require_writable(&self) -> Result<(), String> {
        match self.0.is_readonly(MAIN_DB) {
            Ok(false) => Ok(()),
            Ok(true) => Err("it is read-only".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Returns the reason why a chain cannot be the one that was seen before; `None` if
    /// it can be.
    pub(crate) fn objection(
        &self,
        place: &[u8],
        key: &Verifier,
        chain: Option<&Chain>,
    ) -> Result<Option<String>, String> {
        let id = chain.map_or(String::new(), |chain| hex(&chain.newest.chain));
        let sql = "SELECT place = ?1, chain, generation, head, signed_s FROM seen \
                   WHERE key = ?2 AND (place = ?1 OR chain = ?3)";
        let read = || -> rusqlite::Result<Vec<SeenChain>> {
            let mut statement = self.0.prepare(sql)?;
            let rows = statement.query_map(params![place, key.bytes(), id], |row| {
                Ok(SeenChain {
                    is_here: row.get(0)?,
                    chain: row.get(1)?,
                    generation: row.get::<_, i64>(2)?.cast_unsigned(),
                    head: row.get(3)?,
                    signed_s: row.get(4)?,
                })
            })?;
            rows.collect()
        };
        let seen = read().map_err(|error| error.to_string())?;
        Ok(seen.iter().find_map(|seen| contradiction(seen, &id, chain)))
    }

    /// Remembers a chain for a place and a key.
    pub(crate) fn remember(
        &self,
        place: &[u8],
        key: &Verifier,
        chain: &Chain,
    ) -> Result<(), String> {
        let values = params![
            place,
            key.bytes(),
            hex(&chain.newest.chain),
            chain.newest.generation.cast_signed(),
            hex(&chain.head()),
            chain.newest.at_s,
        ];
        let sql = "INSERT OR REPLACE INTO seen VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        self.0.execute(sql, values).map(|_| ()).map_err(|error| error.to_string())
    }
}

fn connect(file: &Path, more: OpenFlags) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(LOCK_TIMEOUT)?;
    connection.pragma_update(None, "synchronous", "EXTRA")?;
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}

/// Makes an empty one, which comes to its name when it is whole. Two that begin
/// at once must not take away what the other has remembered.
fn make(file: &Path) -> Result<(), String> {
    let begun = Instant::now();
    let _lock = loop {
        match lock::try_lock(&os_path::with_suffix(file, ".lock"))
            .map_err(|error| error.to_string())?
        {
            Attempt::Locked(lock) => break lock,
            Attempt::HeldBy(holder) if begun.elapsed() > LOCK_TIMEOUT => {
                return Err(format!("{holder} has held its lock for too long"));
            }
            Attempt::HeldBy(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    if os_path::exists(file) {
        return Ok(());
    }
    let making = os_path::with_suffix(file, ".making");
    os_path::remove(&making, false);
    let made = connect(&making, OpenFlags::SQLITE_OPEN_CREATE).and_then(|connection| {
        connection.pragma_update(None, "application_id", APPLICATION_ID)?;
        connection.execute_batch(TABLE)
    });
    made.map_err(|error| error.to_string())?;
    os_path::rename(&making, file).map_err(|error| error.to_string())
}

fn contradiction(seen: &SeenChain, id: &str, chain: Option<&Chain>) -> Option<String> {
    let (number, day) = (seen.generation, day(seen.signed_s));
    let Some(chain) = chain.filter(|_| seen.chain == id) else {
        return Some(format!(
            "another record was signed here with this key: chain {}, generation {number} of {day}",
            seen.chain
        ));
    };
    let newest = chain.newest.generation;
    if newest < number {
        let at = if seen.is_here { "" } else { " at another place" };
        return Some(format!(
            "it is rolled back: generation {newest} is the last signed one here, while \
             generation {number} of {day} was seen{at} on this machine"
        ));
    }
    let head = unhex(&seen.head).unwrap_or_default();
    (!chain.holds(number, &head)).then(|| {
        format!("it does not continue generation {number} of {day}, as seen on this machine")
    })
}
