//! Block values of files over one block, and how far a run came inside files
//! it could not finish.

use rusqlite::params;
use rusqlite::types::ValueRef;

use super::row::Row;
use super::row_checksum::RowChecksum;
use super::store::Catalog;
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

impl Catalog {
    /// The block values of a row; empty where it has none.
    pub fn blocks(&mut self, row: &Row) -> Result<Vec<[u8; 32]>> {
        let Some(list) = row.blocks else {
            return Ok(Vec::new());
        };
        let sql = "SELECT value FROM block WHERE list = ?1 ORDER BY part";
        let blame = |error: &rusqlite::Error| self.blame(error);
        let mut statement = self.connection.prepare_cached(sql).map_err(|e| blame(&e))?;
        let mut rows = statement.query([list]).map_err(|e| blame(&e))?;
        let mut values = Vec::new();
        while let Some(row) = rows.next().map_err(|e| blame(&e))? {
            // A part of another type yields nothing: the list then does not
            // merge to the sealed digest and is not used.
            let part = row.get_ref(0).ok().and_then(|value| value.as_blob().ok());
            values.extend_from_slice(as_values(part.unwrap_or_default()));
        }
        Ok(values)
    }

    pub(super) fn insert_blocks(&mut self, values: &[[u8; 32]]) -> Result<i64> {
        let next = "SELECT coalesce(max(list), 0) + 1 FROM block";
        let insert = "INSERT INTO block VALUES (?1, ?2, ?3)";
        let run = || {
            let mut next = self.connection.prepare_cached(next)?;
            let list: i64 = next.query_row([], |row| row.get(0))?;
            let mut insert = self.connection.prepare_cached(insert)?;
            for (part, values) in values.chunks(VALUES_PER_PART).enumerate() {
                insert.execute(params![list, part as i64, values.as_flattened()])?;
            }
            Ok(list)
        };
        let list = run().map_err(|error| self.blame(&error))?;
        if let Some(backup) = &mut self.backup {
            for (part, values) in values.chunks(VALUES_PER_PART).enumerate() {
                let [list, part] = [list, part as i64].map(ValueRef::Integer);
                let values = [list, part, ValueRef::Blob(values.as_flattened())];
                backup.put_values(Table::Block, &values);
            }
        }
        Ok(list)
    }

    pub(super) fn delete_blocks(&mut self, list: i64) -> Result<()> {
        let sql = "DELETE FROM block WHERE list = ?1";
        let parts = self.connection.execute(sql, [list]).map_err(|e| self.blame(&e))?;
        if let Some(backup) = &mut self.backup {
            for part in 0..parts as i64 {
                backup.delete(Table::Block, &[list, part].map(ValueRef::Integer));
            }
        }
        Ok(())
    }

    /// Keeps block values of a file that is being read, for a run that has to
    /// go on where this one ended.
    pub fn put_unfinished(
        &mut self,
        path: &RelPath,
        entry: &Entry,
        blocks: &UnfinishedBlocks,
    ) -> Result<()> {
        self.begin()?;
        let seal = seal(path, entry, blocks, &mut self.sealer);
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
        self.connection.execute(sql, values).map_err(|e| self.blame(&e))?;
        Ok(())
    }

    /// Returns the block values that earlier runs kept of an unfinished file. Values are
    /// left out if the file has changed since.
    pub fn unfinished(&mut self, path: &RelPath, entry: &Entry) -> Result<Vec<UnfinishedBlocks>> {
        let sql = "SELECT first_block, value, seal, hashed_ns FROM unfinished \
                   WHERE path = ?1 ORDER BY first_block";
        let blame = |error: &rusqlite::Error| self.blame(error);
        let mut statement = self.connection.prepare_cached(sql).map_err(|e| blame(&e))?;
        let rows = statement.query_map([path.as_bytes()], |row| {
            let value = row.get_ref(1)?.as_blob().map(<[u8]>::to_vec).unwrap_or_default();
            Ok((row.get::<_, i64>(0)?, value, row.get::<_, i64>(2)?, row.get(3)?))
        });
        let mut kept = Vec::new();
        for row in rows.map_err(|e| blame(&e))? {
            let (first_block, value, stored, hashed_ns) = row.map_err(|e| blame(&e))?;
            let values = as_values(&value).to_vec();
            let first_block = first_block.cast_unsigned();
            kept.push((UnfinishedBlocks { first_block, hashed_ns, values }, stored));
        }
        drop(statement);
        let sealer = &mut self.sealer;
        let fits = |(blocks, stored): &(UnfinishedBlocks, i64)| {
            seal(path, entry, blocks, sealer) == stored.cast_unsigned()
        };
        Ok(kept.into_iter().filter(fits).map(|(blocks, _)| blocks).collect())
    }

    /// Forgets what was kept of a file, because it is finished.
    pub fn forget_unfinished(&mut self, path: &RelPath) -> Result<()> {
        self.begin()?;
        let sql = "DELETE FROM unfinished WHERE path = ?1";
        self.connection.execute(sql, [path.as_bytes()]).map_err(|e| self.blame(&e))?;
        Ok(())
    }
}

impl Catalog {
    /// Forgets what was kept of any file, after a run that has seen them all.
    pub fn forget_all_unfinished(&mut self) -> Result<()> {
        self.begin()?;
        self.connection.execute("DELETE FROM unfinished", []).map_err(|e| self.blame(&e))?;
        Ok(())
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
