//! CRC-32 values beside the records of a list that has nothing better. They are
//! no part of a record: only a catalog that is gone with its process has them,
//! so that nothing is ever believed for a checksum of 32 bits.

use rusqlite::{OptionalExtension as _, params};

use super::row::StoredRow;
use super::store::Catalog;
use crate::model::Record;
use fsure_core::{Algorithm, Result};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS crc32 \
                     (path BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID";

impl Catalog {
    /// Keeps the CRC-32 of a record, if it has one.
    pub(super) fn keep_crc32(&mut self, record: &Record) -> Result<()> {
        let Some(value) = record.digests.get(Algorithm::Crc32) else { return Ok(()) };
        if !std::mem::replace(&mut self.has_crc32, true) {
            self.connection.execute_batch(TABLE).map_err(|e| self.blame(&e))?;
        }
        let sql = "INSERT OR REPLACE INTO crc32 VALUES (?1, ?2)";
        let mut statement = self.connection.prepare_cached(sql).map_err(|e| self.blame(&e))?;
        let values = params![record.path.as_bytes(), value];
        statement.execute(values).map(|_| ()).map_err(|e| self.blame(&e))
    }

    /// Gives a row the CRC-32 that is kept for it.
    pub(super) fn add_crc32(&self, stored: &mut StoredRow) -> Result<()> {
        let StoredRow::Sound(row) = stored else { return Ok(()) };
        if !self.has_crc32 {
            return Ok(());
        }
        let sql = "SELECT value FROM crc32 WHERE path = ?1";
        let mut statement = self.connection.prepare_cached(sql).map_err(|e| self.blame(&e))?;
        let path = row.record.path.as_bytes();
        let found = statement.query_row([path], |found| found.get::<_, [u8; 4]>(0));
        if let Some(value) = found.optional().map_err(|e| self.blame(&e))? {
            row.record.digests.insert(Algorithm::Crc32, &value);
        }
        Ok(())
    }
}
