//! Records of what is gone: dropped when they are old, with the room they took.

use rusqlite::params;

use super::row::{self, StoredRow};
use super::store::{Catalog, PAGE_ROWS};
use fsure_core::{RelPath, Result};

/// The file is made smaller if more than one of so many of its pages is free:
/// what is left is used again, and a file is not written anew for little.
const FREE_PAGES_SHARE: i64 = 4;

impl Catalog {
    /// Drops the tombstones at or below `scope` that were made until then. How many
    /// there were. One that fails its seal stays, to be told.
    pub fn forget_gone(&mut self, scope: &RelPath, until_s: i64) -> Result<u64> {
        let (_, end) = scope.below();
        let mut after: Option<RelPath> = None;
        let mut forgotten = 0;
        loop {
            let page = self.gone_page(after.as_ref(), scope, end.as_deref(), until_s)?;
            let Some(last) = page.last() else { return Ok(forgotten) };
            after = Some(last.path().clone());
            for stored in page {
                if let StoredRow::Sound(row) = stored
                    && row.record.path.is_within(scope)
                {
                    self.remove(&row)?;
                    forgotten += 1;
                }
            }
        }
    }

    fn gone_page(
        &mut self,
        after: Option<&RelPath>,
        scope: &RelPath,
        end: Option<&[u8]>,
        until_s: i64,
    ) -> Result<Vec<StoredRow>> {
        let sql = format!(
            "SELECT {} FROM record WHERE path >= ?1 AND (?2 IS NULL OR path > ?2) \
             AND (?3 IS NULL OR path < ?3) AND gone_s <= ?4 ORDER BY path LIMIT {PAGE_ROWS}",
            row::columns!()
        );
        let blame =
            |error: &rusqlite::Error| super::sqlite_error::map_sqlite_error(&self.file, error);
        let mut statement = self.connection.prepare_cached(&sql).map_err(|e| blame(&e))?;
        let values = params![scope.as_bytes(), after.map(RelPath::as_bytes), end, until_s];
        let mut rows = statement.query(values).map_err(|e| blame(&e))?;
        let mut page = Vec::new();
        while let Some(sql_row) = rows.next().map_err(|e| blame(&e))? {
            page.push(row::read(sql_row, &mut self.sealer).map_err(|e| blame(&e))?.0);
        }
        Ok(page)
    }

    /// Gives room back to the disk if there is much of it, in a transaction of
    /// SQLite's that is as safe as any other. Whether there was.
    pub fn shrink(&mut self) -> Result<bool> {
        let pages = |pragma| self.connection.pragma_query_value(None, pragma, |row| row.get(0));
        let counted = pages("freelist_count").and_then(|free| Ok((free, pages("page_count")?)));
        let (free, all): (i64, i64) = counted.map_err(|error| self.blame(&error))?;
        if free * FREE_PAGES_SHARE <= all {
            return Ok(false);
        }
        self.connection.execute_batch("VACUUM").map_err(|error| self.blame(&error))?;
        Ok(true)
    }
}
