//! The number of files that an update that was cut off had recorded under another date
//! with their recorded content. The one that goes on must know: to it they look
//! as if they had never had another date.

use rusqlite::{OptionalExtension as _, params};

use super::store::Catalog;
use super::table_total::Counted;
use crate::words::{RelPath, Result};

impl Catalog {
    /// The number that an update of this scope left behind, 0 where none did.
    pub fn redated_files(&self, scope: &RelPath) -> Result<u64> {
        let sql = "SELECT files FROM redated WHERE scope = ?1";
        let found = self.connection.query_row(sql, [scope.as_bytes()], |row| row.get(0));
        let files: Option<i64> = found.optional().map_err(|e| self.blame(&e))?;
        Ok(files.map_or(0, i64::cast_unsigned))
    }

    /// Notes the number for the case that the update of a scope is cut off. It includes
    /// what updates of parts of it left behind.
    pub fn set_redated_files(&mut self, scope: &RelPath, files: u64) -> Result<()> {
        self.begin()?;
        let sql = "DELETE FROM redated WHERE scope = ?1";
        self.delete_counted(Counted::Redated, sql, [scope.as_bytes()])?;
        if files == 0 {
            return Ok(());
        }
        let sql = "INSERT INTO redated VALUES (?1, ?2)";
        self.insert_counted(Counted::Redated, sql, params![scope.as_bytes(), files.cast_signed()])
    }
}
