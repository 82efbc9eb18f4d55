//! CRC-32 values beside the records of a list that has nothing better. They are
//! no part of a record: only a catalog that is gone with its process has them,
//! so that nothing is ever believed for a checksum of 32 bits.

use rusqlite::{OptionalExtension as _, params};

use super::database::Database;
use super::row::StoredRow;
use crate::model::Record;
use fsure_core::{Algorithm, Result};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS crc32 \
                     (path BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID";

/// The CRC-32 values of a catalog that is gone with its process.
#[derive(Debug, Default)]
pub(super) struct Crc32Values {
    has_any: bool,
}

impl Crc32Values {
    /// Keeps the CRC-32 of a record, if it has one.
    pub(super) fn put(&mut self, database: &Database, record: &Record) -> Result<()> {
        let Some(value) = record.digests.get(Algorithm::Crc32) else { return Ok(()) };
        if !std::mem::replace(&mut self.has_any, true) {
            database.run(|connection| connection.execute_batch(TABLE))?;
        }
        let sql = "INSERT OR REPLACE INTO crc32 VALUES (?1, ?2)";
        database.execute(sql, params![record.path.as_bytes(), value]).map(drop)
    }

    /// Gives a row the CRC-32 that is kept for it.
    pub(super) fn add_to(&self, database: &Database, stored: &mut StoredRow) -> Result<()> {
        let StoredRow::Sound(row) = stored else { return Ok(()) };
        if !self.has_any {
            return Ok(());
        }
        let sql = "SELECT value FROM crc32 WHERE path = ?1";
        let path = row.record.path.as_bytes();
        let found = database.run(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            statement.query_row([path], |found| found.get::<_, [u8; 4]>(0)).optional()
        })?;
        if let Some(value) = found {
            row.record.digests.insert(Algorithm::Crc32, &value);
        }
        Ok(())
    }
}
