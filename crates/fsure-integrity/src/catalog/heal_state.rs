//! Remains of a heal that was interrupted: the names of its drafts, recorded before the
//! drafts are made, and the path of its journal. `docs/heal.md` specifies the format.

use std::path::{Path, PathBuf};

use rusqlite::params;

use super::schema;
use super::store::Catalog;
use fsure_core::{RelPath, Result};

/// In no catalog before its first heal: what does not know of it loses nothing.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS healing (
    path BLOB PRIMARY KEY,
    draft BLOB NOT NULL
) WITHOUT ROWID";

impl Catalog {
    /// The journal of a file that is being healed in place.
    pub fn journal_file(file: &Path) -> PathBuf {
        fsure_os::path::with_suffix(file, ".healing")
    }

    /// Returns each file that is being healed with its draft, whether or not the draft
    /// has been made yet.
    pub fn drafts(&self) -> Result<Vec<(RelPath, RelPath)>> {
        let read = || -> rusqlite::Result<Vec<(RelPath, RelPath)>> {
            if !schema::has_table(&self.connection, "main", "healing")? {
                return Ok(Vec::new());
            }
            let mut all = self.connection.prepare("SELECT path, draft FROM healing")?;
            let path = |row: &rusqlite::Row<'_>, column| {
                row.get::<_, Vec<u8>>(column).map(RelPath::from_bytes)
            };
            all.query_map([], |row| Ok((path(row, 0)?, path(row, 1)?)))?.collect()
        };
        read().map_err(|error| self.blame(&error))
    }

    /// Notes a draft that is going to be made, durable with the next commit.
    pub fn note_draft(&mut self, path: &RelPath, draft: &RelPath) -> Result<()> {
        self.begin()?;
        let sql = "INSERT OR REPLACE INTO healing VALUES (?1, ?2)";
        let noted = self.connection.execute_batch(TABLE).and_then(|()| {
            self.connection.execute(sql, params![path.as_bytes(), draft.as_bytes()])
        });
        noted.map(drop).map_err(|e| self.blame(&e))
    }

    /// Forgets a draft that is not there any more.
    pub fn forget_draft(&mut self, path: &RelPath) -> Result<()> {
        self.begin()?;
        let sql = "DELETE FROM healing WHERE path = ?1";
        self.connection.execute(sql, [path.as_bytes()]).map(drop).map_err(|e| self.blame(&e))
    }
}
