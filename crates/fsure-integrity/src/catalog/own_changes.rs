//! Change times that fsure itself has caused, by writing an attribute: they
//! come after the reading, as those of a file that was written meanwhile do,
//! and would have each such file read again by every `update`.

use std::ops::{Deref, DerefMut};

use rusqlite::params;

use super::database::Database;
use crate::model::Entry;
use fsure_core::{RelPath, Result};

/// The change times that fsure itself has caused.
pub struct OwnChanges<D> {
    database: D,
}

impl<D: Deref<Target = Database>> OwnChanges<D> {
    pub(super) fn new(database: D) -> Self {
        Self { database }
    }

    /// Returns true if fsure itself caused the change time of an entry.
    pub fn contains(&self, path: &RelPath, entry: &Entry) -> Result<bool> {
        let Some(ctime_ns) = entry.ctime_ns else { return Ok(false) };
        let sql = "SELECT 1 FROM own_change WHERE path = ?1 AND ctime_ns = ?2";
        self.database.run(|connection| {
            connection.prepare_cached(sql)?.exists(params![path.as_bytes(), ctime_ns])
        })
    }
}

impl<D: DerefMut<Target = Database>> OwnChanges<D> {
    /// Records that fsure itself caused this change time of a name.
    pub fn note(&mut self, path: &RelPath, ctime_ns: i64) -> Result<()> {
        self.database.begin()?;
        let sql = "INSERT OR REPLACE INTO own_change VALUES (?1, ?2)";
        self.database.execute(sql, params![path.as_bytes(), ctime_ns]).map(drop)
    }

    /// Forgets what was noted of a name whose record goes.
    pub(super) fn forget(&mut self, path: &RelPath) -> Result<()> {
        let sql = "DELETE FROM own_change WHERE path = ?1";
        self.database.execute(sql, [path.as_bytes()]).map(drop)
    }
}
