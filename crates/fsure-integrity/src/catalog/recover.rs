//! A catalog put together anew from what is sound of a damaged one and of its
//! backups. Only what a seal or a checksum proves is taken. `docs/recover.md`
//! says in which order.

use std::collections::HashSet;
use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, params_from_iter};

use super::backup::{BackupState, Replayed, replay};
use super::root_row::{self, MADE_BY, RecordTotals, RootRow, RootSettings};
use super::row::{self, Row, StoredRow};
use super::row_checksum::RowChecksum;
use super::salvage::{Pages, RawRow};
use super::schema;
use super::sqlite_error::{connect, map_sqlite_error};
use super::store::{Catalog, draw};
use super::table_total::{CountedTable, TableTotal, TableTotals};
use super::tables::Table;
use super::zero_fill_reader::{ReadSeek, ZeroFillReader};
use crate::model::FileSystemId;
use fsure_core::{AlgorithmSet, IoContext as _, Result};
use fsure_os::filesystem_id::Volume;

/// The files that a catalog is put together from.
pub struct Sources<'a> {
    /// The damaged file, for errors.
    pub catalog: &'a Path,
    /// Its content, if it is there, and that of its rollback journal.
    pub damaged: Option<Box<dyn ReadSeek>>,
    /// See above.
    pub journal: Option<Box<dyn ReadSeek>>,
    /// Backups, each with its file.
    pub backups: Vec<(&'a Path, Box<dyn ReadSeek>)>,
}

/// The result of putting a catalog together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Rows of files, folders and links that the damaged file still proves.
    pub from_catalog: u64,
    /// Rows that only the backup has.
    pub from_backup: u64,
    /// The number of rows that there were, if the damaged file or a backup tells.
    pub rows_before: Option<u64>,
    /// True if it is proved that no row of a file, folder or link is lacking.
    pub has_all_rows: bool,
    /// True if the backup was as new as the catalog.
    pub has_current_backup: bool,
    /// True if no more was found of what the root keeps to than its folder shows.
    pub settings_are_lost: bool,
    /// Tables beside `record` of which it is not proved that all rows are there.
    pub lost_tables: Vec<&'static str>,
    /// Bytes of the damaged file and its backups that the medium did not give.
    pub bytes_unreadable: u64,
    /// True if anything in the damaged file is of a catalog.
    pub is_of_catalog: bool,
}

impl Recovered {
    /// Returns true if it is proved that nothing is lacking.
    pub fn is_whole(&self) -> bool {
        self.has_all_rows && self.lost_tables.is_empty()
    }
}

/// Puts a catalog together in a new file, which must not be there yet. `root` is
/// what the root folder is now, for what nothing else tells.
pub fn recover(
    making: &Path,
    sources: Sources<'_>,
    root: (Volume, u64),
    now_s: i64,
) -> Result<Recovered> {
    let connection = connect(making, OpenFlags::SQLITE_OPEN_CREATE)?;
    let damaged = sources.catalog;
    let mut pages = None;
    if let Some(content) = sources.damaged {
        pages = Some(Pages::read(content, sources.journal).context("read", damaged)?);
    }
    let recovery = CatalogRecovery { connection, sealer: RowChecksum::new() };
    let (mut backup, mut bytes_unreadable) = (None, 0);
    let blame = |error: rusqlite::Error| map_sqlite_error(making, &error);
    recovery.begin().map_err(blame)?;
    for (file, content) in sources.backups {
        let mut content = ZeroFillReader::new(content).context("read", file)?;
        let replayed = recovery.take_backup(&mut content, backup.as_ref()).map_err(blame)?;
        backup = replayed.context("read", file)?.or(backup);
        bytes_unreadable += content.bytes_lost();
    }
    let mut recovered = recovery.take(pages.as_ref(), backup, root, now_s).map_err(blame)?;
    recovered.bytes_unreadable = bytes_unreadable + pages.map_or(0, |pages| pages.bytes_lost());
    Ok(recovered)
}

/// A table of what was salvaged, beside the one that is put together.
fn salvaged(table: Table) -> String {
    format!("salvaged_{}", table.name())
}

struct CatalogRecovery {
    connection: Connection,
    sealer: RowChecksum,
}

impl CatalogRecovery {
    fn begin(&self) -> rusqlite::Result<()> {
        self.connection.execute_batch("BEGIN")?;
        schema::create(&self.connection)?;
        for table in Table::ALL {
            let (name, salvaged) = (table.name(), salvaged(table));
            let sql = format!("CREATE TEMP TABLE {salvaged} AS SELECT * FROM {name} WHERE 0");
            self.connection.execute_batch(&sql)?;
        }
        self.connection.execute_batch(
            "CREATE TEMP TABLE sound_record AS SELECT * FROM record WHERE 0;
             CREATE UNIQUE INDEX temp.by_path ON sound_record (path);",
        )
    }

    /// Replays a backup, and takes it if it is better than the one before.
    fn take_backup(
        &self,
        content: &mut ZeroFillReader,
        before: Option<&Replayed>,
    ) -> rusqlite::Result<std::io::Result<Option<Replayed>>> {
        self.connection.execute_batch("SAVEPOINT take")?;
        for table in Table::ALL {
            self.connection.execute(&format!("DELETE FROM {}", table.name()), [])?;
        }
        let worth = |one: &Replayed| (one.sequence, std::cmp::Reverse(one.damaged_frames));
        let replayed = replay(&self.connection, content)?;
        let is_better = replayed.as_ref().is_ok_and(|replayed| {
            let is_better = |one: &Replayed| before.is_none_or(|before| worth(one) > worth(before));
            replayed.as_ref().is_some_and(is_better)
        });
        if is_better {
            self.connection.execute_batch("RELEASE take")?;
            return Ok(replayed);
        }
        self.connection.execute_batch("ROLLBACK TO take; RELEASE take")?;
        Ok(replayed.map(|_| None))
    }

    fn take(
        mut self,
        pages: Option<&Pages>,
        backup: Option<Replayed>,
        (volume, inode): (Volume, u64),
        now_s: i64,
    ) -> rusqlite::Result<Recovered> {
        let known_by_backup = root_row::read_root(&self.connection, &mut self.sealer)?;
        let found = match pages {
            Some(pages) => self.salvage(pages)?,
            None => SelfClaims::default(),
        };
        let is_current = backup.as_ref().zip(found.state).is_some_and(|(backup, state)| {
            // The row of the root was written with the state: it says the same.
            let reported = known_by_backup.as_ref().map(|root| root.totals);
            let is_as_large = found.root.as_ref().is_none_or(|root| reported == Some(root.totals));
            state.is_that_of(backup) && is_as_large
        });
        let mut recovered = Recovered {
            has_current_backup: is_current,
            rows_before: found.root.as_ref().or(known_by_backup.as_ref()).map(|r| r.totals.rows),
            settings_are_lost: found.root.is_none() && known_by_backup.is_none(),
            ..Recovered::default()
        };
        let is_whole_by_sum = found
            .root
            .as_ref()
            .is_some_and(|root| self.sound_totals().is_ok_and(|totals| totals == root.totals));
        if is_whole_by_sum {
            // All of it is there, and so nothing of the backup is wanted.
            self.connection.execute("DELETE FROM record", [])?;
        }
        self.take_records(is_current && !is_whole_by_sum, &mut recovered)?;
        recovered.is_of_catalog = found.state.is_some()
            || found.root.is_some()
            || found.totals.iter().any(Option::is_some)
            || recovered.from_catalog > 0;
        recovered.lost_tables = self.take_tables(&found.totals, is_current)?;
        self.take_blocks(is_current)?;
        if self.take_file_systems()? {
            recovered.lost_tables.push(Table::FileSystem.name());
        }
        recovered.has_all_rows = is_current || is_whole_by_sum;
        let root = found.root.or(known_by_backup).unwrap_or_else(|| RootRow {
            file_system: FileSystemId(0),
            inode: volume.has_stable_inodes.then_some(inode),
            settings: RootSettings::default(),
            made_by: MADE_BY.to_owned(),
            made_s: now_s,
            totals: RecordTotals::default(),
        });
        let id = found.state.map(|state| state.catalog).or(backup.as_ref().map(|b| b.catalog));
        let sequence = found.state.map_or(0, |state| state.sequence);
        let sequence = sequence.max(backup.map_or(0, |backup| backup.sequence));
        self.finish(root, volume, inode, id, sequence)?;
        Ok(recovered)
    }

    /// Puts all rows of a damaged file into tables beside those that are put
    /// together, and the sound ones of `record`, the newest of each path, into one
    /// of their own.
    fn salvage(&mut self, pages: &Pages) -> rusqlite::Result<SelfClaims> {
        let mut found = SelfClaims::default();
        let mut outcome = Ok(());
        let mut totals = Vec::new();
        pages.each_row(&mut |row| {
            if outcome.is_err() {
                return;
            }
            outcome = match RowKind::of(row) {
                Some(RowKind::Table(table, values)) => self.put_salvaged(table, &values),
                Some(RowKind::Total(values)) => {
                    totals.push(values);
                    Ok(())
                }
                Some(RowKind::State(values)) => {
                    found.state = BackupState::from_values(&values).or(found.state);
                    Ok(())
                }
                None => Ok(()),
            };
        });
        outcome?;
        found.totals = CountedTable::ALL.map(|table| TableTotals::from_values(table, &totals));
        found.root = self.salvaged_root()?;
        self.choose_sound_records()?;
        Ok(found)
    }

    fn put_salvaged(&self, table: Table, values: &[Value]) -> rusqlite::Result<()> {
        let places: Vec<_> = (1..=values.len()).map(|place| format!("?{place}")).collect();
        let sql = format!("INSERT INTO {} VALUES ({})", salvaged(table), places.join(", "));
        self.connection.prepare_cached(&sql)?.execute(params_from_iter(values)).map(drop)
    }

    /// The root as it was, if its row is sound.
    fn salvaged_root(&mut self) -> rusqlite::Result<Option<RootRow>> {
        self.connection.execute_batch("SAVEPOINT root")?;
        self.connection.execute_batch(
            "DELETE FROM root; INSERT OR IGNORE INTO root SELECT * FROM salvaged_root",
        )?;
        let root = root_row::read_root(&self.connection, &mut self.sealer);
        self.connection.execute_batch("ROLLBACK TO root; RELEASE root")?;
        root
    }

    fn choose_sound_records(&mut self) -> rusqlite::Result<()> {
        let sql = concat!("SELECT ", row::columns!(), " FROM salvaged_record");
        let mut select = self.connection.prepare(sql)?;
        let by_path = concat!("SELECT ", row::columns!(), " FROM sound_record WHERE path = ?1");
        let mut by_path = self.connection.prepare(by_path)?;
        let mut insert = self.connection.prepare(
            "INSERT OR REPLACE INTO sound_record VALUES \
             (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20)",
        )?;
        let mut rows = select.query([])?;
        while let Some(sql_row) = rows.next()? {
            let (StoredRow::Sound(row), _) = row::read(sql_row, &mut self.sealer)? else {
                continue;
            };
            let mut others = by_path.query([row.record.path.as_bytes()])?;
            let other = others.next()?.map(|other| row::read(other, &mut self.sealer));
            if let Some((StoredRow::Sound(other), _)) = other.transpose()?
                && date(&other) >= date(&row)
            {
                continue;
            }
            drop(others);
            insert.execute(params_from_iter(row::values(&row).map(row::Borrowed)))?;
        }
        Ok(())
    }

    fn sound_totals(&self) -> rusqlite::Result<RecordTotals> {
        let sql = concat!("SELECT ", row::columns!(), " FROM sound_record");
        let mut statement = self.connection.prepare(sql)?;
        let (mut rows, mut sealer) = (statement.query([])?, RowChecksum::new());
        let mut totals = RecordTotals::default();
        while let Some(sql_row) = rows.next()? {
            if let (StoredRow::Sound(row), _) = row::read(sql_row, &mut sealer)? {
                totals.add(&row);
            }
        }
        Ok(totals)
    }

    /// Brings the rows of the backup and those of the damaged file together.
    fn take_records(
        &mut self,
        is_current: bool,
        recovered: &mut Recovered,
    ) -> rusqlite::Result<()> {
        let sql = concat!("SELECT ", row::columns!(), " FROM sound_record");
        let mut select = self.connection.prepare(sql)?;
        let by_path = concat!("SELECT ", row::columns!(), " FROM record WHERE path = ?1");
        let mut by_path = self.connection.prepare(by_path)?;
        let mut put = self.connection.prepare(row::REPLACE)?;
        let mut rows = select.query([])?;
        while let Some(sql_row) = rows.next()? {
            let (StoredRow::Sound(row), _) = row::read(sql_row, &mut self.sealer)? else {
                continue;
            };
            let mut others = by_path.query([row.record.path.as_bytes()])?;
            let other = others.next()?.map(|other| row::read(other, &mut self.sealer));
            let other = other.transpose()?;
            drop(others);
            let is_taken = match other {
                // The backup knows all that is claimed: the row was taken away, or
                // is an older one, and only dates of verification can be newer.
                None if is_current => false,
                Some((StoredRow::Sound(other), _)) if is_current => {
                    other.claims_same_as(&row) && date(&row) >= date(&other)
                }
                Some((StoredRow::Sound(other), _)) => date(&row) >= date(&other),
                _ => true,
            };
            if is_taken {
                put.execute(params_from_iter(row::values(&row).map(row::Borrowed)))?;
                recovered.from_catalog += 1;
            }
        }
        drop(rows);
        drop((select, by_path, put));
        let count = "SELECT count(*) FROM record";
        let rows: i64 = self.connection.query_row(count, [], |row| row.get(0))?;
        recovered.from_backup = rows.cast_unsigned().saturating_sub(recovered.from_catalog);
        Ok(())
    }

    /// Takes the tables beside `record`: as a whole if their total proves them, else
    /// what the backup has, with the rows that prove themselves if it may be older.
    /// Returns those of which rows may be lacking.
    fn take_tables(
        &mut self,
        totals: &[Option<TableTotal>; CountedTable::ALL.len()],
        is_current: bool,
    ) -> rusqlite::Result<Vec<&'static str>> {
        let mut lost = Vec::new();
        for counted in CountedTable::ALL {
            let table = counted.table();
            let (name, salvaged) = (table.name(), salvaged(table));
            let found = counted.count_in(&self.connection, &salvaged)?;
            if totals[counted as usize] == Some(found) {
                self.connection.execute_batch(&format!(
                    "DELETE FROM {name}; INSERT INTO {name} SELECT * FROM {salvaged}"
                ))?;
            } else if !is_current {
                lost.push(name);
                if table.is_sealed() {
                    self.take_sealed(table)?;
                }
            }
        }
        Ok(lost)
    }

    fn take_sealed(&mut self, table: Table) -> rusqlite::Result<()> {
        let sql = format!("SELECT * FROM {}", salvaged(table));
        let mut select = self.connection.prepare(&sql)?;
        let columns = table.columns().0;
        let mut rows = select.query([])?;
        while let Some(sql_row) = rows.next()? {
            let values = (0..columns).map(|column| sql_row.get(column));
            let values: Vec<Value> = values.collect::<rusqlite::Result<_>>()?;
            if fits_its_seal(&values, &mut self.sealer) {
                table.put(&self.connection, &values)?;
            }
        }
        Ok(())
    }

    /// Lists of block values prove themselves, which is checked when they are used.
    fn take_blocks(&self, is_current: bool) -> rusqlite::Result<()> {
        let or = if is_current { "IGNORE" } else { "REPLACE" };
        self.connection
            .execute_batch(&format!("INSERT OR {or} INTO block SELECT * FROM salvaged_block"))
    }

    /// File systems that records refer to and of which nothing is left are ones
    /// that nothing can be compared with. Returns true if there are such.
    fn take_file_systems(&mut self) -> rusqlite::Result<bool> {
        self.take_sealed(Table::FileSystem)?;
        let mut select = self.connection.prepare(
            "SELECT DISTINCT file_system FROM record \
             WHERE file_system NOT IN (SELECT id FROM file_system)",
        )?;
        let lost = select.query_map([], |row| row.get(0))?;
        let lost: Vec<i64> = lost.collect::<rusqlite::Result<_>>()?;
        for id in &lost {
            let values = root_row::unknown_file_system(*id, &mut self.sealer);
            Table::FileSystem.put(&self.connection, &values)?;
        }
        Ok(!lost.is_empty())
    }

    fn finish(
        mut self,
        mut root: RootRow,
        volume: Volume,
        inode: u64,
        id: Option<[u8; 16]>,
        sequence: u64,
    ) -> rusqlite::Result<()> {
        root.totals = RecordTotals::default();
        let mut digests_of_all = None;
        let sql = concat!("SELECT ", row::columns!(), " FROM record");
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(sql_row) = rows.next()? {
            if let (StoredRow::Sound(row), _) = row::read(sql_row, &mut self.sealer)? {
                root.totals.add(&row);
                let digests = row.record.digests.algorithms();
                if digests != AlgorithmSet::default() {
                    digests_of_all =
                        Some(digests_of_all.map_or(digests, |all: AlgorithmSet| {
                            all.without(all.without(digests))
                        }));
                }
            }
        }
        drop(rows);
        drop(statement);
        if root.settings.digests == AlgorithmSet::default() {
            // No row tells what is computed for new files: that which all files have.
            root.settings.digests = digests_of_all.unwrap_or_default().recordable();
        }
        let known = root_row::read_file_systems(&self.connection, &mut self.sealer)?;
        let known = known.unwrap_or_default();
        if !known.iter().any(|known| known.id == root.file_system) {
            let last = known.iter().map(|known| known.id.0).max().unwrap_or(0);
            root.file_system = FileSystemId(last + 1);
            root.inode = volume.has_stable_inodes.then_some(inode);
            root_row::store_new_file_system(
                &self.connection,
                root.file_system,
                volume,
                inode,
                &mut self.sealer,
            )?;
        }
        root_row::store_root(&self.connection, &root, &mut self.sealer)?;
        TableTotals::count(&self.connection)?.store(&self.connection)?;
        let catalog = id.map_or_else(|| draw(&self.connection), Ok)?;
        BackupState::behind(catalog, sequence).store(&self.connection)?;
        self.connection.execute_batch("COMMIT")
    }
}

/// Statements of a damaged file about itself.
#[derive(Default)]
struct SelfClaims {
    root: Option<RootRow>,
    totals: [Option<TableTotal>; CountedTable::ALL.len()],
    state: Option<BackupState>,
}

/// Tells rows of `redated`, which end with a number of files, from those of `own_change`,
/// which end with a date: 18 minutes after 1970, nanoseconds. A row that this takes for
/// what it is not has the table fail its total.
const CHANGE_TIME_NS_MIN: i64 = 1 << 40;

/// The only table that a row can be of.
enum RowKind {
    Table(Table, Vec<Value>),
    /// A row of `table_total`.
    Total(Vec<Value>),
    /// The row of `backup`.
    State(Vec<Value>),
}

impl RowKind {
    fn of(row: RawRow) -> Option<Self> {
        use Value::{Blob, Integer, Null, Text};
        let RawRow { rowid, mut values } = row;
        // The column that stands for the rowid is NULL in the file.
        if let (Some(rowid), Some(first @ Null)) = (rowid, values.first_mut()) {
            *first = Integer(rowid);
        }
        let table = match (rowid.is_some(), &values[..]) {
            (false, [Blob(_), ..]) if values.len() == 20 => Table::Record,
            (false, [Integer(_), Integer(_), Blob(_)]) => Table::Block,
            (false, [Text(_), Text(_), Integer(_)]) => Table::Choice,
            (false, [Blob(_), Blob(_), Integer(_)]) => Table::Metadata,
            (false, [Blob(_), Text(_), Integer(_), Integer(_), Integer(_)]) => Table::Finding,
            (false, [Blob(_)]) => Table::Nested,
            (false, [Blob(_), Integer(count)]) if *count < CHANGE_TIME_NS_MIN => Table::Redated,
            (false, [Text(_), Integer(_), Integer(_), Integer(_)]) => {
                return Some(Self::Total(values));
            }
            (true, [Integer(_), Integer(_), ..]) if values.len() == 12 => Table::Root,
            (true, [Integer(_), Integer(_), Text(_), ..]) if values.len() == 13 => {
                Table::Generation
            }
            (true, [Integer(_), Text(_), ..]) if values.len() == 7 => Table::FileSystem,
            (true, [Integer(_), Integer(_), Text(_), ..]) if values.len() == 7 => {
                Table::Verification
            }
            (true, [Integer(_), Blob(_), ..]) if values.len() == 7 => {
                return Some(Self::State(values));
            }
            (true, [Integer(_), Blob(_), Text(_), _, _]) => Table::Accepted,
            _ => return None,
        };
        Some(Self::Table(table, values))
    }
}

/// Dates the last change of a row, as far as it tells, nanoseconds since 1970.
fn date(row: &Row) -> i64 {
    let ns = |seconds: i64| seconds.saturating_mul(1_000_000_000);
    let record = &row.record;
    record.hashed_ns.max(ns(record.verified_s)).max(record.gone_s.map_or(0, ns))
}

/// Tells whether the last column is the seal over those before it.
fn fits_its_seal(values: &[Value], sealer: &mut RowChecksum) -> bool {
    let Some((Value::Integer(seal), sealed)) = values.split_last() else { return false };
    for value in sealed {
        match value {
            Value::Null => sealer.integer(None),
            Value::Integer(value) => sealer.integer(Some(*value)),
            Value::Blob(value) => sealer.bytes(Some(value)),
            Value::Text(value) => sealer.bytes(Some(value.as_bytes())),
            Value::Real(_) => {
                sealer.seal();
                return false;
            }
        };
    }
    sealer.seal() == seal.cast_unsigned()
}

/// Takes from records the lists of block values that `is_proven` does not hold
/// for: the pages they were on are lost. How many records had one.
pub fn drop_unproven_blocks(
    catalog: &mut Catalog,
    is_proven: &dyn Fn(&Row, &[[u8; 32]]) -> bool,
) -> Result<u64> {
    let mut dropped = HashSet::new();
    let mut after = Vec::new();
    loop {
        let page = catalog.page(&super::PageStart::After(&after), None)?;
        let Some(last) = page.last() else { return Ok(dropped.len() as u64) };
        after = last.path().as_bytes().to_vec();
        for stored in page {
            let StoredRow::Sound(row) = stored else { continue };
            if !row.has_blocks() || is_proven(&row, &catalog.block_values().of(&row)?) {
                continue;
            }
            dropped.insert(row.record.path.clone());
            let record = row.record.clone();
            catalog.put(Some(&row), record, &[])?;
        }
    }
}
