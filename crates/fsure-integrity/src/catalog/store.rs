//! Opening, making, reading and writing a catalog.

use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fsure_os::filesystem_id::Volume;
use fsure_os::lock::{self, Attempt, Lock};
use fsure_os::path as os_path;
use fsure_os::user_file::open_own;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};

use super::backup::{BackupLog, BackupState};
use super::claims::claims_the_same;
use super::location::is_lost;
use super::reject_special_files::refuse_irregular;
use super::root_options::{self, RootOptions};
use super::root_row::{self, FileSystem, RecordTotals, RootRow, RootSettings};
use super::row::{self, Row, StoredRow};
use super::row_checksum::RowChecksum;
use super::schema::{self, HEAD_BYTES};
use super::sqlite_error::{
    CACHE_KIB_TO_WRITE, connect, foreign, lost, map_sqlite_error, not_written, untrusted,
};
use super::table_total::{CountedTable, TableTotals};
use super::tables::Table;
use crate::model::{FileSystemId, Record};
use fsure_core::{Algorithm, Error, IoContext as _, RelPath, Result};

/// Rows fetched at once: enough to make the call cheap, few enough to stay in
/// the processor's cache until they are looked at. 2048 rows took memory from
/// the system and gave it back for every page.
pub const PAGE_ROWS: usize = 256;

/// The program and its version, as a record tells them.
pub const MADE_BY: &str = concat!("fsure ", env!("CARGO_PKG_VERSION"));

const UNSEALED: &str = "the description of its root fails its seal";

/// Start of a page of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageStart<'a> {
    /// At this path or the first one after it.
    From(&'a [u8]),
    /// After this path.
    After(&'a [u8]),
}

/// An open catalog.
pub struct Catalog {
    pub(super) connection: Connection,
    pub(super) file: PathBuf,
    pub(super) root: RootRow,
    file_systems: Vec<FileSystem>,
    pub(super) sealer: RowChecksum,
    pub(super) choices: RootOptions,
    /// Of the tables beside `record`.
    pub(super) table_totals: TableTotals,
    /// Over all sound rows that were fetched page by page.
    fetched: RecordTotals,
    is_writing: bool,
    needs_recount: bool,
    /// True if a row of metadata was replaced that was not as it was written.
    pub(super) needs_metadata_count: bool,
    /// True if CRC-32 values are kept beside the records.
    pub(super) has_crc32: bool,
    /// True if a claim was changed since the catalog was opened.
    pub(super) has_changed: bool,
    /// Receives each change, too, while the catalog may be written.
    pub(super) backup: Option<BackupLog>,
    /// True if anything was committed since it was opened.
    has_committed: bool,
    /// Held for as long as the catalog may be written.
    _lock: Option<Lock>,
}

impl Catalog {
    /// The file that is locked by the one process that may write the catalog.
    pub fn lock_file(file: &Path) -> PathBuf {
        os_path::with_suffix(file, ".lock")
    }

    /// Refuses a file that is there and does not begin as a catalog does, and one that is
    /// gone while its backup is there, before a lock is made beside it.
    pub fn refuse_foreign(file: &Path) -> Result<()> {
        refuse_irregular(file)?;
        refuse_lost(file)?;
        if !os_path::exists(file) || os_path::exists(&os_path::with_suffix(file, "-journal")) {
            return Ok(());
        }
        let mut head = [0; HEAD_BYTES];
        let mut content = open_own(file).context("open", file)?;
        match content.read_exact(&mut head) {
            Ok(()) if schema::is_head_of_catalog(&head) => Ok(()),
            Err(error) if error.kind() != ErrorKind::UnexpectedEof => {
                Err(error).context("read", file)
            }
            _ => Err(foreign(file)),
        }
    }

    /// Waits until this process is the only one that may write the catalog.
    /// `waiting` is called with what the other one says about itself, about
    /// five times a second, and ends the wait by an error.
    pub fn lock(file: &Path, mut waiting: impl FnMut(&str) -> Result<()>) -> Result<Lock> {
        let lock_file = Self::lock_file(file);
        refuse_irregular(file)?;
        loop {
            match lock::try_lock(&lock_file) {
                Ok(Attempt::Locked(lock)) => return Ok(lock),
                Ok(Attempt::HeldBy(holder)) => {
                    waiting(&holder)?;
                    std::thread::sleep(Duration::from_millis(200));
                }
                Err(error) => return Err(not_written(file, &error)),
            }
        }
    }

    /// Makes an empty catalog for a root. It comes to its name only when it is
    /// whole, so that a cut-off catalog is always damage. The caller holds its
    /// lock.
    pub fn create(
        file: &Path,
        settings: RootSettings,
        root: (Volume, u64),
        now_s: i64,
    ) -> Result<()> {
        let making = os_path::with_suffix(file, ".making");
        os_path::remove(&making, false);
        let made = Self::make(&making, settings, root, now_s);
        if let Err(error) = made.and_then(|made| {
            drop(made);
            os_path::rename(&making, file).map_err(|error| not_written(file, &error))
        }) {
            os_path::remove(&making, false);
            return Err(error);
        }
        Ok(())
    }

    /// A catalog of which nothing stays, for a list that is to be judged like
    /// one. `list` is the file that errors name. What does not fit into its
    /// cache lies in a file without a name.
    pub fn temporary(list: &Path, settings: RootSettings, root: (Volume, u64)) -> Result<Self> {
        let settings = RootSettings { digests: settings.digests.recordable(), ..settings };
        let mut catalog = Self::make(Path::new(""), settings, root, 0)?;
        catalog.file = list.to_owned();
        Ok(catalog)
    }

    fn make(file: &Path, settings: RootSettings, root: (Volume, u64), now_s: i64) -> Result<Self> {
        let connection = connect(file, OpenFlags::SQLITE_OPEN_CREATE)?;
        let mut catalog = Self {
            connection,
            file: file.to_owned(),
            root: RootRow {
                file_system: FileSystemId(0),
                inode: None,
                settings,
                made_by: MADE_BY.to_owned(),
                made_s: now_s,
                totals: RecordTotals::default(),
            },
            file_systems: Vec::new(),
            sealer: RowChecksum::new(),
            choices: RootOptions::default(),
            table_totals: TableTotals::default(),
            fetched: RecordTotals::default(),
            is_writing: false,
            needs_recount: false,
            needs_metadata_count: false,
            has_crc32: false,
            has_changed: false,
            backup: None,
            has_committed: false,
            _lock: None,
        };
        catalog.connection.execute_batch("BEGIN").map_err(|e| catalog.blame(&e))?;
        schema::create(&catalog.connection).map_err(|e| catalog.blame(&e))?;
        catalog.is_writing = true;
        catalog.bind_root(root.0, root.1)?;
        catalog.commit()?;
        Ok(catalog)
    }

    /// Opens a catalog: to write where a lock is given, else to read.
    pub fn open(file: &Path, lock: Option<Lock>) -> Result<Self> {
        refuse_lost(file)?;
        Self::on(connect(file, OpenFlags::empty())?, file, lock)
    }

    /// The catalog in an open database.
    pub(super) fn on(connection: Connection, file: &Path, lock: Option<Lock>) -> Result<Self> {
        let mut sealer = RowChecksum::new();
        let blame = |error: &rusqlite::Error| map_sqlite_error(file, error);
        if let Some(version) = schema::newer(&connection).map_err(|e| blame(&e))? {
            let catalog = file.to_owned();
            return Err(Error::RecordTooNew { catalog, version, known: schema::VERSION });
        }
        if let Some(why) = schema::objection(&connection).map_err(|e| blame(&e))? {
            return Err(untrusted(file, why));
        }
        let is_writable = !connection.is_readonly(rusqlite::MAIN_DB).unwrap_or(true);
        let permanently = lock.is_some() && is_writable;
        let totals = schema::complete(&connection, permanently).map_err(|e| blame(&e))?;
        let Some(table_totals) = totals else {
            return Err(untrusted(file, "the totals of its tables fail their checksum".to_owned()));
        };
        for table in [
            CountedTable::Choice,
            CountedTable::Nested,
            CountedTable::Finding,
            CountedTable::Redated,
        ] {
            let objection = table.objection(&connection, table_totals.of(table));
            if let Some(why) = objection.map_err(|e| blame(&e))? {
                return Err(untrusted(file, why));
            }
        }
        let file_systems =
            root_row::read_file_systems(&connection, &mut sealer).map_err(|e| blame(&e))?;
        let root = root_row::read_root(&connection, &mut sealer).map_err(|e| blame(&e))?;
        let choices = root_options::read(&connection, &mut sealer).map_err(|e| blame(&e))?;
        let (Some(file_systems), Some(root), Some(choices)) = (file_systems, root, choices) else {
            return Err(untrusted(file, UNSEALED.to_owned()));
        };
        let backup = match permanently {
            true => {
                let is_empty = root.totals.rows == 0 && table_totals.are_empty();
                Some(open_backup(&connection, file, is_empty))
            }
            false => None,
        };
        let backup = backup.transpose().map_err(|e| blame(&e))?;
        Ok(Self {
            connection,
            file: file.to_owned(),
            backup,
            has_committed: false,
            root,
            file_systems,
            sealer,
            choices,
            table_totals,
            fetched: RecordTotals::default(),
            is_writing: false,
            needs_recount: false,
            needs_metadata_count: false,
            has_crc32: false,
            has_changed: false,
            _lock: lock,
        })
    }

    /// Reads again what another process may have written meanwhile.
    pub(super) fn read_root_again(&mut self) -> Result<()> {
        let root = root_row::read_root(&self.connection, &mut self.sealer);
        self.root = root
            .map_err(|e| map_sqlite_error(&self.file, &e))?
            .ok_or_else(|| untrusted(&self.file, UNSEALED.to_owned()))?;
        Ok(())
    }

    /// Returns the settings that `update` keeps to.
    pub fn settings(&self) -> RootSettings {
        self.root.settings
    }

    /// Changes the settings that `update` keeps to, durable with the next commit.
    pub fn set_settings(&mut self, settings: RootSettings) -> Result<()> {
        if self.root.settings != settings {
            self.begin()?;
            self.has_changed |=
                self.root.settings.cross_file_systems != settings.cross_file_systems;
            self.root.settings = settings;
        }
        Ok(())
    }

    /// Returns true if the file cannot be written at its place.
    pub fn is_read_only(&self) -> bool {
        self.connection.is_readonly(rusqlite::MAIN_DB).unwrap_or(true)
    }

    /// Number of rows, tombstones included.
    pub fn rows(&self) -> u64 {
        self.root.totals.rows
    }

    /// Number of recorded files, tombstones left out.
    pub fn files(&self) -> u64 {
        self.root.totals.files
    }

    /// Their total size in bytes.
    pub fn bytes(&self) -> u64 {
        self.root.totals.bytes
    }

    /// Returns true if nothing was ever recorded.
    pub fn is_empty(&self) -> bool {
        self.root.totals.rows == 0
    }

    /// The root's file system and inode, as recorded.
    pub fn root_identity(&self) -> (&FileSystem, Option<u64>) {
        (self.file_system(self.root.file_system), self.root.inode)
    }

    /// Records that the root is this folder on this file system, durable with the next commit.
    pub fn bind_root(&mut self, volume: Volume, inode: u64) -> Result<()> {
        self.begin()?;
        let is_stable = volume.has_stable_inodes;
        self.root.file_system = self.file_system_of(volume, inode);
        self.root.inode = is_stable.then_some(inode);
        Ok(())
    }

    /// The catalog's number for a file system, new where it does not know it.
    pub fn file_system_of(&mut self, volume: Volume, anchor_inode: u64) -> FileSystemId {
        if let Some(known) = self.find_file_system(&volume, anchor_inode) {
            return known.id;
        }
        let anchor_inode = volume.has_stable_inodes.then_some(anchor_inode);
        let last = self.file_systems.iter().map(|known| known.id.0).max();
        let id = FileSystemId(last.unwrap_or(0) + 1);
        self.file_systems.push(FileSystem { id, volume, anchor_inode, is_stored: false });
        id
    }

    /// Tells whether the catalog knows a file system.
    pub fn has_file_system(&self, volume: &Volume, anchor_inode: u64) -> bool {
        self.find_file_system(volume, anchor_inode).is_some()
    }

    /// Without UUID, file systems of one kind are told apart by the inode of
    /// the folder through which they were seen.
    fn find_file_system(&self, volume: &Volume, anchor_inode: u64) -> Option<&FileSystem> {
        let anchor_inode = volume.has_stable_inodes.then_some(anchor_inode);
        self.file_systems.iter().find(|known| {
            let same_place = volume.uuid.is_some() || known.anchor_inode == anchor_inode;
            known.volume.kind == volume.kind && known.volume.uuid == volume.uuid && same_place
        })
    }

    /// Tells whether the number is that of a recorded file system.
    pub(super) fn knows_file_system(&self, id: FileSystemId) -> bool {
        self.file_systems.iter().any(|known| known.id == id)
    }

    /// A file system by its number.
    pub fn file_system(&self, id: FileSystemId) -> &FileSystem {
        let found = self.file_systems.iter().find(|known| known.id == id);
        found.unwrap_or(&self.file_systems[0])
    }

    /// Granularity of modification times on a file system, nanoseconds.
    pub fn granularity_ns(&self, id: FileSystemId) -> i64 {
        self.file_system(id).volume.mtime_granularity_ns
    }

    /// Rows in path order: at most [`PAGE_ROWS`] of those with
    /// `after < path` (or `first <= path`) and `path < end`.
    pub fn page(&mut self, from: &PageStart<'_>, end: Option<&[u8]>) -> Result<Vec<StoredRow>> {
        let (compare, start) = match from {
            PageStart::From(start) => (">=", *start),
            PageStart::After(start) => (">", *start),
        };
        let sql = format!(
            "SELECT {} FROM record WHERE path {compare} ?1 AND (?2 IS NULL OR path < ?2) \
             ORDER BY path LIMIT {PAGE_ROWS}",
            row::columns!()
        );
        let blame = |error: &rusqlite::Error| map_sqlite_error(&self.file, error);
        let mut statement = self.connection.prepare_cached(&sql).map_err(|e| blame(&e))?;
        let mut rows = statement.query(params![start, end]).map_err(|e| blame(&e))?;
        let mut page: Vec<StoredRow> = Vec::with_capacity(PAGE_ROWS);
        while let Some(sql_row) = rows.next().map_err(|e| blame(&e))? {
            let (stored, _) = row::read(sql_row, &mut self.sealer).map_err(|e| blame(&e))?;
            let last = page.last().map_or(start, |last| last.path().as_bytes());
            if stored.path().as_bytes() < last {
                return Err(untrusted(&self.file, "its rows are out of order".to_owned()));
            }
            if let StoredRow::Sound(row) = &stored {
                self.fetched.add(row);
            }
            page.push(stored);
        }
        drop(rows);
        drop(statement);
        for stored in &mut page {
            self.add_crc32(stored)?;
            self.add_metadata(stored)?;
        }
        self.add_known_damage(&mut page)?;
        Ok(page)
    }

    /// Returns true if the rows that were fetched page by page are all rows of the
    /// catalog, each once and sound: they have then passed the checks of an audit. It is
    /// false if metadata is recorded: metadata is fetched by its key, which does not find
    /// a row that has lost its own.
    pub fn has_shown_all(&self) -> bool {
        self.fetched == self.root.totals && self.choices.meta.is_empty()
    }

    /// One row.
    pub fn get(&mut self, path: &RelPath) -> Result<Option<StoredRow>> {
        let blame = |error: &rusqlite::Error| map_sqlite_error(&self.file, error);
        let sql = concat!("SELECT ", row::columns!(), " FROM record WHERE path = ?1");
        let mut statement = self.connection.prepare_cached(sql).map_err(|e| blame(&e))?;
        let sealer = &mut self.sealer;
        let found = statement.query_row([path.as_bytes()], |found| Ok(row::read(found, sealer)?.0));
        let mut found = found.optional().map_err(|e| blame(&e))?;
        drop(statement);
        if let Some(stored) = &mut found {
            self.add_crc32(stored)?;
            self.add_metadata(stored)?;
            self.add_known_damage(std::slice::from_mut(stored))?;
        }
        Ok(found)
    }

    /// Writes a record in place of the row `before`, which must be what the
    /// catalog holds for that path, with the block values if it has any.
    pub fn put(&mut self, before: Option<&Row>, record: Record, blocks: &[[u8; 32]]) -> Result<()> {
        self.begin()?;
        if let Some(list) = before.and_then(|row| row.blocks) {
            self.delete_blocks(list)?;
        }
        let list = if blocks.is_empty() { None } else { Some(self.insert_blocks(blocks)?) };
        self.replace(before, record, list)
    }

    /// Writes a record with the same content as the row it replaces, so that
    /// the block values stay as they are.
    pub fn put_same_content(&mut self, before: &Row, record: Record) -> Result<()> {
        self.begin()?;
        let was = &before.record;
        let is_seen_again = (&was.entry, &was.digests, was.gone_s)
            == (&record.entry, &record.digests, record.gone_s);
        if !is_seen_again {
            return self.replace(Some(before), record, before.blocks);
        }
        let row = Row::new(record, before.blocks, &mut self.sealer);
        let mut statement =
            self.connection.prepare_cached(row::SEE_AGAIN).map_err(|e| self.blame(&e))?;
        let written = row::write_seen_again(&mut statement, &row);
        match written.map_err(|e| map_sqlite_error(&self.file, &e))? {
            1 => self.root.totals.replace(before, &row),
            _ => return Err(untrusted(&self.file, "a row that was read is gone".to_owned())),
        }
        Ok(())
    }

    fn replace(&mut self, before: Option<&Row>, record: Record, blocks: Option<i64>) -> Result<()> {
        self.keep_crc32(&record)?;
        let row = Row::new(record, blocks, &mut self.sealer);
        self.has_changed |= before.is_none_or(|before| !claims_the_same(before, &row));
        // A row that the caller does not know of is not replaced: it would be
        // lost, and the totals with it.
        let sql = if before.is_some() { row::REPLACE } else { row::INSERT };
        self.write_row(sql, &row)?;
        match before {
            Some(before) => self.root.totals.replace(before, &row),
            None => self.root.totals.add(&row),
        }
        Ok(())
    }

    /// Runs a statement that puts a row, and notes the row for the backup.
    pub(super) fn write_row(&mut self, sql: &str, row: &Row) -> Result<()> {
        let values = row::values(row);
        let mut statement = self.connection.prepare_cached(sql).map_err(|e| self.blame(&e))?;
        row::write(&mut statement, &values).map_err(|e| map_sqlite_error(&self.file, &e))?;
        if let Some(backup) = &mut self.backup {
            backup.put_values(Table::Record, &values);
        }
        Ok(())
    }

    /// Notes for the backup that a row is gone.
    pub(super) fn note_row_deleted(&mut self, path: &RelPath) {
        if let Some(backup) = &mut self.backup {
            backup.delete(Table::Record, &[ValueRef::Blob(path.as_bytes())]);
        }
    }

    /// Replaces a row that fails its seal.
    pub fn put_over_bad(&mut self, record: Record, blocks: &[[u8; 32]]) -> Result<()> {
        self.delete(&record.path)?;
        self.put(None, record, blocks)
    }

    /// Removes a row, whatever it is.
    pub fn delete(&mut self, path: &RelPath) -> Result<()> {
        self.begin()?;
        self.needs_recount = true;
        self.has_changed = true;
        let sql = "DELETE FROM record WHERE path = ?1";
        self.connection.execute(sql, [path.as_bytes()]).map_err(|e| self.blame(&e))?;
        self.note_row_deleted(path);
        self.forget_own_change(path)?;
        self.forget_finding(path)?;
        self.forget_metadata(path)
    }

    /// Takes the rows for the truth with the next commit, whatever the totals
    /// say: rows that fail their seal were replaced, or their loss accepted.
    pub fn recount_at_commit(&mut self) {
        self.needs_recount = true;
    }

    /// Notes what was recorded against advice, in the same transaction.
    pub fn note_accepted(
        &mut self,
        at_s: i64,
        path: &RelPath,
        verdict: &str,
        before: Option<&Record>,
        after: Option<&Record>,
    ) -> Result<()> {
        self.begin()?;
        let blake3 = |record: Option<&Record>| {
            record.and_then(|record| record.digests.get(Algorithm::Blake3).map(<[u8]>::to_vec))
        };
        let sql = "INSERT INTO accepted VALUES (?1, ?2, ?3, ?4, ?5)";
        let values = params![at_s, path.as_bytes(), verdict, blake3(before), blake3(after)];
        self.insert_counted(CountedTable::Accepted, sql, values)
    }

    /// Holds the file open for reading until [`Catalog::release`], so that many
    /// single rows need not each take and give back its locks. Another process
    /// that wants to write waits meanwhile.
    pub fn pin_snapshot(&mut self) -> Result<()> {
        if !self.is_writing && self.connection.is_autocommit() {
            self.connection.execute_batch("BEGIN").map_err(|e| self.blame(&e))?;
        }
        Ok(())
    }

    /// Ends what [`Catalog::pin_snapshot`] began.
    pub fn release(&mut self) {
        if !self.is_writing && !self.connection.is_autocommit() {
            // It has only read: that it ends cannot fail in a way that matters.
            let _ = self.connection.execute_batch("COMMIT");
        }
    }

    /// Starts a transaction unless one is open.
    pub fn begin(&mut self) -> Result<()> {
        if !self.is_writing {
            self.release();
            let begun = self
                .connection
                .pragma_update(None, "cache_size", CACHE_KIB_TO_WRITE)
                .and_then(|()| self.connection.execute_batch("BEGIN IMMEDIATE"));
            begun.map_err(|e| self.blame(&e))?;
            self.is_writing = true;
        }
        Ok(())
    }

    /// Returns true if the catalog claims anything that it did not claim when it was opened.
    pub fn has_changed_claims(&self) -> bool {
        self.has_changed
    }

    /// Returns true if there is anything to commit.
    pub fn is_writing(&self) -> bool {
        self.is_writing
    }

    /// Makes all that was written since the last commit durable.
    pub fn commit(&mut self) -> Result<()> {
        self.begin()?;
        if std::mem::take(&mut self.needs_recount) {
            self.recount()?;
        }
        if std::mem::take(&mut self.needs_metadata_count) {
            self.recount_table(CountedTable::Metadata)?;
        }
        let has_new_file_system = self.file_systems.iter().any(|known| !known.is_stored);
        let stored = root_row::store_file_systems(
            &self.connection,
            &mut self.file_systems,
            &mut self.sealer,
        );
        stored.map_err(|e| self.blame(&e))?;
        self.table_totals.store(&self.connection).map_err(|e| self.blame(&e))?;
        let stored = root_row::store_root(&self.connection, &self.root, &mut self.sealer);
        stored.map_err(|e| self.blame(&e))?;
        self.prepare_backup(has_new_file_system).map_err(|e| self.blame(&e))?;
        self.connection.execute_batch("COMMIT").map_err(|e| self.blame(&e))?;
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
            let put = &mut |row: &rusqlite::Row<'_>| backup.put(Table::FileSystem, row);
            Table::FileSystem.each_row(&self.connection, put)?;
        }
        if backup.has_changes() {
            let put = &mut |row: &rusqlite::Row<'_>| backup.put(Table::Root, row);
            Table::Root.each_row(&self.connection, put)?;
        }
        backup.prepare(&self.connection)
    }

    /// The backup of a catalog.
    pub fn backup_file(file: &Path) -> PathBuf {
        os_path::with_suffix(file, ".backup")
    }

    /// Brings the backup in step with what this run has committed, durably. The
    /// error of the system, if it refuses: the catalog is as sound without.
    pub fn keep_backup(&mut self) -> Result<std::io::Result<()>> {
        if !self.has_committed || self.backup.is_none() {
            return Ok(Ok(()));
        }
        if !self.backup.as_ref().is_some_and(BackupLog::needs_whole_copy) {
            return Ok(self.backup.as_mut().map_or(Ok(()), BackupLog::sync));
        }
        self.begin()?;
        let Some(backup) = &mut self.backup else { return Ok(Ok(())) };
        let written = backup.write_whole_copy(&self.connection);
        let written = written.map_err(|e| map_sqlite_error(&self.file, &e))?;
        self.commit()?;
        Ok(written)
    }

    /// Brings a copy of the backup in step that is kept in another folder, under a
    /// name with that of the root and of the catalog in it.
    pub fn copy_backup(&self, folder: &Path, root: &str) -> std::io::Result<()> {
        let Some(backup) = self.backup.as_ref().filter(|_| self.has_committed) else {
            return Ok(());
        };
        backup.copy_to(folder, root)
    }

    /// Takes back all that was written since the last commit. The catalog is
    /// not to be written after this: its totals are those of the failed run.
    pub fn rollback(&mut self) {
        if self.is_writing {
            // It fails where SQLite has rolled back by itself (disk full).
            let _ = self.connection.execute_batch("ROLLBACK");
            self.is_writing = false;
            if let Some(backup) = &mut self.backup {
                backup.roll_back();
            }
        }
    }

    pub(super) fn blame(&self, error: &rusqlite::Error) -> Error {
        map_sqlite_error(&self.file, error)
    }
}

/// The backup of a catalog that is going to be written.
fn open_backup(
    connection: &Connection,
    file: &Path,
    is_empty: bool,
) -> rusqlite::Result<BackupLog> {
    let state = match BackupState::read(connection)? {
        Some(state) => state,
        None => BackupState::behind(draw(connection)?, 0),
    };
    let is_new = is_empty && state.sequence == 0;
    Ok(BackupLog::open(Catalog::backup_file(file), state, is_new))
}

/// Refuses a catalog that is gone while something of it is left: a new one in its place
/// would take away what the record can be put together from.
fn refuse_lost(file: &Path) -> Result<()> {
    if is_lost(file) { Err(lost(file)) } else { Ok(()) }
}

/// Sixteen bytes that name a catalog.
pub(super) fn draw(connection: &Connection) -> rusqlite::Result<[u8; 16]> {
    connection.query_row("SELECT randomblob(16)", [], |row| row.get(0))
}
