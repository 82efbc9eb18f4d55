//! Block values of files over one block, and how far a run came inside files
//! it could not finish.

use std::ops::{Deref, DerefMut};

use rusqlite::params;
use rusqlite::types::ValueRef;

use super::database::Database;
use super::row::Row;
use super::row_checksum::RowChecksum;
use super::tables::Table;
use crate::model::Entry;
use fsure_core::{RelPath, Result};

/// Block values in one stored part: 256 KiB, 8 GiB of a file.
const VALUES_PER_PART: usize = 8192;

/// Values of consecutive blocks of a file that is not finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfinishedBlocks {
    /// Number of the first block.
    pub first_block: u64,
    /// Time at which the blocks were read, in nanoseconds since 1970.
    pub hashed_ns: i64,
    /// Its value and those of the blocks behind it.
    pub values: Vec<[u8; 32]>,
}

/// The lists of block values of recorded files.
pub struct BlockValues<D> {
    database: D,
}

impl<D: Deref<Target = Database>> BlockValues<D> {
    pub(super) fn new(database: D) -> Self {
        Self { database }
    }

    /// Returns the block values of a row; empty if it has none.
    pub fn of(&self, row: &Row) -> Result<Vec<[u8; 32]>> {
        let Some(list) = row.blocks else {
            return Ok(Vec::new());
        };
        let sql = "SELECT value FROM block WHERE list = ?1 ORDER BY part";
        self.database.run(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let (mut rows, mut values) = (statement.query([list])?, Vec::new());
            while let Some(row) = rows.next()? {
                // A part of another type yields nothing: the list then does not
                // merge to the sealed digest and is not used.
                let part = row.get_ref(0).ok().and_then(|value| value.as_blob().ok());
                values.extend_from_slice(as_values(part.unwrap_or_default()));
            }
            Ok(values)
        })
    }
}

impl<D: DerefMut<Target = Database>> BlockValues<D> {
    /// Writes a list of block values, in the open transaction, and returns its number.
    pub(super) fn insert(&mut self, values: &[[u8; 32]]) -> Result<i64> {
        let next = "SELECT coalesce(max(list), 0) + 1 FROM block";
        let insert = "INSERT INTO block VALUES (?1, ?2, ?3)";
        let list = self.database.run(|connection| {
            let mut next = connection.prepare_cached(next)?;
            let list: i64 = next.query_row([], |row| row.get(0))?;
            let mut insert = connection.prepare_cached(insert)?;
            for (part, values) in values.chunks(VALUES_PER_PART).enumerate() {
                insert.execute(params![list, part as i64, values.as_flattened()])?;
            }
            Ok(list)
        })?;
        for (part, values) in values.chunks(VALUES_PER_PART).enumerate() {
            let [list, part] = [list, part as i64].map(ValueRef::Integer);
            let values = [list, part, ValueRef::Blob(values.as_flattened())];
            self.database.back_up_put(Table::Block, &values);
        }
        Ok(list)
    }

    /// Deletes a list of block values, in the open transaction.
    pub(super) fn delete(&mut self, list: i64) -> Result<()> {
        let parts = self.database.execute("DELETE FROM block WHERE list = ?1", [list])?;
        for part in 0..parts as i64 {
            self.database.back_up_delete(Table::Block, &[list, part].map(ValueRef::Integer));
        }
        Ok(())
    }
}

/// The block values of files that no run has read to their end.
pub struct UnfinishedFiles<D> {
    database: D,
}

impl<D: Deref<Target = Database>> UnfinishedFiles<D> {
    pub(super) fn new(database: D) -> Self {
        Self { database }
    }

    /// Returns the block values that earlier runs kept of an unfinished file. Values are
    /// left out if the file has changed since.
    pub fn of(&self, path: &RelPath, entry: &Entry) -> Result<Vec<UnfinishedBlocks>> {
        let sql = "SELECT first_block, value, seal, hashed_ns FROM unfinished \
                   WHERE path = ?1 ORDER BY first_block";
        let mut sealer = RowChecksum::new();
        self.database.run(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let (mut rows, mut kept) = (statement.query([path.as_bytes()])?, Vec::new());
            while let Some(row) = rows.next()? {
                let value = row.get_ref(1)?.as_blob().unwrap_or_default();
                let blocks = UnfinishedBlocks {
                    first_block: row.get::<_, i64>(0)?.cast_unsigned(),
                    hashed_ns: row.get(3)?,
                    values: as_values(value).to_vec(),
                };
                let stored = row.get::<_, i64>(2)?.cast_unsigned();
                if seal(path, entry, &blocks, &mut sealer) == stored {
                    kept.push(blocks);
                }
            }
            Ok(kept)
        })
    }
}

impl<D: DerefMut<Target = Database>> UnfinishedFiles<D> {
    /// Keeps block values of a file that is being read, for a run that has to
    /// go on where this one ended.
    pub fn put(&mut self, path: &RelPath, entry: &Entry, blocks: &UnfinishedBlocks) -> Result<()> {
        self.database.begin()?;
        let seal = seal(path, entry, blocks, &mut RowChecksum::new());
        let sql = "INSERT OR REPLACE INTO unfinished VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        let values = params![
            path.as_bytes(),
            entry.size.cast_signed(),
            entry.mtime_ns,
            entry.ctime_ns,
            entry.inode.map(u64::cast_signed),
            blocks.first_block.cast_signed(),
            blocks.hashed_ns,
            blocks.values.as_flattened(),
            seal.cast_signed(),
        ];
        self.database.execute(sql, values).map(drop)
    }

    /// Forgets what was kept of a file, because it is finished.
    pub fn forget(&mut self, path: &RelPath) -> Result<()> {
        self.database.begin()?;
        let sql = "DELETE FROM unfinished WHERE path = ?1";
        self.database.execute(sql, [path.as_bytes()]).map(drop)
    }

    /// Forgets what was kept of any file, after a run that has seen them all.
    pub fn forget_all(&mut self) -> Result<()> {
        self.database.begin()?;
        self.database.execute("DELETE FROM unfinished", []).map(drop)
    }
}

fn as_values(bytes: &[u8]) -> &[[u8; 32]] {
    let (values, rest) = bytes.as_chunks();
    if rest.is_empty() { values } else { &[] }
}

/// The seal covers the stat, so that values of an older state never fit.
fn seal(path: &RelPath, entry: &Entry, blocks: &UnfinishedBlocks, sealer: &mut RowChecksum) -> u64 {
    sealer
        .bytes(Some(path.as_bytes()))
        .integer(Some(entry.size.cast_signed()))
        .integer(Some(entry.mtime_ns))
        .integer(entry.ctime_ns)
        .integer(entry.inode.map(u64::cast_signed))
        .integer(Some(blocks.first_block.cast_signed()))
        .integer(Some(blocks.hashed_ns))
        .bytes(Some(blocks.values.as_flattened()))
        .seal()
}
