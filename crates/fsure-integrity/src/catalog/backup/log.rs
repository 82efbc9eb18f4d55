//! Writing the backup: what a transaction changed is gathered, and appended when
//! the transaction is committed.

use std::io;
use std::path::{Path, PathBuf};

use fsure_os::append_file::AppendFile;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Row as SqlRow, params};

use super::super::row_checksum::RowChecksum;
use super::super::tables::{Table, encode};
use super::frame::{HEAD, HEAD_BYTES, PLAIN_MAX, write as write_frame};
use super::{BackupEntry, Replayed};

/// A whole copy is written anew when what was appended to it is larger than it,
/// and larger than this, bytes.
const APPENDED_MIN: u64 = 1 << 20;

/// The catalog's knowledge of its backup: it is in step with the catalog if it is so
/// long and ends with this checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct BackupState {
    /// Names the catalog.
    pub(in super::super) catalog: [u8; 16],
    /// Counts commits that changed a row that the backup keeps.
    pub(in super::super) sequence: u64,
    length: u64,
    /// Its length when it was last a whole copy and nothing else.
    whole_length: u64,
    checksum: u64,
}

impl BackupState {
    /// Reads the state; `None` where none is stored or it fails its seal.
    pub(in super::super) fn read(connection: &Connection) -> rusqlite::Result<Option<Self>> {
        let sql = "SELECT catalog, sequence, length, whole_length, checksum, seal FROM backup";
        let found = connection.query_row(sql, [], |row| {
            let number = |column| row.get::<_, i64>(column).map(i64::cast_unsigned);
            let state = Self {
                catalog: row.get(0)?,
                sequence: number(1)?,
                length: number(2)?,
                whole_length: number(3)?,
                checksum: number(4)?,
            };
            Ok((state.seal() == number(5)?).then_some(state))
        });
        found.optional().map(Option::flatten)
    }

    /// Tells whether a backup that was replayed is undamaged and ends exactly where the
    /// catalog says. The number of the last commit alone does not tell: a copy of the
    /// tree counts on from the same number.
    pub(in super::super) fn is_that_of(&self, replayed: &Replayed) -> bool {
        replayed.damaged_frames == 0
            && (self.catalog, self.sequence) == (replayed.catalog, replayed.sequence)
            && (self.length, self.checksum) == (replayed.length, replayed.checksum)
    }

    /// The state of a catalog of which no backup is in step.
    pub(in super::super) fn behind(catalog: [u8; 16], sequence: u64) -> Self {
        Self { catalog, sequence, ..Self::default() }
    }

    /// The state in a row of `backup`, if its seal fits.
    pub(in super::super) fn from_values(values: &[Value]) -> Option<Self> {
        let [_, Value::Blob(catalog), numbers @ ..] = values else { return None };
        let number = |place: usize| match numbers.get(place)? {
            Value::Integer(number) => Some(number.cast_unsigned()),
            _ => None,
        };
        let state = Self {
            catalog: catalog[..].try_into().ok()?,
            sequence: number(0)?,
            length: number(1)?,
            whole_length: number(2)?,
            checksum: number(3)?,
        };
        (state.seal() == number(4)?).then_some(state)
    }

    pub(in super::super) fn store(&self, connection: &Connection) -> rusqlite::Result<()> {
        let sql = "INSERT OR REPLACE INTO backup VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6)";
        let values = params![
            self.catalog,
            self.sequence.cast_signed(),
            self.length.cast_signed(),
            self.whole_length.cast_signed(),
            self.checksum.cast_signed(),
            self.seal().cast_signed(),
        ];
        connection.execute(sql, values).map(drop)
    }

    fn seal(&self) -> u64 {
        let mut sealer = RowChecksum::new();
        sealer
            .bytes(Some(&self.catalog))
            .integer(Some(self.sequence.cast_signed()))
            .integer(Some(self.length.cast_signed()))
            .integer(Some(self.whole_length.cast_signed()))
            .integer(Some(self.checksum.cast_signed()))
            .seal()
    }
}

/// The way in which the backup is kept.
enum Way {
    /// It is not in step with the catalog: a whole copy has to be written.
    Stale,
    /// There is none, and the catalog was just made.
    Begins,
    /// It is in step.
    Grows(AppendFile),
}

/// Gathers what a transaction changes, and appends it.
pub(in super::super) struct BackupLog {
    file: PathBuf,
    state: BackupState,
    way: Way,
    /// Entries of the open transaction.
    entries: Vec<u8>,
    /// The place at which each of them begins.
    starts: Vec<usize>,
    /// True if the open transaction has changed what a backup that is not in step
    /// does not get.
    has_unkept_changes: bool,
    /// Frames that the last commit promised.
    frames: Vec<u8>,
    /// True if anything was appended by this run.
    has_grown: bool,
    /// The reason for which the backup could not be written.
    failure: Option<String>,
}

impl BackupLog {
    /// The backup of a catalog that is going to be written. `is_catalog_new` if no row
    /// was ever committed that a backup lacks.
    pub(in super::super) fn open(file: PathBuf, state: BackupState, is_catalog_new: bool) -> Self {
        let mut log = Self {
            file,
            state,
            way: Way::Stale,
            entries: Vec::new(),
            starts: Vec::new(),
            has_unkept_changes: false,
            frames: Vec::new(),
            has_grown: false,
            failure: None,
        };
        if is_catalog_new {
            log.way = Way::Begins;
            log.state.length = HEAD_BYTES;
            log.state.whole_length = 0;
        } else if let Ok(growing) = log.open_in_step() {
            log.way = Way::Grows(growing);
            if log.state.whole_length == 0 {
                log.state.whole_length = log.state.length;
            }
        }
        log
    }

    /// Begins a backup with the first commit of a catalog in which nothing is
    /// recorded: it is whole by what is appended.
    fn begin(&self) -> io::Result<AppendFile> {
        let mut growing = AppendFile::open_own(&self.file)?;
        growing.shorten(0)?;
        growing.append(HEAD)?;
        growing.append(&self.state.catalog)?;
        Ok(growing)
    }

    /// The backup, if it ends as the catalog says; what a run that was cut off has
    /// appended beyond that is cut off.
    fn open_in_step(&self) -> io::Result<AppendFile> {
        let other = || io::Error::from(io::ErrorKind::InvalidData);
        if self.state.length <= HEAD_BYTES || !fsure_os::path::exists(&self.file) {
            return Err(other());
        }
        let mut growing = AppendFile::open_own(&self.file)?;
        let (mut head, mut checksum) = ([0; HEAD_BYTES as usize], [0; 8]);
        growing.bytes_before(HEAD_BYTES, &mut head)?;
        growing.bytes_before(self.state.length, &mut checksum)?;
        let is_of_catalog = head[..16] == *HEAD && head[16..] == self.state.catalog;
        if !is_of_catalog || u64::from_le_bytes(checksum) != self.state.checksum {
            return Err(other());
        }
        if growing.length()? > self.state.length {
            growing.shorten(self.state.length)?;
        }
        Ok(growing)
    }

    /// Tells whether the open transaction has changed anything that is kept.
    pub(in super::super) fn has_changes(&self) -> bool {
        !self.starts.is_empty() || self.has_unkept_changes
    }

    /// Notes a row as it is now.
    pub(in super::super) fn put(&mut self, table: Table, row: &SqlRow<'_>) -> rusqlite::Result<()> {
        let columns = table.columns().0;
        if self.begin_entry(BackupEntry::Put, table, columns) {
            for column in 0..columns {
                encode(row.get_ref(column)?, &mut self.entries);
            }
        }
        Ok(())
    }

    /// Notes a row by its values.
    pub(in super::super) fn put_values(&mut self, table: Table, values: &[ValueRef<'_>]) {
        if self.begin_entry(BackupEntry::Put, table, values.len()) {
            values.iter().for_each(|value| encode(*value, &mut self.entries));
        }
    }

    /// Notes that a row is gone.
    pub(in super::super) fn delete(&mut self, table: Table, key: &[ValueRef<'_>]) {
        if self.begin_entry(BackupEntry::Delete, table, key.len()) {
            key.iter().for_each(|value| encode(*value, &mut self.entries));
        }
    }

    fn is_stale(&self) -> bool {
        matches!(self.way, Way::Stale)
    }

    /// Begins an entry. False if the backup is not in step and gets none.
    fn begin_entry(&mut self, entry: BackupEntry, table: Table, columns: usize) -> bool {
        if self.is_stale() {
            self.has_unkept_changes = true;
            return false;
        }
        self.starts.push(self.entries.len());
        self.entries.extend_from_slice(&[entry as u8, table as u8, columns as u8]);
        true
    }

    /// Forgets what was gathered: the transaction is taken back.
    pub(in super::super) fn roll_back(&mut self) {
        self.entries.clear();
        self.starts.clear();
        self.has_unkept_changes = false;
    }

    /// Makes frames of what was gathered, and stores in the open transaction how
    /// long the backup will be. A commit counts if the backup does not get it, too:
    /// an older backup must never pass for the present one.
    pub(in super::super) fn prepare(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.frames.clear();
        if std::mem::take(&mut self.has_unkept_changes) {
            self.state = BackupState::behind(self.state.catalog, self.state.sequence + 1);
            return self.state.store(connection);
        }
        if self.starts.is_empty() {
            return Ok(());
        }
        self.state.sequence += 1;
        self.starts.push(self.entries.len());
        self.entries.push(BackupEntry::Commit as u8);
        self.entries.extend_from_slice(&self.state.sequence.to_le_bytes());
        self.state.checksum = pack(&self.entries, &self.starts, &mut self.frames);
        self.state.length += self.frames.len() as u64;
        self.roll_back();
        self.state.store(connection)
    }

    /// Appends what [`BackupLog::prepare`] made, after the transaction is committed.
    pub(in super::super) fn append(&mut self) {
        let frames = std::mem::take(&mut self.frames);
        if frames.is_empty() {
            return;
        }
        let way = std::mem::replace(&mut self.way, Way::Stale);
        let growing = match way {
            Way::Stale => return,
            Way::Begins => self.begin(),
            Way::Grows(growing) => Ok(growing),
        };
        match growing.and_then(|mut growing| growing.append(&frames).map(|()| growing)) {
            Ok(growing) => self.way = Way::Grows(growing),
            Err(error) => self.failure = Some(error.to_string()),
        }
        self.has_grown = true;
    }

    /// Tells whether a whole copy has to be written for the backup to be in step, or is
    /// smaller than what has been appended.
    pub(in super::super) fn needs_whole_copy(&self) -> bool {
        let appended = self.state.length - self.state.whole_length.min(self.state.length);
        let is_whole = self.state.whole_length == 0;
        self.is_stale() || (!is_whole && appended > self.state.whole_length.max(APPENDED_MIN))
    }

    /// Makes what was appended durable; a backup that began with its catalog is
    /// whole by that.
    pub(in super::super) fn sync(&mut self) -> io::Result<()> {
        if let Some(why) = self.failure.take() {
            return Err(io::Error::other(why));
        }
        match &self.way {
            Way::Grows(growing) if std::mem::take(&mut self.has_grown) => growing.sync(),
            _ => Ok(()),
        }
    }

    /// Brings a copy in another folder in step: what it lacks is appended, and where
    /// it does not end as the backup does there, it is written anew.
    pub(in super::super) fn copy_to(&self, folder: &Path, root: &str) -> io::Result<()> {
        let id = fsure_core::digest::hex(&self.state.catalog[..4]);
        let copy = folder.join(format!("{root}-{id}.fsure-backup"));
        let mut source = AppendFile::open_own(&self.file)?;
        if fsure_os::path::exists(&copy) {
            let mut growing = AppendFile::open_own(&copy)?;
            let length = growing.length()?;
            if length <= self.state.length && ends_alike(&mut source, &mut growing, length)? {
                source.copy_from(length, self.state.length, &mut growing)?;
                return growing.sync();
            }
        }
        let making = making(&copy);
        fsure_os::path::remove(&making, false);
        let mut growing = AppendFile::open_own(&making)?;
        source.copy_from(0, self.state.length, &mut growing)?;
        growing.sync()?;
        fsure_os::path::rename(&making, &copy)
    }

    /// Writes a whole copy in the place of the backup, and stores in the open
    /// transaction what it is.
    pub(in super::super) fn write_whole_copy(
        &mut self,
        connection: &Connection,
    ) -> rusqlite::Result<io::Result<()>> {
        let making = making(&self.file);
        fsure_os::path::remove(&making, false);
        let mut state = BackupState { sequence: self.state.sequence + 1, ..self.state };
        let written = write_all(&making, connection, &mut state)?;
        let placed = written.and_then(|()| fsure_os::path::rename(&making, &self.file));
        if placed.is_err() {
            fsure_os::path::remove(&making, false);
            return Ok(placed);
        }
        self.state = state;
        self.state.store(connection)?;
        let opened = self.open_in_step();
        Ok(opened.map(|growing| self.way = Way::Grows(growing)))
    }
}

/// Tells whether two files have the same bytes before this place.
fn ends_alike(one: &mut AppendFile, other: &mut AppendFile, end: u64) -> io::Result<bool> {
    let compared = end.min(64 << 10) as usize;
    let [mut mine, mut theirs] = [vec![0; compared], vec![0; compared]];
    one.bytes_before(end, &mut mine)?;
    other.bytes_before(end, &mut theirs)?;
    Ok(compared > 0 && mine == theirs)
}

/// The name of a backup that is being written.
pub(in super::super) fn making(file: &Path) -> PathBuf {
    fsure_os::path::with_suffix(file, ".making")
}

fn write_all(
    file: &Path,
    connection: &Connection,
    state: &mut BackupState,
) -> rusqlite::Result<io::Result<()>> {
    let mut growing = match AppendFile::open_own(file) {
        Ok(growing) => growing,
        Err(error) => return Ok(Err(error)),
    };
    let mut writer = CopyWriter { growing: &mut growing, failure: Ok(()), length: 0, checksum: 0 };
    writer.write(HEAD);
    writer.write(&state.catalog);
    let mut entries = vec![BackupEntry::Clear as u8];
    for table in Table::ALL {
        let columns = table.columns().0;
        table.each_row(connection, &mut |row| {
            entries.extend_from_slice(&[BackupEntry::Put as u8, table as u8, columns as u8]);
            for column in 0..columns {
                encode(row.get_ref(column)?, &mut entries);
            }
            if entries.len() >= PLAIN_MAX {
                writer.write_frame(&entries);
                entries.clear();
            }
            Ok(())
        })?;
    }
    entries.push(BackupEntry::Commit as u8);
    entries.extend_from_slice(&state.sequence.to_le_bytes());
    writer.write_frame(&entries);
    let CopyWriter { failure, length, checksum, .. } = writer;
    (state.length, state.whole_length, state.checksum) = (length, length, checksum);
    Ok(failure.and_then(|()| growing.sync()))
}

/// Writes until something fails, and remembers that.
struct CopyWriter<'a> {
    growing: &'a mut AppendFile,
    failure: io::Result<()>,
    length: u64,
    checksum: u64,
}

impl CopyWriter<'_> {
    fn write(&mut self, bytes: &[u8]) {
        if self.failure.is_ok() {
            self.failure = self.growing.append(bytes);
            self.length += bytes.len() as u64;
        }
    }

    fn write_frame(&mut self, entries: &[u8]) {
        let mut frame = Vec::new();
        self.checksum = write_frame(entries, &mut frame);
        self.write(&frame);
    }
}

/// Makes frames of entries, none of which is cut in two. The checksum of the last.
fn pack(entries: &[u8], starts: &[usize], frames: &mut Vec<u8>) -> u64 {
    let (mut begin, mut checksum) = (0, 0);
    for (place, start) in starts.iter().enumerate() {
        let end = starts.get(place + 1).copied().unwrap_or(entries.len());
        if end - begin > PLAIN_MAX && *start > begin {
            checksum = write_frame(&entries[begin..*start], frames);
            begin = *start;
        }
    }
    if begin < entries.len() {
        checksum = write_frame(&entries[begin..], frames);
    }
    checksum
}
