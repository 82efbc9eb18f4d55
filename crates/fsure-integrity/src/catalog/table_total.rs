//! Totals of the tables beside `record`: number of rows and sum of their
//! checksums. They miss a row that a damaged page has lost, or that a flipped
//! bit hides from every look-up. `docs/catalog.md` is the format.

use rusqlite::types::Value;
use rusqlite::{Connection, Row as SqlRow, params};
use xxhash_rust::xxh3::xxh3_64;

use super::row_checksum::RowChecksum;
use super::tables::{Table, encode};

/// A table whose rows are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CountedTable {
    Choice,
    Nested,
    Finding,
    Metadata,
    Generation,
    Verification,
    Redated,
    Accepted,
}

impl CountedTable {
    pub(super) const ALL: [Self; 8] = [
        Self::Choice,
        Self::Nested,
        Self::Finding,
        Self::Metadata,
        Self::Generation,
        Self::Verification,
        Self::Redated,
        Self::Accepted,
    ];

    pub(super) fn table(self) -> Table {
        match self {
            Self::Choice => Table::Choice,
            Self::Nested => Table::Nested,
            Self::Finding => Table::Finding,
            Self::Metadata => Table::Metadata,
            Self::Generation => Table::Generation,
            Self::Verification => Table::Verification,
            Self::Redated => Table::Redated,
            Self::Accepted => Table::Accepted,
        }
    }

    fn name(self) -> &'static str {
        self.table().name()
    }

    /// Counts the rows as they are.
    pub(super) fn count(self, connection: &Connection) -> rusqlite::Result<TableTotal> {
        self.count_in(connection, self.name())
    }

    /// Counts the rows of a table of that name with the same columns.
    pub(super) fn count_in(
        self,
        connection: &Connection,
        name: &str,
    ) -> rusqlite::Result<TableTotal> {
        let (mut total, mut bytes) = (TableTotal::default(), Vec::new());
        let columns = self.table().columns().0;
        let mut statement = connection.prepare(&format!("SELECT * FROM {name}"))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            total.add(checksum(row, columns, &mut bytes)?);
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
            Some(format!("the rows of its table '{name}' do not match their checksum"))
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
    pub(super) fn add(&mut self, checksum: u64) {
        self.rows = self.rows.wrapping_add(1);
        self.digest = self.digest.wrapping_add(checksum);
    }

    pub(super) fn remove(&mut self, checksum: u64) {
        self.rows = self.rows.wrapping_sub(1);
        self.digest = self.digest.wrapping_sub(checksum);
    }

    pub(super) fn rows(self) -> u64 {
        self.rows
    }
}

/// The totals of all counted tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TableTotals([TableTotal; CountedTable::ALL.len()]);

impl TableTotals {
    pub(super) fn of(&self, table: CountedTable) -> TableTotal {
        self.0[table as usize]
    }

    pub(super) fn of_mut(&mut self, table: CountedTable) -> &mut TableTotal {
        &mut self.0[table as usize]
    }

    /// True if none of the tables has a row.
    pub(super) fn are_empty(&self) -> bool {
        self.0.iter().all(|total| total.rows == 0)
    }

    /// Counts all tables as they are, for a catalog that has no totals yet.
    pub(super) fn count(connection: &Connection) -> rusqlite::Result<Self> {
        let mut totals = Self::default();
        for table in CountedTable::ALL {
            totals.0[table as usize] = table.count(connection)?;
        }
        Ok(totals)
    }

    /// The total of a table in rows of `table_total`; `None` where it is missing or
    /// fails its checksum.
    pub(super) fn from_values(table: CountedTable, rows: &[Vec<Value>]) -> Option<TableTotal> {
        let is_of_table = |row: &&Vec<Value>| row[0] == Value::Text(table.name().to_owned());
        rows.iter().filter(is_of_table).find_map(|row| {
            let number = |place: usize| match row.get(place)? {
                Value::Integer(number) => Some(number.cast_unsigned()),
                _ => None,
            };
            let total = TableTotal { rows: number(1)?, digest: number(2)? };
            (seal(table, total, &mut RowChecksum::new()) == number(3)?).then_some(total)
        })
    }

    /// Reads the stored totals; `None` where one is missing or fails its checksum. The
    /// first catalogs of version 3 have none of `accepted`: it is counted as it is.
    pub(super) fn read(connection: &Connection) -> rusqlite::Result<Option<Self>> {
        let sql = "SELECT rows, digest, seal FROM table_total WHERE name = ?1";
        let mut statement = connection.prepare(sql)?;
        let (mut totals, mut sealer) = (Self::default(), RowChecksum::new());
        for table in CountedTable::ALL {
            let mut rows = statement.query([table.name()])?;
            let Some(row) = rows.next()? else {
                if table != CountedTable::Accepted {
                    return Ok(None);
                }
                totals.0[table as usize] = table.count(connection)?;
                continue;
            };
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
        let (mut statement, mut sealer) = (connection.prepare_cached(sql)?, RowChecksum::new());
        for table in CountedTable::ALL {
            let total = self.of(table);
            let seal = seal(table, total, &mut sealer).cast_signed();
            let (rows, digest) = (total.rows.cast_signed(), total.digest.cast_signed());
            statement.execute(params![table.name(), rows, digest, seal])?;
        }
        Ok(())
    }
}

fn seal(table: CountedTable, total: TableTotal, sealer: &mut RowChecksum) -> u64 {
    sealer
        .bytes(Some(table.name().as_bytes()))
        .integer(Some(total.rows.cast_signed()))
        .integer(Some(total.digest.cast_signed()))
        .seal()
}

/// The checksum of all columns of a row, each with its type: SQLite compares
/// text and bytes of the same content as different, and so does this.
pub(super) fn checksum(
    row: &SqlRow<'_>,
    columns: usize,
    bytes: &mut Vec<u8>,
) -> rusqlite::Result<u64> {
    bytes.clear();
    for column in 0..columns {
        encode(row.get_ref(column)?, bytes);
    }
    Ok(xxh3_64(bytes))
}
