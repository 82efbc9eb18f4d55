//! Opening, making, reading and writing a catalog.

use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fsure_os::filesystem_id::Volume;
use fsure_os::lock::{self, Attempt, Lock};
use fsure_os::path as os_path;
use fsure_os::user_file::open_own;
use rusqlite::{Connection, OpenFlags};

use super::backup::{BackupLog, BackupState};
use super::block_values::{BlockValues, UnfinishedFiles};
use super::crc32::Crc32Values;
use super::database::Database;
use super::findings::Findings;
use super::heal_drafts::HealDrafts;
use super::history::RecordHistory;
use super::location::is_lost;
use super::metadata::MetadataTable;
use super::nested_roots::NestedRoots;
use super::own_changes::OwnChanges;
use super::redated_counts::RedatedCounts;
use super::reject_special_files::refuse_irregular;
use super::root_options::{self, RootOptions};
use super::root_row::{self, FileSystem, MADE_BY, RecordTotals, RootRow, RootSettings};
use super::row_checksum::RowChecksum;
use super::schema::{self, HEAD_BYTES};
use super::scrub_queue::ScrubQueue;
use super::sqlite_error::{connect, foreign, length_objection, lost, map_sqlite_error, untrusted};
use super::table_total::{CountedTable, TableTotals};
use super::verified_paths::{VerificationDates, VerifiedPaths};
use super::verified_ranges::VerifiedRanges;
use crate::model::FileSystemId;
use fsure_core::{Error, IoContext as _, RelPath, Result};

/// The file is made smaller if more than one of so many of its pages is free:
/// what is left is used again, and a file is not written anew for little.
const FREE_PAGES_SHARE: i64 = 4;

/// Interval between two attempts to lock a catalog that another process has locked.
pub(super) const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(200);

const UNSEALED: &str = "the description of its root fails its seal";

/// An open catalog.
pub struct Catalog {
    pub(super) database: Database,
    pub(super) root: RootRow,
    pub(super) options: RootOptions,
    pub(super) crc32: Crc32Values,
    /// Over all sound rows that were fetched page by page.
    pub(super) fetched: RecordTotals,
    pub(super) sealer: RowChecksum,
    pub(super) verified_paths: VerifiedPaths,
    file_systems: Vec<FileSystem>,
    needs_recount: bool,
    /// Held for as long as the catalog may be written.
    _lock: Option<Lock>,
}

impl Catalog {
    /// The file that is locked by the one process that may write the catalog.
    pub fn lock_file(file: &Path) -> PathBuf {
        os_path::with_suffix(file, ".lock")
    }

    /// The backup of a catalog.
    pub fn backup_file(file: &Path) -> PathBuf {
        os_path::with_suffix(file, ".backup")
    }

    /// The journal of a file that is being healed in place.
    pub fn journal_file(file: &Path) -> PathBuf {
        os_path::with_suffix(file, ".healing")
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
                    std::thread::sleep(LOCK_POLL_INTERVAL);
                }
                Err(error) => return Err(Error::record_write_failed(file, &error)),
            }
        }
    }

    /// Waits until [`Catalog::lock`] would not have to wait, and fails as it does if the
    /// catalog cannot be written there. Nothing is locked and nothing written.
    pub fn await_unlocked(file: &Path, mut waiting: impl FnMut(&str) -> Result<()>) -> Result<()> {
        let lock_file = Self::lock_file(file);
        refuse_irregular(file)?;
        let written_to = lock_file.ancestors().find(|path| os_path::exists(path));
        let is_writable = os_path::require_writable(written_to.unwrap_or(&lock_file));
        is_writable.map_err(|error| Error::record_write_failed(file, &error))?;
        while let Some(holder) =
            lock::holder(&lock_file).map_err(|error| Error::record_write_failed(file, &error))?
        {
            waiting(&holder)?;
            std::thread::sleep(LOCK_POLL_INTERVAL);
        }
        Ok(())
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
            os_path::rename(&making, file).map_err(|error| Error::record_write_failed(file, &error))
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
        catalog.name_in_errors(list);
        Ok(catalog)
    }

    /// Has errors name another file than its own.
    pub(super) fn name_in_errors(&mut self, file: &Path) {
        self.database.name_in_errors(file);
    }

    fn make(file: &Path, settings: RootSettings, root: (Volume, u64), now_s: i64) -> Result<Self> {
        let connection = connect(file, OpenFlags::SQLITE_OPEN_CREATE)?;
        let mut catalog = Self {
            database: Database::new(connection, file, TableTotals::default(), None),
            root: RootRow {
                file_system: FileSystemId(0),
                inode: None,
                settings,
                made_by: MADE_BY.to_owned(),
                made_s: now_s,
                totals: RecordTotals::default(),
            },
            options: RootOptions::default(),
            crc32: Crc32Values::default(),
            fetched: RecordTotals::default(),
            sealer: RowChecksum::new(),
            verified_paths: VerifiedPaths::default(),
            file_systems: Vec::new(),
            needs_recount: false,
            _lock: None,
        };
        catalog.database.begin_new(schema::create)?;
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
        if let Some(why) = length_objection(&connection, file).map_err(|e| blame(&e))? {
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
        let options = root_options::read(&connection, &mut sealer).map_err(|e| blame(&e))?;
        let (Some(file_systems), Some(root), Some(options)) = (file_systems, root, options) else {
            return Err(untrusted(file, UNSEALED.to_owned()));
        };
        let verified = VerifiedPaths::read(&connection, &mut sealer).map_err(|e| blame(&e))?;
        let Some(verified_paths) = verified else {
            let why = "the rows of its table 'verified_paths' fail their seals or overlap";
            return Err(untrusted(file, why.to_owned()));
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
            database: Database::new(connection, file, table_totals, backup),
            root,
            options,
            crc32: Crc32Values::default(),
            fetched: RecordTotals::default(),
            sealer,
            verified_paths,
            file_systems,
            needs_recount: false,
            _lock: lock,
        })
    }

    /// Reads again what another process may have written meanwhile.
    pub(super) fn read_root_again(&mut self) -> Result<()> {
        let sealer = &mut self.sealer;
        let root = self.database.run(|connection| root_row::read_root(connection, sealer))?;
        self.root = root.ok_or_else(|| self.database.untrusted(UNSEALED))?;
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
            if self.root.settings.cross_file_systems != settings.cross_file_systems {
                self.database.note_changed_claim();
            }
            self.root.settings = settings;
        }
        Ok(())
    }

    /// Notes that a run has seen all recorded files from `first` to `last` to be as recorded,
    /// durable with the next commit.
    pub fn note_verified_paths(
        &mut self,
        first: &RelPath,
        last: &RelPath,
        dates: VerificationDates,
    ) -> Result<()> {
        self.begin()?;
        self.verified_paths.add(first, last, dates);
        Ok(())
    }

    /// Returns true if the file cannot be written at its place.
    pub fn is_read_only(&self) -> bool {
        self.database.is_read_only()
    }

    /// Returns the options beyond the default that `update` keeps to.
    pub fn options(&self) -> RootOptions {
        self.options
    }

    /// Changes the options that `update` keeps to, durable with the next commit.
    pub fn set_options(&mut self, options: RootOptions) -> Result<()> {
        if self.options == options {
            return Ok(());
        }
        self.begin()?;
        if self.options.claims() != options.claims() {
            self.database.note_changed_claim();
        }
        self.options = options;
        root_options::store(&mut self.database, options)
    }

    /// Returns the totals of `record`, as recorded.
    pub(super) fn totals(&self) -> RecordTotals {
        self.root.totals
    }

    /// Draws sixteen random bytes, which have not been drawn before.
    pub fn draw(&self) -> Result<[u8; 16]> {
        self.database.run(draw)
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

    /// Returns true if the number is that of a recorded file system. One that this run has met
    /// may have the number of one whose row was lost.
    pub(super) fn knows_file_system(&self, id: FileSystemId) -> bool {
        self.file_systems.iter().any(|known| known.id == id && known.is_stored)
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

    /// Takes the rows for the truth with the next commit, whatever the totals
    /// say: rows that fail their seal were replaced, or their loss accepted.
    pub fn recount_at_commit(&mut self) {
        self.needs_recount = true;
    }

    /// Holds the file open for reading until [`Catalog::release`], so that many
    /// single rows need not each take and give back its locks. Another process
    /// that wants to write waits meanwhile.
    pub fn pin_snapshot(&mut self) -> Result<()> {
        self.database.pin_snapshot()
    }

    /// Ends what [`Catalog::pin_snapshot`] began.
    pub fn release(&mut self) {
        self.database.release();
    }

    /// Starts a transaction unless one is open.
    pub fn begin(&mut self) -> Result<()> {
        self.database.begin()
    }

    /// Returns true if the catalog claims anything that it did not claim when it was opened.
    pub fn has_changed_claims(&self) -> bool {
        self.database.has_changed_claims()
    }

    /// Returns true if there is anything to commit.
    pub fn is_writing(&self) -> bool {
        self.database.is_writing()
    }

    /// Makes all that was written since the last commit durable.
    pub fn commit(&mut self) -> Result<()> {
        self.begin()?;
        if std::mem::take(&mut self.needs_recount) {
            self.root.totals = RecordTotals::count(&self.database, &mut |_, _| {})?;
        }
        let has_new_file_system = self.file_systems.iter().any(|known| !known.is_stored);
        let (file_systems, sealer) = (&mut self.file_systems, &mut self.sealer);
        self.database.run(|connection| {
            root_row::store_file_systems(connection, file_systems, sealer)?;
            self.verified_paths.store(connection, sealer)?;
            root_row::store_root(connection, &self.root, sealer)
        })?;
        self.database.commit(has_new_file_system)
    }

    /// Takes back all that was written since the last commit. The catalog cannot be written
    /// after this: its totals are those of the failed run.
    pub fn rollback(&mut self) {
        self.database.rollback();
    }

    /// Brings the backup in step with what this run has committed, durably. Returns the
    /// error of the system if it refuses: the catalog is as sound without.
    pub fn keep_backup(&mut self) -> Result<std::io::Result<()>> {
        if !self.database.needs_whole_backup() {
            return Ok(self.database.sync_backup());
        }
        match self.write_whole_backup() {
            // On a full disk not even a commit that adds no row may have its journal.
            Err(Error::RecordNotWritten { why, .. }) => {
                self.rollback();
                Ok(Err(std::io::Error::other(why)))
            }
            other => other,
        }
    }

    fn write_whole_backup(&mut self) -> Result<std::io::Result<()>> {
        self.begin()?;
        let written = self.database.write_whole_backup()?;
        self.commit()?;
        Ok(written)
    }

    /// Brings a copy of the backup in step that is kept in another folder, under a
    /// name with that of the root and of the catalog in it.
    pub fn copy_backup(&self, folder: &Path, root: &str) -> std::io::Result<()> {
        self.database.copy_backup(folder, root)
    }

    /// Gives free pages back to the disk if there are many, in a transaction of SQLite's
    /// that is as safe as any other. Returns true if there were.
    pub fn shrink(&mut self) -> Result<bool> {
        let (free, all): (i64, i64) = self.database.run(|connection| {
            let pages = |pragma| connection.pragma_query_value(None, pragma, |row| row.get(0));
            Ok((pages("freelist_count")?, pages("page_count")?))
        })?;
        if free * FREE_PAGES_SHARE <= all {
            return Ok(false);
        }
        self.database.vacuum()?;
        Ok(true)
    }

    /// Returns the database below the catalog, for queries over its tables.
    pub(super) fn database(&self) -> &Database {
        &self.database
    }

    /// Returns the generations and verifications, to read.
    pub fn history(&self) -> RecordHistory<&Database> {
        RecordHistory::new(&self.database)
    }

    /// Returns the generations and verifications, to write.
    pub fn history_mut(&mut self) -> RecordHistory<&mut Database> {
        RecordHistory::new(&mut self.database)
    }

    /// Returns the findings of earlier runs, to read.
    pub fn findings(&self) -> Findings<&Database> {
        Findings::new(&self.database)
    }

    /// Returns the findings of earlier runs, to write.
    pub fn findings_mut(&mut self) -> Findings<&mut Database> {
        Findings::new(&mut self.database)
    }

    /// Returns the lists of block values, to read.
    pub fn block_values(&self) -> BlockValues<&Database> {
        BlockValues::new(&self.database)
    }

    /// Returns the lists of block values, to write.
    pub fn block_values_mut(&mut self) -> BlockValues<&mut Database> {
        BlockValues::new(&mut self.database)
    }

    /// Returns the block values of files that no run has read to their end, to read.
    pub fn unfinished_files(&self) -> UnfinishedFiles<&Database> {
        UnfinishedFiles::new(&self.database)
    }

    /// Returns the block values of files that no run has read to their end, to write.
    pub fn unfinished_files_mut(&mut self) -> UnfinishedFiles<&mut Database> {
        UnfinishedFiles::new(&mut self.database)
    }

    /// Returns the parts of files that were verified, to read.
    pub fn verified_ranges(&self) -> VerifiedRanges<&Database> {
        VerifiedRanges::new(&self.database)
    }

    /// Returns the parts of files that were verified, to write.
    pub fn verified_ranges_mut(&mut self) -> VerifiedRanges<&mut Database> {
        VerifiedRanges::new(&mut self.database)
    }

    /// Returns the change times that fsure itself has caused, to read.
    pub fn own_changes(&self) -> OwnChanges<&Database> {
        OwnChanges::new(&self.database)
    }

    /// Returns the change times that fsure itself has caused, to write.
    pub fn own_changes_mut(&mut self) -> OwnChanges<&mut Database> {
        OwnChanges::new(&mut self.database)
    }

    /// Returns the folders below the root that have a record of their own, to read.
    pub fn nested_roots(&self) -> NestedRoots<&Database> {
        NestedRoots::new(&self.database)
    }

    /// Returns the folders below the root that have a record of their own, to write.
    pub fn nested_roots_mut(&mut self) -> NestedRoots<&mut Database> {
        NestedRoots::new(&mut self.database)
    }

    /// Returns the counts of redated files that updates left behind which were cut off, to read.
    pub fn redated_counts(&self) -> RedatedCounts<&Database> {
        RedatedCounts::new(&self.database)
    }

    /// Returns the counts of redated files that updates left behind which were cut off, to write.
    pub fn redated_counts_mut(&mut self) -> RedatedCounts<&mut Database> {
        RedatedCounts::new(&mut self.database)
    }

    /// Returns the drafts of an interrupted heal, to read.
    pub fn heal_drafts(&self) -> HealDrafts<&Database> {
        HealDrafts::new(&self.database)
    }

    /// Returns the drafts of an interrupted heal, to write.
    pub fn heal_drafts_mut(&mut self) -> HealDrafts<&mut Database> {
        HealDrafts::new(&mut self.database)
    }

    /// Returns the recorded metadata, to read.
    pub fn metadata(&self) -> MetadataTable<&Database> {
        MetadataTable::new(&self.database, !self.options.meta.is_empty())
    }

    /// Returns the recorded metadata, to write.
    pub fn metadata_mut(&mut self) -> MetadataTable<&mut Database> {
        MetadataTable::new(&mut self.database, !self.options.meta.is_empty())
    }

    /// Returns the files that a scrub has to read.
    pub fn scrub_queue(&self) -> ScrubQueue<'_> {
        ScrubQueue::new(&self.database, &self.verified_paths, !self.options.meta.is_empty())
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
