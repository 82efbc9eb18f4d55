//! Recorded files of equal content, next to each other. SQLite sorts them, in a
//! file of its own if memory is not sufficient: only files that have an equal are
//! sorted, and no group is held in memory.

use rusqlite::params;

use super::row::{self, StoredRow};
use super::row_checksum::RowChecksum;
use super::store::Catalog;
use fsure_core::{Algorithm, RelPath, Result};

/// Calls `each` for every recorded file in `scope` that has the size and
/// digest of another one there: equal ones follow each other, and among
/// them the names of one inode. Empty files are equal and not reported. `each`
/// says whether to go on.
pub fn each_equal(
    catalog: &Catalog,
    algorithm: Algorithm,
    scope: &RelPath,
    each: &mut dyn FnMut(StoredRow) -> Result<bool>,
) -> Result<()> {
    let digest = algorithm.name();
    let files = format!(
        "kind = 0 AND gone_s IS NULL AND size > 0 AND {digest} IS NOT NULL \
         AND (path = ?1 OR (path >= ?2 AND (?3 IS NULL OR path < ?3)))"
    );
    let sql = format!(
        "SELECT {} FROM record WHERE {files} AND {digest} IN \
         (SELECT {digest} FROM record WHERE {files} GROUP BY {digest} HAVING count(*) > 1) \
         ORDER BY {digest}, size, file_system, inode, path",
        row::columns!()
    );
    let (start, end) = scope.below();
    let database = catalog.database();
    let error = |error: rusqlite::Error| database.error(&error);
    let mut sealer = RowChecksum::new();
    let mut statement = database.prepare(&sql)?;
    let mut rows = statement.query(params![scope.as_bytes(), start, end]).map_err(error)?;
    while let Some(sql_row) = rows.next().map_err(error)? {
        let (stored, _) = row::read(sql_row, &mut sealer).map_err(error)?;
        if !each(stored)? {
            break;
        }
    }
    Ok(())
}
