//! Folders below the root that have a record of their own: if one is gone, a
//! disk might not be mounted.

use std::ops::{Deref, DerefMut};

use super::database::Database;
use super::table_total::CountedTable;
use fsure_core::{RelPath, Result};

/// The folders below the root that have a record of their own.
pub struct NestedRoots<D> {
    database: D,
}

impl<D: Deref<Target = Database>> NestedRoots<D> {
    pub(super) fn new(database: D) -> Self {
        Self { database }
    }

    /// Returns the folders below the root that had a record of their own when last seen.
    pub fn all(&self) -> Result<Vec<RelPath>> {
        self.database.run(|connection| {
            let mut statement = connection.prepare("SELECT path FROM nested ORDER BY path")?;
            let paths = statement.query_map([], |row| row.get::<_, Vec<u8>>(0))?;
            paths.map(|path| path.map(RelPath::from_bytes)).collect()
        })
    }
}

impl<D: DerefMut<Target = Database>> NestedRoots<D> {
    /// Remembers or forgets that a folder has a record of its own.
    pub fn set(&mut self, path: &RelPath, is_one: bool) -> Result<()> {
        self.database.begin()?;
        self.database.note_changed_claim();
        let path = path.as_bytes();
        match is_one {
            true => {
                let sql = "INSERT OR IGNORE INTO nested VALUES (?1)";
                self.database.insert_counted(CountedTable::Nested, sql, [path])
            }
            false => {
                let sql = "DELETE FROM nested WHERE path = ?1";
                self.database.delete_counted(CountedTable::Nested, sql, [path])
            }
        }
    }
}
