//! The rows of `record`: a record is written, renamed and deleted with its block values,
//! its metadata and its finding, and each change keeps the totals.

use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension as _, params};

use super::row::{self, PAGE_ROWS, Row, StoredRow};
use super::store::Catalog;
use super::table_total::CountedTable;
use super::tables::Table;
use crate::model::Record;
use fsure_core::{Algorithm, RelPath, Result};

/// Start of a page of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageStart<'a> {
    /// At this path or the first one after it.
    From(&'a [u8]),
    /// After this path.
    After(&'a [u8]),
}

impl Catalog {
    /// Returns rows in path order: at most [`PAGE_ROWS`] of those with
    /// `after < path` (or `first <= path`) and `path < end`.
    pub fn page(&mut self, from: &PageStart<'_>, end: Option<&[u8]>) -> Result<Vec<StoredRow>> {
        let (compare, start) = match from {
            PageStart::From(start) => (">=", *start),
            PageStart::After(start) => (">", *start),
        };
        // In one condition with "or no end", SQLite would look for the end in all rows.
        let to_end = end.map_or("", |_| " AND path < ?2");
        let sql = format!(
            "SELECT {} FROM record WHERE path {compare} ?1{to_end} ORDER BY path LIMIT {PAGE_ROWS}",
            row::columns!()
        );
        let (database, sealer) = (&self.database, &mut self.sealer);
        let mut page = database.run(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows = match end {
                Some(end) => statement.query(params![start, end])?,
                None => statement.query([start])?,
            };
            let mut page: Vec<StoredRow> = Vec::with_capacity(PAGE_ROWS);
            while let Some(sql_row) = rows.next()? {
                page.push(row::read(sql_row, sealer)?.0);
            }
            Ok(page)
        })?;
        let mut last = start;
        for stored in &page {
            if stored.path().as_bytes() < last {
                return Err(self.database.untrusted("its rows are out of order"));
            }
            last = stored.path().as_bytes();
        }
        for row in page.iter().filter_map(StoredRow::sound) {
            // An audit objects to a row of a file system that the catalog does not know.
            if self.knows_file_system(row.record.entry.file_system) {
                self.fetched.add(row);
            }
        }
        for stored in &mut page {
            self.verified_paths.add_to(stored);
            self.crc32.add_to(&self.database, stored)?;
            self.metadata().add_to(stored)?;
        }
        self.findings().add_to(&mut page)?;
        Ok(page)
    }

    /// Returns true if the rows that were fetched page by page are all rows of the
    /// catalog, each once and sound: they have then passed the checks of an audit. It is
    /// false if metadata is recorded: metadata is fetched by its key, which does not find
    /// a row that has lost its own.
    pub fn has_shown_all(&self) -> bool {
        self.fetched == self.root.totals && self.options.meta.is_empty()
    }

    /// Returns one row.
    pub fn get(&mut self, path: &RelPath) -> Result<Option<StoredRow>> {
        let sql = concat!("SELECT ", row::columns!(), " FROM record WHERE path = ?1");
        let (database, sealer) = (&self.database, &mut self.sealer);
        let mut found = database.run(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let read = |found: &rusqlite::Row<'_>| Ok(row::read(found, sealer)?.0);
            statement.query_row([path.as_bytes()], read).optional()
        })?;
        if let Some(stored) = &mut found {
            self.verified_paths.add_to(stored);
            self.crc32.add_to(&self.database, stored)?;
            self.metadata().add_to(stored)?;
            self.findings().add_to(std::slice::from_mut(stored))?;
        }
        Ok(found)
    }

    /// Writes a record in place of the row `before`, which must be what the
    /// catalog holds for that path, with the block values if it has any.
    pub fn put(&mut self, before: Option<&Row>, record: Record, blocks: &[[u8; 32]]) -> Result<()> {
        self.begin()?;
        if let Some(list) = before.and_then(|row| row.blocks) {
            self.block_values_mut().delete(list)?;
        }
        let list = match blocks.is_empty() {
            true => None,
            false => Some(self.block_values_mut().insert(blocks)?),
        };
        self.replace(before, record, list)
    }

    /// Writes a record with the same content as the row it replaces, so that
    /// the block values stay as they are.
    pub fn put_same_content(&mut self, before: &Row, record: Record) -> Result<()> {
        self.begin()?;
        if !before.is_seen_again(&record) {
            return self.replace(Some(before), record, before.blocks);
        }
        let row = Row::new(record, before.blocks, &mut self.sealer);
        self.verified_paths.exclude_if_later(&row);
        let mut statement = self.database.prepare(row::SEE_AGAIN)?;
        let written = row::write_seen_again(&mut statement, &row);
        match written.map_err(|error| self.database.error(&error))? {
            1 => self.root.totals.replace(before, &row),
            _ => return Err(self.database.untrusted("a row that was read is gone")),
        }
        Ok(())
    }

    fn replace(&mut self, before: Option<&Row>, record: Record, blocks: Option<i64>) -> Result<()> {
        self.crc32.put(&self.database, &record)?;
        let row = Row::new(record, blocks, &mut self.sealer);
        if before.is_none_or(|before| !before.claims_same_as(&row)) {
            self.database.note_changed_claim();
        }
        // A row that the caller does not know of is not replaced: it would be
        // lost, and the totals with it.
        let sql = if before.is_some() { row::REPLACE } else { row::INSERT };
        self.write(sql, &row)?;
        match before {
            Some(before) => self.root.totals.replace(before, &row),
            None => self.root.totals.add(&row),
        }
        Ok(())
    }

    /// Runs a statement that puts a row, and notes the row for the backup.
    fn write(&mut self, sql: &str, row: &Row) -> Result<()> {
        self.verified_paths.exclude_if_later(row);
        let values = row::values(row);
        let mut statement = self.database.prepare(sql)?;
        let written = row::write(&mut statement, &values);
        drop(statement);
        written.map_err(|error| self.database.error(&error))?;
        self.database.back_up_put(Table::Record, &values);
        Ok(())
    }

    /// Writes a record under another path than the row `before` it comes from,
    /// which is taken away: what is believed of a file is believed of one name.
    /// `blocks` are its block values if they are others than before.
    pub fn put_moved(
        &mut self,
        before: &Row,
        record: Record,
        blocks: Option<&[[u8; 32]]>,
    ) -> Result<()> {
        self.begin()?;
        match self.get(&record.path)? {
            Some(StoredRow::Sound(tombstone)) => self.remove(&tombstone)?,
            Some(StoredRow::Bad(path)) => self.delete(&path)?,
            None => {}
        }
        self.metadata_mut().rename(&before.record.path, &record.path)?;
        self.findings_mut().rename(&before.record.path, &record.path)?;
        match blocks {
            Some(blocks) => {
                self.remove(before)?;
                self.put(None, record, blocks)
            }
            None => {
                self.remove_row(before)?;
                let row = Row::new(record, before.blocks, &mut self.sealer);
                self.write(row::INSERT, &row)?;
                self.root.totals.add(&row);
                Ok(())
            }
        }
    }

    /// Takes away a row and its block values.
    pub fn remove(&mut self, row: &Row) -> Result<()> {
        self.remove_row(row)?;
        match row.blocks {
            Some(list) => self.block_values_mut().delete(list),
            None => Ok(()),
        }
    }

    fn remove_row(&mut self, row: &Row) -> Result<()> {
        if self.delete_row(&row.record.path)? == 1 {
            self.root.totals.remove(row);
        }
        Ok(())
    }

    /// Removes a row, whatever it is.
    pub fn delete(&mut self, path: &RelPath) -> Result<()> {
        self.recount_at_commit();
        self.delete_row(path).map(drop)
    }

    /// Deletes a row with what is noted of its path, and returns the number of deleted rows.
    fn delete_row(&mut self, path: &RelPath) -> Result<usize> {
        self.begin()?;
        self.database.note_changed_claim();
        let sql = "DELETE FROM record WHERE path = ?1";
        let deleted = self.database.execute(sql, [path.as_bytes()])?;
        self.database.back_up_delete(Table::Record, &[ValueRef::Blob(path.as_bytes())]);
        self.own_changes_mut().forget(path)?;
        self.findings_mut().forget(path)?;
        self.metadata_mut().forget(path)?;
        Ok(deleted)
    }

    /// Replaces a row that fails its seal.
    pub fn put_over_bad(&mut self, record: Record, blocks: &[[u8; 32]]) -> Result<()> {
        self.delete(&record.path)?;
        self.put(None, record, blocks)
    }

    /// Notes what was recorded against advice, in the same transaction.
    pub fn note_accepted(
        &mut self,
        at_s: i64,
        path: &RelPath,
        verdict: &str,
        before: Option<&Record>,
        after: Option<&Record>,
    ) -> Result<()> {
        self.begin()?;
        let blake3 = |record: Option<&Record>| {
            record.and_then(|record| record.digests.get(Algorithm::Blake3).map(<[u8]>::to_vec))
        };
        let sql = "INSERT INTO accepted VALUES (?1, ?2, ?3, ?4, ?5)";
        let values = params![at_s, path.as_bytes(), verdict, blake3(before), blake3(after)];
        self.database.insert_counted(CountedTable::Accepted, sql, values)
    }
}
