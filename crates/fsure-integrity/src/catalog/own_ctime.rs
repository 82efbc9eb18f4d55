//! Change times that fsure itself has caused, by writing an attribute: they
//! come after the reading, as those of a file that was written meanwhile do,
//! and would have each such file read again by every `update`.

use rusqlite::{OptionalExtension as _, params};

use super::store::Catalog;
use crate::model::Entry;
use fsure_core::{RelPath, Result};

impl Catalog {
    /// Records that fsure itself caused this change time of a name.
    pub fn note_own_change(&mut self, path: &RelPath, ctime_ns: i64) -> Result<()> {
        self.begin()?;
        let sql = "INSERT OR REPLACE INTO own_change VALUES (?1, ?2)";
        let mut statement = self.connection.prepare_cached(sql).map_err(|e| self.blame(&e))?;
        let noted = statement.execute(params![path.as_bytes(), ctime_ns]);
        noted.map(|_| ()).map_err(|e| self.blame(&e))
    }

    /// Returns true if fsure itself caused the change time of an entry.
    pub fn is_own_change(&self, path: &RelPath, entry: &Entry) -> Result<bool> {
        let Some(ctime_ns) = entry.ctime_ns else { return Ok(false) };
        let sql = "SELECT 1 FROM own_change WHERE path = ?1 AND ctime_ns = ?2";
        let mut statement = self.connection.prepare_cached(sql).map_err(|e| self.blame(&e))?;
        let found = statement.query_row(params![path.as_bytes(), ctime_ns], |_| Ok(())).optional();
        found.map(|found| found.is_some()).map_err(|e| self.blame(&e))
    }

    /// Forgets what was noted of a name whose record goes.
    pub(super) fn forget_own_change(&self, path: &RelPath) -> Result<()> {
        let sql = "DELETE FROM own_change WHERE path = ?1";
        let mut statement = self.connection.prepare_cached(sql).map_err(|e| self.blame(&e))?;
        statement.execute([path.as_bytes()]).map(|_| ()).map_err(|e| self.blame(&e))
    }
}
