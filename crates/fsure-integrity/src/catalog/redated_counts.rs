//! The number of files that an update that was cut off had recorded under another date
//! with their recorded content. The one that goes on must know: to it they look
//! as if they had never had another date.

use std::ops::{Deref, DerefMut};

use rusqlite::{Connection, OptionalExtension as _, params};

use super::database::Database;
use super::table_total::CountedTable;
use fsure_core::{RelPath, Result};

/// Files with their recorded content under another date, recorded by updates that were
/// cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RedatedFiles {
    /// By updates of the scope or of a part of it.
    pub within: u64,
    /// By updates of what the scope is a part of, unless an update of the scope has come
    /// to its end since.
    pub around: u64,
}

/// The counts of redated files that updates left behind which were cut off, by their scope.
pub struct RedatedCounts<D> {
    database: D,
}

impl<D: Deref<Target = Database>> RedatedCounts<D> {
    pub(super) fn new(database: D) -> Self {
        Self { database }
    }

    /// The number that updates which were cut off left behind for a run over a scope.
    pub fn of(&self, scope: &RelPath) -> Result<RedatedFiles> {
        let within = sum(&self.rows(scope)?);
        let mut around = 0_u64;
        let mut next = Some(scope.clone());
        while let Some(folder) = next {
            let files = self.row(&folder)?;
            if files == Some(0) {
                break;
            }
            if folder != *scope {
                around = around.saturating_add(files.unwrap_or(0));
            }
            next = folder.parent();
        }
        Ok(RedatedFiles { within, around })
    }

    fn row(&self, scope: &RelPath) -> Result<Option<u64>> {
        let sql = "SELECT files FROM redated WHERE scope = ?1";
        let found = |connection: &Connection| {
            connection.query_row(sql, [scope.as_bytes()], |row| row.get(0)).optional()
        };
        Ok(self.database.run(found)?.map(i64::cast_unsigned))
    }

    /// The rows at or below a scope.
    fn rows(&self, scope: &RelPath) -> Result<Vec<(RelPath, u64)>> {
        let sql = "SELECT scope, files FROM redated
                   WHERE scope = ?1 OR (scope >= ?2 AND (?3 IS NULL OR scope < ?3))";
        let (start, end) = scope.below();
        self.database.run(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map(params![scope.as_bytes(), start, end], |row| {
                let files: i64 = row.get(1)?;
                Ok((RelPath::from_bytes(row.get::<_, Vec<u8>>(0)?), files.cast_unsigned()))
            });
            rows?.collect()
        })
    }
}

impl<D: DerefMut<Target = Database>> RedatedCounts<D> {
    /// Notes the number for the case that the update of a scope is cut off. It includes
    /// what updates of parts of it left behind.
    pub fn set(&mut self, scope: &RelPath, files: u64) -> Result<()> {
        if files == 0 {
            return Ok(());
        }
        self.replace(scope, Some(files))
    }

    /// Notes that an update of a scope came to its end, with so many such files: nothing
    /// in it is to be gone on with. An update of what it is a part of that was cut
    /// off still has to count them, and those that updates of it left behind.
    pub fn finish(&mut self, scope: &RelPath, files: u64) -> Result<()> {
        // A run that had nothing to write has not counted what was left behind.
        let files = files.max(sum(&self.rows(scope)?));
        let mut around = None;
        let mut next = scope.parent();
        while let Some(folder) = next {
            let there = self.row(&folder)?.filter(|files| *files > 0);
            if let Some(there) = there {
                around = Some((folder, there));
                break;
            }
            next = folder.parent();
        }
        self.replace(scope, around.is_some().then_some(0))?;
        match around {
            Some((folder, there)) if files > 0 => {
                self.database.begin()?;
                self.delete(&folder)?;
                self.insert(&folder, there.saturating_add(files))
            }
            _ => Ok(()),
        }
    }

    /// Puts back the number that updates of a scope had left behind before [`Self::set`].
    pub fn restore(&mut self, scope: &RelPath, files: u64) -> Result<()> {
        self.replace(scope, (files > 0).then_some(files))
    }

    /// Leaves one row at or below a scope, or none. Writes only what differs.
    fn replace(&mut self, scope: &RelPath, files: Option<u64>) -> Result<()> {
        let rows = self.rows(scope)?;
        let wanted: Vec<_> = files.map(|files| (scope.clone(), files)).into_iter().collect();
        if rows == wanted {
            return Ok(());
        }
        self.database.begin()?;
        for (path, _) in rows {
            self.delete(&path)?;
        }
        match files {
            Some(files) => self.insert(scope, files),
            None => Ok(()),
        }
    }

    fn insert(&mut self, scope: &RelPath, files: u64) -> Result<()> {
        let sql = "INSERT INTO redated VALUES (?1, ?2)";
        let files = i64::try_from(files).unwrap_or(i64::MAX);
        self.database.insert_counted(CountedTable::Redated, sql, params![scope.as_bytes(), files])
    }

    fn delete(&mut self, scope: &RelPath) -> Result<()> {
        let sql = "DELETE FROM redated WHERE scope = ?1";
        self.database.delete_counted(CountedTable::Redated, sql, [scope.as_bytes()])
    }
}

fn sum(rows: &[(RelPath, u64)]) -> u64 {
    rows.iter().fold(0, |sum, (_, files)| sum.saturating_add(*files))
}
