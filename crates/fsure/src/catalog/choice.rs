//! What a root was asked to have recorded beyond the rule, remembered from one
//! `update` to the next: a few rows, read when the catalog is opened.

use rusqlite::{Connection, params};

use super::seal::Sealer;
use super::store::Catalog;
use crate::words::{AspectSet, Result};

const META: &str = "meta";

/// What was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choices {
    /// Which metadata is recorded.
    pub meta: AspectSet,
}

/// The choices, or `None` where a row fails its seal or makes no sense.
pub(super) fn read(
    connection: &Connection,
    sealer: &mut Sealer,
) -> rusqlite::Result<Option<Choices>> {
    let mut statement = connection.prepare("SELECT name, value, seal FROM choice")?;
    let mut rows = statement.query([])?;
    let mut choices = Choices::default();
    while let Some(row) = rows.next()? {
        let (name, value): (String, String) = (row.get(0)?, row.get(1)?);
        if row.get::<_, i64>(2)?.cast_unsigned() != seal(&name, &value, sealer) {
            return Ok(None);
        }
        match (name.as_str(), AspectSet::from_names(&value)) {
            (META, Some(aspects)) => choices.meta = aspects,
            _ => return Ok(None),
        }
    }
    Ok(Some(choices))
}

fn seal(name: &str, value: &str, sealer: &mut Sealer) -> u64 {
    sealer.bytes(Some(name.as_bytes())).bytes(Some(value.as_bytes())).seal()
}

impl Catalog {
    /// What was asked for.
    pub fn choices(&self) -> Choices {
        self.choices
    }

    /// Changes what is asked for, durable with the next commit. What is not
    /// asked for any more is forgotten: it would grow old unseen.
    pub fn set_choices(&mut self, choices: Choices) -> Result<()> {
        if self.choices == choices {
            return Ok(());
        }
        self.begin()?;
        self.choices = choices;
        let value = choices.meta.to_string();
        let seal = seal(META, &value, &mut self.sealer).cast_signed();
        let write = || {
            if choices.meta.is_empty() {
                self.connection.execute("DELETE FROM choice WHERE name = ?1", [META])?;
                return self.connection.execute("DELETE FROM metadata", []);
            }
            let sql = "INSERT OR REPLACE INTO choice VALUES (?1, ?2, ?3)";
            self.connection.execute(sql, params![META, value, seal])
        };
        write().map(|_| ()).map_err(|error| self.blame(&error))
    }
}
