//! Totals of the tables beside `record`: number of rows and sum of their
//! checksums. They miss a row that a damaged page has lost, or that a flipped
//! bit hides from every look-up. `docs/catalog.md` is the format.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Params, Row as SqlRow, Statement, params};
use xxhash_rust::xxh3::xxh3_64;

use super::fault::untrusted;
use super::seal::Sealer;
use super::store::Catalog;
use crate::words::Result;

/// A table whose rows are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    Choice,
    Nested,
    Finding,
    Metadata,
    Generation,
    Verification,
    Redated,
}

impl Counted {
    const ALL: [Self; 7] = [
        Self::Choice,
        Self::Nested,
        Self::Finding,
        Self::Metadata,
        Self::Generation,
        Self::Verification,
        Self::Redated,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Choice => "choice",
            Self::Nested => "nested",
            Self::Finding => "finding",
            Self::Metadata => "metadata",
            Self::Generation => "generation",
            Self::Verification => "verification",
            Self::Redated => "redated",
        }
    }

    /// Counts the rows as they are.
    fn count(self, connection: &Connection) -> rusqlite::Result<TableTotal> {
        let mut statement = connection.prepare(&format!("SELECT * FROM {}", self.name()))?;
        let mut total = TableTotal::default();
        for checksum in checksums(&mut statement, [])? {
            total.add(checksum);
        }
        Ok(total)
    }

    /// Says what is wrong with a table that should have this total, if anything.
    pub(super) fn objection(
        self,
        connection: &Connection,
        recorded: TableTotal,
    ) -> rusqlite::Result<Option<String>> {
        let (counted, name) = (self.count(connection)?, self.name());
        Ok(if counted.rows != recorded.rows {
            let (rows, written) = (counted.rows, recorded.rows);
            Some(format!("its table '{name}' has {rows} rows where {written} were written"))
        } else if counted.digest != recorded.digest {
            Some(format!("the rows of its table '{name}' do not fit their sum"))
        } else {
            None
        })
    }
}

/// Number of rows of a table, and the sum of their checksums modulo 2^64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TableTotal {
    rows: u64,
    digest: u64,
}

impl TableTotal {
    fn add(&mut self, checksum: u64) {
        self.rows = self.rows.wrapping_add(1);
        self.digest = self.digest.wrapping_add(checksum);
    }

    fn remove(&mut self, checksum: u64) {
        self.rows = self.rows.wrapping_sub(1);
        self.digest = self.digest.wrapping_sub(checksum);
    }

    pub(super) fn rows(self) -> u64 {
        self.rows
    }
}

/// The totals of all counted tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TableTotals([TableTotal; Counted::ALL.len()]);

impl TableTotals {
    pub(super) fn of(&self, table: Counted) -> TableTotal {
        self.0[table as usize]
    }

    /// Counts all tables as they are, for a catalog that has no totals yet.
    pub(super) fn count(connection: &Connection) -> rusqlite::Result<Self> {
        let mut totals = Self::default();
        for table in Counted::ALL {
            totals.0[table as usize] = table.count(connection)?;
        }
        Ok(totals)
    }

    /// Reads the stored totals; `None` where one is missing or fails its checksum.
    pub(super) fn read(connection: &Connection) -> rusqlite::Result<Option<Self>> {
        let sql = "SELECT rows, digest, seal FROM table_total WHERE name = ?1";
        let mut statement = connection.prepare(sql)?;
        let (mut totals, mut sealer) = (Self::default(), Sealer::new());
        for table in Counted::ALL {
            let mut rows = statement.query([table.name()])?;
            let Some(row) = rows.next()? else { return Ok(None) };
            let value = |column| row.get::<_, i64>(column).map(i64::cast_unsigned);
            let total = TableTotal { rows: value(0)?, digest: value(1)? };
            if seal(table, total, &mut sealer) != value(2)? {
                return Ok(None);
            }
            totals.0[table as usize] = total;
        }
        Ok(Some(totals))
    }

    /// Stores the totals, in the caller's transaction.
    pub(super) fn store(&self, connection: &Connection) -> rusqlite::Result<()> {
        let sql = "INSERT OR REPLACE INTO table_total VALUES (?1, ?2, ?3, ?4)";
        let (mut statement, mut sealer) = (connection.prepare_cached(sql)?, Sealer::new());
        for table in Counted::ALL {
            let total = self.of(table);
            let seal = seal(table, total, &mut sealer).cast_signed();
            let (rows, digest) = (total.rows.cast_signed(), total.digest.cast_signed());
            statement.execute(params![table.name(), rows, digest, seal])?;
        }
        Ok(())
    }
}

fn seal(table: Counted, total: TableTotal, sealer: &mut Sealer) -> u64 {
    sealer
        .bytes(Some(table.name().as_bytes()))
        .integer(Some(total.rows.cast_signed()))
        .integer(Some(total.digest.cast_signed()))
        .seal()
}

/// Runs a statement and returns the checksum of each row that it gives.
fn checksums(statement: &mut Statement<'_>, values: impl Params) -> rusqlite::Result<Vec<u64>> {
    let columns = statement.column_count();
    let (mut rows, mut bytes, mut checksums) = (statement.query(values)?, Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        checksums.push(checksum(row, columns, &mut bytes)?);
    }
    Ok(checksums)
}

/// The checksum of all columns of a row, each with its type: SQLite compares
/// text and bytes of the same content as different, and so does this.
fn checksum(row: &SqlRow<'_>, columns: usize, bytes: &mut Vec<u8>) -> rusqlite::Result<u64> {
    bytes.clear();
    for column in 0..columns {
        let (tag, content): (u8, &[u8]) = match row.get_ref(column)? {
            ValueRef::Null => (0, &[]),
            ValueRef::Integer(value) => (1, &value.to_le_bytes()),
            ValueRef::Blob(value) => (2, value),
            ValueRef::Text(value) => (3, value),
            ValueRef::Real(value) => (4, &value.to_le_bytes()),
        };
        bytes.push(tag);
        bytes.extend_from_slice(&(content.len() as u64).to_le_bytes());
        bytes.extend_from_slice(content);
    }
    Ok(xxh3_64(bytes))
}

impl Catalog {
    /// Inserts rows into a counted table, in the open transaction. `sql` must
    /// not replace rows: those have to be deleted first, to leave the total.
    pub(super) fn insert_counted(
        &mut self,
        table: Counted,
        sql: &str,
        values: impl Params,
    ) -> Result<()> {
        let inserted = self.returned(sql, values)?;
        let total = &mut self.table_totals.0[table as usize];
        inserted.into_iter().for_each(|checksum| total.add(checksum));
        Ok(())
    }

    /// Deletes rows from a counted table, in the open transaction.
    pub(super) fn delete_counted(
        &mut self,
        table: Counted,
        sql: &str,
        values: impl Params,
    ) -> Result<()> {
        let deleted = self.returned(sql, values)?;
        let total = &mut self.table_totals.0[table as usize];
        deleted.into_iter().for_each(|checksum| total.remove(checksum));
        Ok(())
    }

    /// Takes the rows of a table as they are for the truth.
    pub(super) fn recount_table(&mut self, table: Counted) -> Result<()> {
        let counted = table.count(&self.connection).map_err(|e| self.blame(&e))?;
        self.table_totals.0[table as usize] = counted;
        Ok(())
    }

    /// Refuses a catalog of which this table is not as it was written.
    pub(super) fn require_total(&self, table: Counted) -> Result<()> {
        let objection = table.objection(&self.connection, self.table_totals.of(table));
        match objection.map_err(|e| self.blame(&e))? {
            None => Ok(()),
            Some(why) => Err(untrusted(&self.file, why)),
        }
    }

    fn returned(&self, sql: &str, values: impl Params) -> Result<Vec<u64>> {
        let sql = format!("{sql} RETURNING *");
        let mut statement = self.connection.prepare_cached(&sql).map_err(|e| self.blame(&e))?;
        checksums(&mut statement, values).map_err(|e| self.blame(&e))
    }
}
