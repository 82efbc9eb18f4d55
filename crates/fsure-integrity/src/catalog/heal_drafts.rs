//! Remains of a heal that was interrupted: the names of its drafts, recorded before the
//! drafts are made, and the path of its journal. `docs/heal.md` specifies the format.

use std::ops::{Deref, DerefMut};

use rusqlite::params;

use super::database::Database;
use super::schema;
use fsure_core::{RelPath, Result};

/// In no catalog before its first heal: what does not know of it loses nothing.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS healing (
    path BLOB PRIMARY KEY,
    draft BLOB NOT NULL
) WITHOUT ROWID";

/// The drafts of an interrupted heal.
pub struct HealDrafts<D> {
    database: D,
}

impl<D: Deref<Target = Database>> HealDrafts<D> {
    pub(super) fn new(database: D) -> Self {
        Self { database }
    }

    /// Returns each file that is being healed with its draft, whether or not the draft
    /// has been made yet.
    pub fn all(&self) -> Result<Vec<(RelPath, RelPath)>> {
        self.database.run(|connection| {
            if !schema::has_table(connection, "main", "healing")? {
                return Ok(Vec::new());
            }
            let mut all = connection.prepare("SELECT path, draft FROM healing")?;
            let path = |row: &rusqlite::Row<'_>, column| {
                row.get::<_, Vec<u8>>(column).map(RelPath::from_bytes)
            };
            all.query_map([], |row| Ok((path(row, 0)?, path(row, 1)?)))?.collect()
        })
    }
}

impl<D: DerefMut<Target = Database>> HealDrafts<D> {
    /// Notes a draft that is going to be made, durable with the next commit.
    pub fn put(&mut self, path: &RelPath, draft: &RelPath) -> Result<()> {
        self.database.begin()?;
        let sql = "INSERT OR REPLACE INTO healing VALUES (?1, ?2)";
        self.database.run(|connection| {
            connection.execute_batch(TABLE)?;
            connection.execute(sql, params![path.as_bytes(), draft.as_bytes()]).map(drop)
        })
    }

    /// Forgets a draft that is not there any more.
    pub fn forget(&mut self, path: &RelPath) -> Result<()> {
        self.database.begin()?;
        let sql = "DELETE FROM healing WHERE path = ?1";
        self.database.execute(sql, [path.as_bytes()]).map(drop)
    }
}
