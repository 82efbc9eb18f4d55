//! A record that goes from one name to another, with all it knows.

use super::row::{self, Row, StoredRow};
use super::store::Catalog;
use crate::model::Record;
use fsure_core::Result;

impl Catalog {
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
        self.move_metadata(&before.record.path, &record.path)?;
        self.move_finding(&before.record.path, &record.path)?;
        match blocks {
            Some(blocks) => {
                self.remove(before)?;
                self.put(None, record, blocks)
            }
            None => {
                self.remove_row(before)?;
                self.insert(record, before.blocks)
            }
        }
    }

    /// Takes away a row and its block values.
    pub fn remove(&mut self, row: &Row) -> Result<()> {
        self.remove_row(row)?;
        match row.blocks {
            Some(list) => self.delete_blocks(list),
            None => Ok(()),
        }
    }

    fn remove_row(&mut self, row: &Row) -> Result<()> {
        self.begin()?;
        self.has_changed = true;
        let sql = "DELETE FROM record WHERE path = ?1";
        let mut statement = self.connection.prepare_cached(sql).map_err(|e| self.blame(&e))?;
        let removed =
            statement.execute([row.record.path.as_bytes()]).map_err(|e| self.blame(&e))?;
        drop(statement);
        self.note_row_deleted(&row.record.path);
        if removed == 1 {
            self.root.totals.remove(row);
        }
        self.forget_own_change(&row.record.path)?;
        self.forget_finding(&row.record.path)?;
        self.forget_metadata(&row.record.path)
    }

    fn insert(&mut self, record: Record, blocks: Option<i64>) -> Result<()> {
        let row = Row::new(record, blocks, &mut self.sealer);
        self.write_row(row::INSERT, &row)?;
        self.root.totals.add(&row);
        Ok(())
    }
}
