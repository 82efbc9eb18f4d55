//! Names that came and went and differ in their spelling only, see
//! `words::spelling`: first in their Unicode form, then in capitals. As with
//! moves, only where there is one of each; and a name that is there as it is
//! recorded is nobody else's, but its nearness makes the others doubtful.

use rusqlite::{OptionalExtension as _, params};

use super::waiting::{Waiting, fault};
use crate::words::{RelPath, Result, folded, nfc};

impl Waiting {
    /// Makes pairs of names that differ in spelling only. Whether there are
    /// any, to be contested by the names that are there as recorded.
    pub fn pair_by_spelling(&mut self) -> Result<bool> {
        if self.departed == 0 {
            return Ok(false);
        }
        self.pair("nfc")?;
        self.pair("folded")?;
        self.has_spelling_doubts = self.is_any("waiting WHERE doubt <> 0")?;
        self.is_any("pair")
    }

    fn is_any(&self, of: &str) -> Result<bool> {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM {of})");
        self.connection.query_row(&sql, [], |row| row.get(0)).map_err(|error| fault(&error))
    }

    /// Takes back a pair with which a name folds together that is there as it
    /// is recorded: which of them is which, nobody can say.
    pub fn contest(&mut self, path: &RelPath) -> Result<()> {
        // What is plain ASCII is the NFC of nothing but itself.
        if !path.as_bytes().is_ascii() {
            self.contest_by("nfc", path, &nfc(path))?;
        }
        self.contest_by("folded", path, &folded(path))
    }

    fn contest_by(&mut self, key: &str, path: &RelPath, value: &[u8]) -> Result<()> {
        let sql = format!(
            "SELECT now, was FROM waiting JOIN pair ON now = path \
             WHERE is_here AND {key} = ?1 AND key = '{key}'"
        );
        let mut statement = self.connection.prepare_cached(&sql).map_err(|e| fault(&e))?;
        let found = statement.query_row([value], |row| Ok((row.get(0)?, row.get(1)?)));
        let found: Option<(Vec<u8>, Vec<u8>)> = found.optional().map_err(|e| fault(&e))?;
        drop(statement);
        let Some((now, was)) = found.filter(|(_, was)| was != path.as_bytes()) else {
            return Ok(());
        };
        self.has_spelling_doubts = true;
        let sql = "UPDATE waiting SET doubt = 2 WHERE path IN (?1, ?2)";
        let doubted = self.connection.execute(sql, params![now, was]);
        let parted = self.connection.execute("DELETE FROM pair WHERE now = ?1", [&now]);
        doubted.and(parted).map(|_| ()).map_err(|error| fault(&error))
    }

    /// Whether a name that came or went could be another one in several ways.
    pub fn is_doubtfully_spelled(&self, path: &RelPath) -> Result<bool> {
        if !self.has_spelling_doubts {
            return Ok(false);
        }
        let sql = "SELECT 1 FROM waiting WHERE path = ?1 AND doubt = 2";
        let mut statement = self.connection.prepare_cached(sql).map_err(|e| fault(&e))?;
        let found = statement.query_row([path.as_bytes()], |_| Ok(())).optional();
        found.map(|found| found.is_some()).map_err(|error| fault(&error))
    }
}
