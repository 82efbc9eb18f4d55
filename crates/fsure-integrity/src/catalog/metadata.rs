//! The metadata of names, where it is asked for: a table of its own, that goes
//! where the records go.

use rusqlite::{OptionalExtension as _, params};

use super::row::StoredRow;
use super::row_checksum::RowChecksum;
use super::store::Catalog;
use super::table_total::CountedTable;
use crate::model::Metadata;
use fsure_core::{RelPath, Result};

/// Recorded metadata of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredMetadata {
    /// A row whose seal fits.
    Sound(Metadata),
    /// A row that cannot be believed.
    Bad,
}

impl Catalog {
    /// The metadata of a name, if it is recorded.
    pub fn metadata(&mut self, path: &RelPath) -> Result<Option<StoredMetadata>> {
        let Some((value, seal)) = self.metadata_row(path)? else { return Ok(None) };
        let is_sound = self.metadata_seal(path, &value) == seal;
        let metadata = Metadata::decode(&value).filter(|_| is_sound);
        Ok(Some(metadata.map_or(StoredMetadata::Bad, StoredMetadata::Sound)))
    }

    /// Gives a row what is recorded of its metadata.
    pub(super) fn add_metadata(&mut self, stored: &mut StoredRow) -> Result<()> {
        if let StoredRow::Sound(row) = stored
            && !self.choices.meta.is_empty()
        {
            row.metadata = self.metadata(&row.record.path)?.map(Box::new);
        }
        Ok(())
    }

    fn metadata_row(&self, path: &RelPath) -> Result<Option<(Vec<u8>, i64)>> {
        let sql = "SELECT value, seal FROM metadata WHERE path = ?1";
        let mut statement = self.connection.prepare_cached(sql).map_err(|e| self.blame(&e))?;
        let found = statement.query_row([path.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)));
        found.optional().map_err(|e| self.blame(&e))
    }

    /// Says what is wrong with the metadata taken together, and which rows of it
    /// fail their seal.
    pub(super) fn audit_metadata(&mut self) -> Result<Option<(String, Vec<RelPath>)>> {
        let recorded = self.table_totals.of(CountedTable::Metadata);
        let objection = CountedTable::Metadata.objection(&self.connection, recorded);
        let Some(why) = objection.map_err(|e| self.blame(&e))? else { return Ok(None) };
        let bad = self.bad_metadata().map_err(|e| self.blame(&e))?;
        Ok(Some((why, bad)))
    }

    fn bad_metadata(&self) -> rusqlite::Result<Vec<RelPath>> {
        let mut statement = self.connection.prepare("SELECT path, value, seal FROM metadata")?;
        let (mut rows, mut sealer, mut bad) =
            (statement.query([])?, RowChecksum::new(), Vec::new());
        while let Some(row) = rows.next()? {
            let (path, value): (Vec<u8>, Vec<u8>) = (row.get(0)?, row.get(1)?);
            let seal = sealer.bytes(Some(&path)).bytes(Some(&value)).seal().cast_signed();
            if seal != row.get::<_, i64>(2)? {
                bad.push(RelPath::from_bytes(path));
            }
        }
        Ok(bad)
    }

    fn metadata_seal(&mut self, path: &RelPath, value: &[u8]) -> i64 {
        self.sealer.bytes(Some(path.as_bytes())).bytes(Some(value)).seal().cast_signed()
    }

    /// Records the metadata of a name.
    pub fn put_metadata(&mut self, path: &RelPath, metadata: &Metadata) -> Result<()> {
        self.put_metadata_value(path, &metadata.encode())
    }

    fn put_metadata_value(&mut self, path: &RelPath, value: &[u8]) -> Result<()> {
        self.begin()?;
        self.has_changed = true;
        let seal = self.metadata_seal(path, value);
        if matches!(self.metadata(path)?, Some(StoredMetadata::Bad)) {
            // The total knows the row as it was written.
            self.needs_metadata_count = true;
        }
        self.forget_metadata(path)?;
        let sql = "INSERT INTO metadata VALUES (?1, ?2, ?3)";
        self.insert_counted(CountedTable::Metadata, sql, params![path.as_bytes(), value, seal])
    }

    /// Takes the metadata of a name to another name. What fails its seal stays
    /// behind and is told as not recorded.
    pub(super) fn move_metadata(&mut self, from: &RelPath, to: &RelPath) -> Result<()> {
        if self.choices.meta.is_empty() {
            return Ok(());
        }
        let found = self.metadata_row(from)?;
        if let Some((value, seal)) = found
            && self.metadata_seal(from, &value) == seal
        {
            self.put_metadata_value(to, &value)?;
        }
        Ok(())
    }

    /// Forgets the metadata of a name whose record goes.
    pub(super) fn forget_metadata(&mut self, path: &RelPath) -> Result<()> {
        if self.choices.meta.is_empty() {
            return Ok(());
        }
        let sql = "DELETE FROM metadata WHERE path = ?1";
        self.delete_counted(CountedTable::Metadata, sql, [path.as_bytes()])
    }
}

#[cfg(test)]
mod tests {
    use super::super::{RootOptions, RootSettings};
    use super::*;
    use crate::model::{
        Entry, EntryKind, FileSystemId, MetadataField, MetadataFields, MetadataValue, Record,
    };
    use fsure_core::{Algorithm, AlgorithmSet, Digests};
    use fsure_os::filesystem_id::Volume;
    use std::path::Path;

    #[test]
    fn it_goes_to_another_name_with_its_record_and_away_with_it() {
        let digests = AlgorithmSet::of(&[Algorithm::Blake3]);
        let settings = RootSettings { digests, cross_file_systems: false };
        let root = (Volume::unknown(), 1);
        let mut catalog = Catalog::temporary(Path::new("list"), settings, root).unwrap();
        let aspects = MetadataFields::of(&[MetadataField::Mode]);
        catalog.set_choices(RootOptions { meta: aspects, ..RootOptions::default() }).unwrap();
        let path = |name: &str| RelPath::from_bytes(name.as_bytes());
        let record = |name: &str| Record {
            path: path(name),
            entry: Entry {
                kind: EntryKind::Folder,
                size: 0,
                mtime_ns: 0,
                ctime_ns: None,
                birth_ns: None,
                inode: None,
                file_system: FileSystemId(1),
                target: None,
            },
            digests: Digests::default(),
            hashed_ns: 0,
            verified_s: 0,
            gone_s: None,
        };
        catalog.put(None, record("a"), &[]).unwrap();
        let value = MetadataValue::of(b"0755".to_vec());
        let metadata =
            Metadata { aspects, values: [((MetadataField::Mode, Vec::new()), value)].into() };
        catalog.put_metadata(&path("a"), &metadata).unwrap();
        let Some(crate::catalog::StoredRow::Sound(row)) = catalog.get(&path("a")).unwrap() else {
            panic!("a row");
        };
        catalog.put_moved(&row, record("b"), None).unwrap();
        assert_eq!(catalog.metadata(&path("a")).unwrap(), None);
        let kept = Some(StoredMetadata::Sound(metadata));
        assert_eq!(catalog.metadata(&path("b")).unwrap(), kept);
        catalog.delete(&path("b")).unwrap();
        assert_eq!(catalog.metadata(&path("b")).unwrap(), None);
    }
}
