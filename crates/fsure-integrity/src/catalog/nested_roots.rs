//! Folders below the root that have a record of their own: if one is gone, a
//! disk might not be mounted.

use super::store::Catalog;
use super::table_total::CountedTable;
use fsure_core::{RelPath, Result};

impl Catalog {
    /// Folders below the root that had a record of their own when last seen.
    pub fn nested_roots(&mut self) -> Result<Vec<RelPath>> {
        let read = || -> rusqlite::Result<Vec<RelPath>> {
            let mut statement = self.connection.prepare("SELECT path FROM nested ORDER BY path")?;
            let paths = statement.query_map([], |row| row.get::<_, Vec<u8>>(0))?;
            paths.map(|path| path.map(RelPath::from_bytes)).collect()
        };
        read().map_err(|error| self.blame(&error))
    }

    /// Remembers or forgets that a folder has a record of its own.
    pub fn set_nested_root(&mut self, path: &RelPath, is_one: bool) -> Result<()> {
        self.begin()?;
        self.has_changed = true;
        let path = path.as_bytes();
        match is_one {
            true => {
                let sql = "INSERT OR IGNORE INTO nested VALUES (?1)";
                self.insert_counted(CountedTable::Nested, sql, [path])
            }
            false => {
                let sql = "DELETE FROM nested WHERE path = ?1";
                self.delete_counted(CountedTable::Nested, sql, [path])
            }
        }
    }
}
