//! The database below a catalog: its connection, the open transaction, the totals of the
//! counted tables, and the backup that receives each change. The types of the tables read
//! and write through it and see nothing else of the catalog.

use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, Params, Row as SqlRow};

use super::backup::BackupLog;
use super::sqlite_error::{CACHE_KIB_TO_WRITE, map_sqlite_error, not_written_because, untrusted};
use super::table_total::{CountedTable, TableTotal, TableTotals, checksum};
use super::tables::Table;
use fsure_core::{Error, Result};

/// Receives each row that was inserted or deleted, and its checksum.
type EachChanged<'a> =
    dyn FnMut(&mut TableTotal, Option<&mut BackupLog>, u64, &SqlRow<'_>) -> SqlResult + 'a;

type SqlResult = rusqlite::Result<()>;

/// An open database with its transaction.
pub struct Database {
    connection: Connection,
    /// The file that errors name.
    file: PathBuf,
    /// Of the tables beside `record`.
    table_totals: TableTotals,
    /// Receives each change, too, while the catalog may be written.
    backup: Option<BackupLog>,
    /// True if a row of metadata was replaced that was not as it was written.
    needs_metadata_count: bool,
    is_writing: bool,
    has_committed: bool,
    /// True once a transaction was taken back: what is in memory, the totals above all, is that
    /// of the failed run, and no transaction begins any more.
    was_rolled_back: bool,
    has_changed_claims: bool,
}

impl Database {
    /// Takes over a connection; `table_totals` are those that the file records.
    pub(super) fn new(
        connection: Connection,
        file: &Path,
        table_totals: TableTotals,
        backup: Option<BackupLog>,
    ) -> Self {
        Self {
            connection,
            file: file.to_owned(),
            table_totals,
            backup,
            needs_metadata_count: false,
            is_writing: false,
            has_committed: false,
            was_rolled_back: false,
            has_changed_claims: false,
        }
    }

    /// Has errors name another file than the database's own.
    pub(super) fn name_in_errors(&mut self, file: &Path) {
        self.file = file.to_owned();
    }

    /// Converts an error of SQLite into the one that the run reports.
    pub(super) fn error(&self, error: &rusqlite::Error) -> Error {
        map_sqlite_error(&self.file, error)
    }

    /// Returns the error that the catalog cannot be trusted.
    pub(super) fn untrusted(&self, why: impl Into<String>) -> Error {
        untrusted(&self.file, why.into())
    }

    /// Runs statements, and converts their error.
    pub(super) fn run<T>(
        &self,
        statements: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T> {
        statements(&self.connection).map_err(|error| self.error(&error))
    }

    /// Prepares a statement, or takes it from the cache.
    pub(super) fn prepare(&self, sql: &str) -> Result<CachedStatement<'_>> {
        self.connection.prepare_cached(sql).map_err(|error| self.error(&error))
    }

    /// Runs one cached statement and returns the number of rows that it changed.
    pub(super) fn execute(&self, sql: &str, values: impl Params) -> Result<usize> {
        self.run(|connection| connection.prepare_cached(sql)?.execute(values))
    }

    /// Returns true if the database has no name, and is gone with this process.
    pub(super) fn is_temporary(&self) -> bool {
        self.connection.path().is_none_or(str::is_empty)
    }

    /// Returns true if the file cannot be written at its place.
    pub(super) fn is_read_only(&self) -> bool {
        self.connection.is_readonly(rusqlite::MAIN_DB).unwrap_or(true)
    }

    /// Returns true if a transaction that writes is open.
    pub(super) fn is_writing(&self) -> bool {
        self.is_writing
    }

    /// Holds the file open for reading until [`Database::release`], so that many single
    /// rows need not each take and give back its locks. Another process that wants to write
    /// waits meanwhile.
    pub(super) fn pin_snapshot(&mut self) -> Result<()> {
        if !self.is_writing && self.connection.is_autocommit() {
            self.run(|connection| connection.execute_batch("BEGIN"))?;
        }
        Ok(())
    }

    /// Ends what [`Database::pin_snapshot`] began.
    pub(super) fn release(&mut self) {
        if !self.is_writing && !self.connection.is_autocommit() {
            // It has only read: that it ends cannot fail in a way that matters.
            let _ = self.connection.execute_batch("COMMIT");
        }
    }

    /// Starts a transaction unless one is open. Returns an error if an earlier one was taken
    /// back: a commit would store the totals of rows that are not there.
    pub(super) fn begin(&mut self) -> Result<()> {
        // SQLite takes a transaction back by itself on a full disk. Each statement after that
        // would be a transaction of its own.
        if self.was_rolled_back || self.is_writing && self.connection.is_autocommit() {
            return Err(not_written_because(
                &self.file,
                "an earlier write of this run to it has failed",
                "run the same command again",
            ));
        }
        if !self.is_writing {
            self.release();
            self.run(|connection| {
                connection.pragma_update(None, "cache_size", CACHE_KIB_TO_WRITE)?;
                connection.execute_batch("BEGIN IMMEDIATE")
            })?;
            self.is_writing = true;
        }
        Ok(())
    }

    /// Starts the transaction in which the tables of a new catalog are made.
    pub(super) fn begin_new(
        &mut self,
        create: impl FnOnce(&Connection) -> rusqlite::Result<()>,
    ) -> Result<()> {
        self.run(|connection| {
            connection.execute_batch("BEGIN")?;
            create(connection)
        })?;
        self.is_writing = true;
        Ok(())
    }

    /// Stores the totals and makes all that was written since the last commit durable, in
    /// the database and then in the backup.
    pub(super) fn commit(&mut self, has_new_file_system: bool) -> Result<()> {
        if std::mem::take(&mut self.needs_metadata_count) {
            self.recount(CountedTable::Metadata)?;
        }
        self.run(|connection| self.table_totals.store(connection))?;
        self.prepare_backup(has_new_file_system).map_err(|error| self.error(&error))?;
        self.run(|connection| connection.execute_batch("COMMIT"))?;
        self.is_writing = false;
        self.has_committed = true;
        if let Some(backup) = &mut self.backup {
            backup.append();
        }
        Ok(())
    }

    fn prepare_backup(&mut self, has_new_file_system: bool) -> rusqlite::Result<()> {
        let Some(backup) = &mut self.backup else { return Ok(()) };
        if has_new_file_system {
            let put = &mut |row: &SqlRow<'_>| backup.put(Table::FileSystem, row);
            Table::FileSystem.each_row(&self.connection, put)?;
        }
        if backup.has_changes() {
            let put = &mut |row: &SqlRow<'_>| backup.put(Table::Root, row);
            Table::Root.each_row(&self.connection, put)?;
        }
        backup.prepare(&self.connection)
    }

    /// Takes back all that was written since the last commit. No transaction begins after this.
    pub(super) fn rollback(&mut self) {
        if self.is_writing {
            self.was_rolled_back = true;
            // It fails where SQLite has rolled back by itself (disk full).
            let _ = self.connection.execute_batch("ROLLBACK");
            self.is_writing = false;
            if let Some(backup) = &mut self.backup {
                backup.roll_back();
            }
        }
    }

    /// Gives free pages back to the disk, in a transaction of SQLite's own.
    pub(super) fn vacuum(&self) -> Result<()> {
        self.run(|connection| connection.execute_batch("VACUUM"))
    }

    /// Notes that the catalog claims anything that it did not claim when it was opened.
    pub(super) fn note_changed_claim(&mut self) {
        self.has_changed_claims = true;
    }

    /// Returns true if a claim has changed since the catalog was opened.
    pub(super) fn has_changed_claims(&self) -> bool {
        self.has_changed_claims
    }

    /// Notes for the backup that a row was put.
    pub(super) fn back_up_put(&mut self, table: Table, values: &[ValueRef<'_>]) {
        if let Some(backup) = &mut self.backup {
            backup.put_values(table, values);
        }
    }

    /// Notes for the backup that a row is gone.
    pub(super) fn back_up_delete(&mut self, table: Table, key: &[ValueRef<'_>]) {
        if let Some(backup) = &mut self.backup {
            backup.delete(table, key);
        }
    }

    /// Returns true if the backup has to be written anew, as a whole, for what this run has
    /// committed, and can be. After a transaction that was taken back, the next run does that.
    pub(super) fn needs_whole_backup(&self) -> bool {
        self.has_kept_commits() && self.backup.as_ref().is_some_and(BackupLog::needs_whole_copy)
    }

    /// Returns true if the last transaction was committed. What the backup has in memory is of
    /// the last one.
    fn has_kept_commits(&self) -> bool {
        self.has_committed && !self.was_rolled_back
    }

    /// Writes the backup anew, in the open transaction. Returns the error of the system if
    /// it refuses: the catalog is as sound without.
    pub(super) fn write_whole_backup(&mut self) -> Result<std::io::Result<()>> {
        let Some(backup) = &mut self.backup else { return Ok(Ok(())) };
        let written = backup.write_whole_copy(&self.connection);
        written.map_err(|error| self.error(&error))
    }

    /// Makes the backup durable up to what this run has committed.
    pub(super) fn sync_backup(&mut self) -> std::io::Result<()> {
        match &mut self.backup {
            Some(backup) if self.has_committed => backup.sync(),
            _ => Ok(()),
        }
    }

    /// Brings a copy of the backup in step that is kept in another folder, under a name
    /// with that of the root and of the catalog in it.
    pub(super) fn copy_backup(&self, folder: &Path, root: &str) -> std::io::Result<()> {
        match &self.backup {
            Some(backup) if self.has_kept_commits() => backup.copy_to(folder, root),
            _ => Ok(()),
        }
    }

    /// Returns the total of a table as of the last change.
    pub(super) fn total(&self, table: CountedTable) -> TableTotal {
        self.table_totals.of(table)
    }

    /// Inserts rows into a counted table, in the open transaction. `sql` must
    /// not replace rows: those have to be deleted first, to leave the total.
    pub(super) fn insert_counted(
        &mut self,
        table: CountedTable,
        sql: &str,
        values: impl Params,
    ) -> Result<()> {
        self.change_counted(table, sql, values, &mut |total, backup, checksum, row| {
            total.add(checksum);
            backup.map_or(Ok(()), |backup| backup.put(table.table(), row))
        })
    }

    /// Deletes rows from a counted table, in the open transaction.
    pub(super) fn delete_counted(
        &mut self,
        table: CountedTable,
        sql: &str,
        values: impl Params,
    ) -> Result<()> {
        self.change_counted(table, sql, values, &mut |total, backup, checksum, row| {
            total.remove(checksum);
            let Some(backup) = backup else { return Ok(()) };
            let (_, key) = table.table().columns();
            let key = (0..key).map(|column| row.get_ref(column));
            let key = key.collect::<rusqlite::Result<Vec<_>>>()?;
            backup.delete(table.table(), &key);
            Ok(())
        })
    }

    fn change_counted(
        &mut self,
        table: CountedTable,
        sql: &str,
        values: impl Params,
        each: &mut EachChanged<'_>,
    ) -> Result<()> {
        let sql = format!("{sql} RETURNING *");
        let total = self.table_totals.of_mut(table);
        let (connection, backup) = (&self.connection, &mut self.backup);
        let change = || -> rusqlite::Result<()> {
            let mut statement = connection.prepare_cached(&sql)?;
            let columns = statement.column_count();
            let (mut rows, mut bytes) = (statement.query(values)?, Vec::new());
            while let Some(row) = rows.next()? {
                let checksum = checksum(row, columns, &mut bytes)?;
                each(total, backup.as_mut(), checksum, row)?;
            }
            Ok(())
        };
        let changed = change();
        changed.map_err(|error| self.error(&error))
    }

    /// Takes the rows of `metadata` as they are for the truth with the next commit: one of
    /// them was replaced that was not as it was written.
    pub(super) fn recount_metadata_at_commit(&mut self) {
        self.needs_metadata_count = true;
    }

    fn recount(&mut self, table: CountedTable) -> Result<()> {
        *self.table_totals.of_mut(table) = self.run(|connection| table.count(connection))?;
        Ok(())
    }

    /// Says what is wrong with a counted table taken together, if anything.
    pub(super) fn objection(&self, table: CountedTable) -> Result<Option<String>> {
        self.run(|connection| table.objection(connection, self.total(table)))
    }

    /// Refuses a catalog of which this table is not as it was written.
    pub(super) fn require_total(&self, table: CountedTable) -> Result<()> {
        match self.objection(table)? {
            None => Ok(()),
            Some(why) => Err(self.untrusted(why)),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use fsure_core::{Algorithm, AlgorithmSet, Digests, RelPath};
    use fsure_os::filesystem_id::Volume;

    use super::super::{Audit, Catalog, RootSettings};
    use super::*;
    use crate::model::{Entry, EntryKind, FileSystemId, Record};

    /// The record of a folder.
    pub(in crate::catalog) fn record(path: &str) -> Record {
        let entry = Entry {
            kind: EntryKind::Folder,
            size: 0,
            mtime_ns: 0,
            ctime_ns: None,
            birth_ns: None,
            inode: None,
            file_system: FileSystemId(1),
            target: None,
        };
        Record {
            path: RelPath::from_bytes(path.as_bytes()),
            entry,
            digests: Digests::default(),
            hashed_ns: 0,
            verified_s: 0,
            gone_s: None,
        }
    }

    fn open_to_write(file: &Path) -> Catalog {
        Catalog::open(file, Some(Catalog::lock(file, |_| Ok(())).unwrap())).unwrap()
    }

    /// Makes a catalog with two rows, and a backup that a run has to write anew.
    fn catalog_without_backup(file: &Path) -> Catalog {
        let digests = AlgorithmSet::of(&[Algorithm::Blake3]);
        let settings = RootSettings { digests, cross_file_systems: false };
        Catalog::create(file, settings, (Volume::unknown(), 1), 0).unwrap();
        let mut catalog = open_to_write(file);
        catalog.put(None, record("a"), &[]).unwrap();
        catalog.commit().unwrap();
        drop(catalog);
        fsure_os::path::remove(&Catalog::backup_file(file), false);
        let mut catalog = open_to_write(file);
        catalog.put(None, record("b"), &[]).unwrap();
        catalog.commit().unwrap();
        assert!(catalog.database().needs_whole_backup());
        catalog
    }

    #[test]
    fn a_transaction_that_was_taken_back_is_the_last_one() {
        for is_by_sqlite in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("catalog.db");
            let mut catalog = catalog_without_backup(&file);
            catalog.put(None, record("c"), &[]).unwrap();
            if is_by_sqlite {
                catalog.database().run(|connection| connection.execute_batch("ROLLBACK")).unwrap();
            } else {
                catalog.rollback();
            }
            for written in [catalog.put(None, record("d"), &[]), catalog.commit()] {
                assert!(matches!(written, Err(Error::RecordNotWritten { .. })), "{written:?}");
            }
            catalog.rollback();
            catalog.keep_backup().unwrap().unwrap();
            drop(catalog);
            let mut catalog = Catalog::open(&file, None).unwrap();
            let audit = Audit::of(&mut catalog).unwrap();
            assert!(audit.is_clean(), "{audit:?}");
            assert_eq!(catalog.rows(), 2);
        }
    }
}
