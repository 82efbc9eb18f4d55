//! CRC-32 values beside the records of a list that has nothing better. They are
//! no part of a record: only a catalog that is gone with its process has them,
//! so that nothing is ever believed for a checksum of 32 bits.

use rusqlite::{OptionalExtension as _, params};

use super::database::Database;
use super::row::StoredRow;
use crate::model::Record;
use fsure_core::{Algorithm, Error, Result};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS crc32 \
                     (path BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID";

/// The CRC-32 values of a catalog that is gone with its process.
#[derive(Debug, Default)]
pub(super) struct Crc32Values {
    has_any: bool,
}

impl Crc32Values {
    /// Keeps the CRC-32 of a record, if it has one. Refuses to write one into a file: no
    /// later run must believe it.
    pub(super) fn put(&mut self, database: &Database, record: &Record) -> Result<()> {
        let Some(value) = record.digests.get(Algorithm::Crc32) else { return Ok(()) };
        if !database.is_temporary() {
            return Err(Error::Internal("a CRC-32 was to be recorded in a catalog".to_owned()));
        }
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use fsure_os::filesystem_id::Volume;

    use super::*;
    use crate::catalog::{Catalog, RootSettings};
    use crate::model::{Entry, EntryKind, FileSystemId};
    use fsure_core::{AlgorithmSet, Digests, RelPath};

    #[test]
    fn no_file_ever_has_one() {
        let settings = RootSettings {
            digests: AlgorithmSet::of(&[Algorithm::Blake3]),
            cross_file_systems: false,
        };
        let record = || {
            let mut digests = Digests::default();
            digests.insert(Algorithm::Crc32, &[1, 2, 3, 4]);
            let entry = Entry {
                kind: EntryKind::File,
                size: 1,
                mtime_ns: 0,
                ctime_ns: None,
                birth_ns: None,
                inode: None,
                file_system: FileSystemId(1),
                target: None,
            };
            let path = RelPath::from_bytes(&b"a"[..]);
            Record { path, entry, digests, hashed_ns: 0, verified_s: 0, gone_s: None }
        };
        let root = || (Volume::unknown(), 1);
        let mut list = Catalog::temporary(Path::new("list"), settings, root()).unwrap();
        list.put(None, record(), &[]).unwrap();

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("catalog.db");
        Catalog::create(&file, settings, root(), 0).unwrap();
        let lock = Catalog::lock(&file, |_| Ok(())).unwrap();
        let mut catalog = Catalog::open(&file, Some(lock)).unwrap();
        assert!(catalog.put(None, record(), &[]).is_err());
        assert!(catalog.get(&RelPath::from_bytes(&b"a"[..])).unwrap().is_none());
    }
}
