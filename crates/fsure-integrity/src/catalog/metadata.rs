//! The metadata of names, where it is asked for: a table of its own, that goes
//! where the records go.

use std::ops::{Deref, DerefMut};

use rusqlite::{Connection, OptionalExtension as _, params};

use super::database::Database;
use super::row::{StoredMetadata, StoredRow};
use super::row_checksum::RowChecksum;
use super::table_total::CountedTable;
use crate::model::Metadata;
use fsure_core::{RelPath, Result};

/// The recorded metadata of names.
pub struct MetadataTable<D> {
    database: D,
    /// True if the root's options ask for metadata.
    is_recorded: bool,
}

impl<D: Deref<Target = Database>> MetadataTable<D> {
    pub(super) fn new(database: D, is_recorded: bool) -> Self {
        Self { database, is_recorded }
    }

    /// Returns the metadata of a name, if it is recorded.
    pub fn of(&self, path: &RelPath) -> Result<Option<StoredMetadata>> {
        let Some((value, seal)) = self.row(path)? else { return Ok(None) };
        let is_sound = seal_of(path.as_bytes(), &value) == seal;
        let metadata = Metadata::decode(&value).filter(|_| is_sound);
        Ok(Some(metadata.map_or(StoredMetadata::Bad, StoredMetadata::Sound)))
    }

    /// Gives a row what is recorded of its metadata.
    pub(super) fn add_to(&self, stored: &mut StoredRow) -> Result<()> {
        if let StoredRow::Sound(row) = stored
            && self.is_recorded
        {
            row.metadata = self.of(&row.record.path)?.map(Box::new);
        }
        Ok(())
    }

    fn row(&self, path: &RelPath) -> Result<Option<(Vec<u8>, i64)>> {
        let sql = "SELECT value, seal FROM metadata WHERE path = ?1";
        self.database.run(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let found =
                statement.query_row([path.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)));
            found.optional()
        })
    }

    /// Says what is wrong with the metadata taken together, and which rows of it
    /// fail their seal.
    pub(super) fn audit(&self) -> Result<Option<(String, Vec<RelPath>)>> {
        let Some(why) = self.database.objection(CountedTable::Metadata)? else { return Ok(None) };
        let bad = self.database.run(bad_rows)?;
        Ok(Some((why, bad)))
    }
}

impl<D: DerefMut<Target = Database>> MetadataTable<D> {
    /// Records the metadata of a name.
    pub fn put(&mut self, path: &RelPath, metadata: &Metadata) -> Result<()> {
        self.put_value(path, &metadata.encode())
    }

    fn put_value(&mut self, path: &RelPath, value: &[u8]) -> Result<()> {
        self.database.begin()?;
        self.database.note_changed_claim();
        let seal = seal_of(path.as_bytes(), value);
        if matches!(self.of(path)?, Some(StoredMetadata::Bad)) {
            // The total knows the row as it was written.
            self.database.recount_metadata_at_commit();
        }
        self.forget(path)?;
        let sql = "INSERT INTO metadata VALUES (?1, ?2, ?3)";
        let values = params![path.as_bytes(), value, seal];
        self.database.insert_counted(CountedTable::Metadata, sql, values)
    }

    /// Takes the metadata of a name to another name. What fails its seal stays
    /// behind and is reported as not recorded.
    pub(super) fn rename(&mut self, from: &RelPath, to: &RelPath) -> Result<()> {
        if !self.is_recorded {
            return Ok(());
        }
        let found = self.row(from)?;
        if let Some((value, seal)) = found
            && seal_of(from.as_bytes(), &value) == seal
        {
            self.put_value(to, &value)?;
        }
        Ok(())
    }

    /// Forgets the metadata of a name whose record goes.
    pub(super) fn forget(&mut self, path: &RelPath) -> Result<()> {
        if !self.is_recorded {
            return Ok(());
        }
        let sql = "DELETE FROM metadata WHERE path = ?1";
        self.database.delete_counted(CountedTable::Metadata, sql, [path.as_bytes()])
    }
}

fn bad_rows(connection: &Connection) -> rusqlite::Result<Vec<RelPath>> {
    let mut statement = connection.prepare("SELECT path, value, seal FROM metadata")?;
    let (mut rows, mut bad) = (statement.query([])?, Vec::new());
    while let Some(row) = rows.next()? {
        let (path, value): (Vec<u8>, Vec<u8>) = (row.get(0)?, row.get(1)?);
        if seal_of(&path, &value) != row.get::<_, i64>(2)? {
            bad.push(RelPath::from_bytes(path));
        }
    }
    Ok(bad)
}

fn seal_of(path: &[u8], value: &[u8]) -> i64 {
    RowChecksum::new().bytes(Some(path)).bytes(Some(value)).seal().cast_signed()
}

#[cfg(test)]
mod tests {
    use super::super::database::tests::record;
    use super::super::{Catalog, RootOptions, RootSettings};
    use super::*;
    use crate::model::{MetadataField, MetadataFields, MetadataValue};
    use fsure_core::{Algorithm, AlgorithmSet};
    use fsure_os::filesystem_id::Volume;
    use std::path::Path;

    #[test]
    fn it_goes_to_another_name_with_its_record_and_away_with_it() {
        let digests = AlgorithmSet::of(&[Algorithm::Blake3]);
        let settings = RootSettings { digests, cross_file_systems: false };
        let root = (Volume::unknown(), 1);
        let mut catalog = Catalog::temporary(Path::new("list"), settings, root).unwrap();
        let aspects = MetadataFields::of(&[MetadataField::Mode]);
        catalog.set_options(RootOptions { meta: aspects, ..RootOptions::default() }).unwrap();
        let path = |name: &str| RelPath::from_bytes(name.as_bytes());
        catalog.put(None, record("a"), &[]).unwrap();
        let value = MetadataValue::of(b"0755".to_vec());
        let metadata =
            Metadata { aspects, values: [((MetadataField::Mode, Vec::new()), value)].into() };
        catalog.metadata_mut().put(&path("a"), &metadata).unwrap();
        let Some(crate::catalog::StoredRow::Sound(row)) = catalog.get(&path("a")).unwrap() else {
            panic!("a row");
        };
        catalog.put_moved(&row, record("b"), None).unwrap();
        assert_eq!(catalog.metadata().of(&path("a")).unwrap(), None);
        let kept = Some(StoredMetadata::Sound(metadata));
        assert_eq!(catalog.metadata().of(&path("b")).unwrap(), kept);
        catalog.delete(&path("b")).unwrap();
        assert_eq!(catalog.metadata().of(&path("b")).unwrap(), None);
    }
}
