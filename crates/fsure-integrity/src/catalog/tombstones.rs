//! Records of what is gone: dropped when they are old.

use rusqlite::params;

use super::row::{self, PAGE_ROWS, StoredRow};
use super::row_checksum::RowChecksum;
use super::store::Catalog;
use fsure_core::{RelPath, Result};

/// Drops the tombstones at or below `scope` that were made until then, and returns how many
/// there were. One that fails its seal stays, to be reported.
pub fn forget_tombstones(catalog: &mut Catalog, scope: &RelPath, until_s: i64) -> Result<u64> {
    let mut after: Option<RelPath> = None;
    let mut forgotten = 0;
    loop {
        let page = page(catalog, after.as_ref(), scope, until_s)?;
        let Some(last) = page.last() else { return Ok(forgotten) };
        after = Some(last.path().clone());
        for stored in page {
            if let StoredRow::Sound(row) = stored
                && row.record.path.is_within(scope)
            {
                catalog.remove(&row)?;
                forgotten += 1;
            }
        }
    }
}

fn page(
    catalog: &Catalog,
    after: Option<&RelPath>,
    scope: &RelPath,
    until_s: i64,
) -> Result<Vec<StoredRow>> {
    let (compare, start) = match after {
        None => (">=", scope),
        Some(after) => (">", after),
    };
    let (_, end) = scope.below();
    // In one condition with "or no end", SQLite would look for the end in all rows.
    let to_end = end.as_ref().map_or("?2 IS NULL", |_| "path < ?2");
    let sql = format!(
        "SELECT {} FROM record WHERE path {compare} ?1 AND {to_end} AND gone_s <= ?3 \
         ORDER BY path LIMIT {PAGE_ROWS}",
        row::columns!()
    );
    let mut sealer = RowChecksum::new();
    catalog.database().run(|connection| {
        let mut statement = connection.prepare_cached(&sql)?;
        let values = params![start.as_bytes(), end, until_s];
        let (mut rows, mut page) = (statement.query(values)?, Vec::new());
        while let Some(sql_row) = rows.next()? {
            page.push(row::read(sql_row, &mut sealer)?.0);
        }
        Ok(page)
    })
}
