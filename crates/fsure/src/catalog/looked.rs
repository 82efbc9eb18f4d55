//! Files that were read and not seen to be well. Their date of verification
//! does not move, and so says nothing of when they were last looked at: this
//! does, and with what result. It decides an order and nothing else.

use rusqlite::params;

use super::store::Catalog;
use crate::words::{RelPath, Result, Verdict};

/// When a file comes by that was not well when last looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Before all others, every time.
    First,
    /// By its age, as if it had been verified then: what is edited, or being
    /// written, is read again no oftener than what is not.
    ByAge,
}

impl Turn {
    /// When a file with that verdict comes by; `None` for one that is well.
    pub fn of(verdict: Verdict) -> Option<Self> {
        match verdict {
            Verdict::Ok | Verdict::Touched | Verdict::Moved => None,
            // Nobody looked, or there is no record to come back to.
            Verdict::Ignored | Verdict::New => None,
            Verdict::Modified | Verdict::Reverted | Verdict::Busy => Some(Self::ByAge),
            _ => Some(Self::First),
        }
    }
}

/// Stands in the place of a verdict where the end of the time cut off the
/// reading of a file that can only be read as a whole.
pub(super) const CUT_OFF: &str = "cut-off";

impl Catalog {
    /// Notes that a file was looked at and is not well.
    pub fn note_looked(&mut self, path: &RelPath, at_s: i64, verdict: Verdict) -> Result<()> {
        self.put_looked(path, at_s, verdict.name())
    }

    /// Notes that a file took so long that the time was over before its end.
    pub fn note_cut_off(&mut self, path: &RelPath, at_s: i64) -> Result<()> {
        self.put_looked(path, at_s, CUT_OFF)
    }

    fn put_looked(&mut self, path: &RelPath, at_s: i64, what: &str) -> Result<()> {
        self.begin()?;
        let sql = "INSERT OR REPLACE INTO looked VALUES (?1, ?2, ?3)";
        let mut statement = self.connection.prepare_cached(sql).map_err(|e| self.blame(&e))?;
        statement.execute(params![path.as_bytes(), at_s, what]).map_err(|e| self.blame(&e))?;
        Ok(())
    }

    /// Forgets that a file was not well: it is now.
    pub fn forget_looked(&mut self, path: &RelPath) -> Result<()> {
        self.begin()?;
        let sql = "DELETE FROM looked WHERE path = ?1";
        let mut statement = self.connection.prepare_cached(sql).map_err(|e| self.blame(&e))?;
        statement.execute([path.as_bytes()]).map_err(|e| self.blame(&e))?;
        Ok(())
    }

    /// Whether any file was not well when last looked at, and whether any is
    /// verified in part.
    pub fn has_looked_and_parts(&self) -> Result<(bool, bool)> {
        let sql = "SELECT EXISTS (SELECT 1 FROM looked), EXISTS (SELECT 1 FROM part)";
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        self.connection.query_row(sql, [], read).map_err(|e| self.blame(&e))
    }

    /// Forgets files that are not recorded under that name any more.
    pub fn forget_strangers(&mut self) -> Result<()> {
        self.begin()?;
        let is_stranger = "NOT EXISTS (SELECT 1 FROM record WHERE record.path =";
        let sql = format!(
            "DELETE FROM looked WHERE {is_stranger} looked.path AND gone_s IS NULL);
             DELETE FROM part WHERE {is_stranger} part.path AND gone_s IS NULL);"
        );
        self.connection.execute_batch(&sql).map_err(|e| self.blame(&e))
    }
}
