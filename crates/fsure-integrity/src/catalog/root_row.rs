//! The catalog's data about its root as a whole: the single row of `root` and the rows of
//! `file_system`, each with its seal.

use fsure_os::filesystem_id::Volume;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Row as SqlRow, params};

use super::database::Database;
use super::row::{self, Row, StoredRow};
use super::row_checksum::RowChecksum;
use crate::model::FileSystemId;
use fsure_core::{Algorithm, AlgorithmSet, Result};

/// The program and its version, as a record tells them.
pub const MADE_BY: &str = concat!("fsure ", env!("CARGO_PKG_VERSION"));

/// Settings of a root that were last given to `update`, and that it keeps to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RootSettings {
    /// Digests computed for new files.
    pub digests: AlgorithmSet,
    /// True if other file systems below the root are part of it.
    pub cross_file_systems: bool,
}

/// A file system that records refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Its number in this catalog.
    pub id: FileSystemId,
    /// Properties of the file system as the operating system reports them.
    pub volume: Volume,
    /// The inode through which it was seen.
    pub anchor_inode: Option<u64>,
    pub(super) is_stored: bool,
}

/// Running totals of the `record` table, stored in the row of `root`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RecordTotals {
    pub(super) rows: u64,
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) root_digest: u64,
}

impl RecordTotals {
    pub(super) fn add(&mut self, row: &Row) {
        self.rows += 1;
        self.root_digest = self.root_digest.wrapping_add(row.seal);
        if row.is_live_file() {
            self.files += 1;
            self.bytes = self.bytes.wrapping_add(row.record.entry.size);
        }
    }

    /// Counts all rows as they are, and calls `each` with each of them and with the number
    /// of files before it. A row that fails its seal counts as a row, with the seal that is
    /// stored.
    pub(super) fn count(
        database: &Database,
        each: &mut dyn FnMut(&StoredRow, u64),
    ) -> Result<Self> {
        let sql = concat!("SELECT ", row::columns!(), " FROM record ORDER BY path");
        let (mut totals, mut sealer) = (Self::default(), RowChecksum::new());
        database.run(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let mut rows = statement.query([])?;
            while let Some(sql_row) = rows.next()? {
                let (stored, seal) = row::read(sql_row, &mut sealer)?;
                each(&stored, totals.files);
                match &stored {
                    StoredRow::Sound(row) => totals.add(row),
                    StoredRow::Bad(_) => {
                        totals.rows += 1;
                        totals.root_digest = totals.root_digest.wrapping_add(seal);
                    }
                }
            }
            Ok(totals)
        })
    }

    /// Counts a row in the place of another one of the same path.
    pub(super) fn replace(&mut self, before: &Row, row: &Row) {
        debug_assert_eq!(before.record.path, row.record.path);
        self.remove(before);
        self.add(row);
    }

    /// Counts a row no more.
    pub(super) fn remove(&mut self, row: &Row) {
        self.rows -= 1;
        self.root_digest = self.root_digest.wrapping_sub(row.seal);
        if row.is_live_file() {
            self.files -= 1;
            self.bytes = self.bytes.wrapping_sub(row.record.entry.size);
        }
    }
}

/// The row of `root`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RootRow {
    pub(super) file_system: FileSystemId,
    pub(super) inode: Option<u64>,
    pub(super) settings: RootSettings,
    pub(super) made_by: String,
    pub(super) made_s: i64,
    pub(super) totals: RecordTotals,
}

/// The row of `root`, or `None` where it is missing or fails its seal.
pub(super) fn read_root(
    connection: &Connection,
    sealer: &mut RowChecksum,
) -> rusqlite::Result<Option<RootRow>> {
    let sql = "SELECT file_system, inode, digests, cross_file_systems, made_by, made_s, rows, \
               files, bytes, root_digest, seal FROM root WHERE id = 1";
    let found = connection.query_row(sql, [], |row| Ok(root_row(row)));
    let Some(Some((root, seal))) = found.optional()? else {
        return Ok(None);
    };
    Ok((seal_root(&root, sealer) == seal).then_some(root))
}

fn root_row(row: &SqlRow<'_>) -> Option<(RootRow, u64)> {
    let unsigned = |column: usize| row.get::<_, i64>(column).ok().map(i64::cast_unsigned);
    let digests: String = row.get(2).ok()?;
    let digests: Option<Vec<_>> = digests.split(',').map(Algorithm::from_name).collect();
    let root = RootRow {
        file_system: FileSystemId(row.get(0).ok()?),
        inode: row.get::<_, Option<i64>>(1).ok()?.map(i64::cast_unsigned),
        settings: RootSettings {
            digests: AlgorithmSet::of(&digests?),
            cross_file_systems: row.get(3).ok()?,
        },
        made_by: row.get(4).ok()?,
        made_s: row.get(5).ok()?,
        totals: RecordTotals {
            rows: unsigned(6)?,
            files: unsigned(7)?,
            bytes: unsigned(8)?,
            root_digest: unsigned(9)?,
        },
    };
    Some((root, unsigned(10)?))
}

fn seal_root(root: &RootRow, sealer: &mut RowChecksum) -> u64 {
    sealer
        .integer(Some(root.file_system.0.into()))
        .integer(root.inode.map(u64::cast_signed))
        .bytes(Some(root.settings.digests.to_string().as_bytes()))
        .integer(Some(root.settings.cross_file_systems.into()))
        .bytes(Some(root.made_by.as_bytes()))
        .integer(Some(root.made_s))
        .integer(Some(root.totals.rows.cast_signed()))
        .integer(Some(root.totals.files.cast_signed()))
        .integer(Some(root.totals.bytes.cast_signed()))
        .integer(Some(root.totals.root_digest.cast_signed()))
        .seal()
}

pub(super) fn store_root(
    connection: &Connection,
    root: &RootRow,
    sealer: &mut RowChecksum,
) -> rusqlite::Result<()> {
    let seal = seal_root(root, sealer);
    connection.execute(
        "INSERT OR REPLACE INTO root VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        params![
            root.file_system.0,
            root.inode.map(u64::cast_signed),
            root.settings.digests.to_string(),
            root.settings.cross_file_systems,
            root.made_by,
            root.made_s,
            root.totals.rows.cast_signed(),
            root.totals.files.cast_signed(),
            root.totals.bytes.cast_signed(),
            root.totals.root_digest.cast_signed(),
            seal.cast_signed(),
        ],
    )?;
    Ok(())
}

/// All rows of `file_system`, or `None` where there is none or one fails its
/// seal: every record refers to one.
pub(super) fn read_file_systems(
    connection: &Connection,
    sealer: &mut RowChecksum,
) -> rusqlite::Result<Option<Vec<FileSystem>>> {
    let sql = "SELECT id, kind, uuid, anchor_inode, mtime_granularity_ns, stable_inodes, seal \
               FROM file_system ORDER BY id";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let Some((known, seal)) = file_system_row(row) else {
            return Ok(None);
        };
        if seal_file_system(&known, sealer) != seal {
            return Ok(None);
        }
        all.push(known);
    }
    Ok((!all.is_empty()).then_some(all))
}

fn file_system_row(row: &SqlRow<'_>) -> Option<(FileSystem, u64)> {
    let known = FileSystem {
        id: FileSystemId(row.get(0).ok()?),
        volume: Volume {
            kind: row.get(1).ok()?,
            uuid: row.get(2).ok()?,
            mtime_granularity_ns: row.get(4).ok()?,
            has_stable_inodes: row.get(5).ok()?,
        },
        anchor_inode: row.get::<_, Option<i64>>(3).ok()?.map(i64::cast_unsigned),
        is_stored: true,
    };
    Some((known, row.get::<_, i64>(6).ok()?.cast_unsigned()))
}

fn seal_file_system(known: &FileSystem, sealer: &mut RowChecksum) -> u64 {
    sealer
        .integer(Some(known.id.0.into()))
        .bytes(Some(known.volume.kind.as_bytes()))
        .bytes(known.volume.uuid.as_deref().map(str::as_bytes))
        .integer(known.anchor_inode.map(u64::cast_signed))
        .integer(Some(known.volume.mtime_granularity_ns))
        .integer(Some(known.volume.has_stable_inodes.into()))
        .seal()
}

/// The row of a file system of which nothing but its number is known: no inode and
/// no change time can be compared with one on it.
pub(super) fn unknown_file_system(id: i64, sealer: &mut RowChecksum) -> Vec<Value> {
    let volume = Volume::unknown();
    let id = u32::try_from(id).unwrap_or(0);
    let known = FileSystem { id: FileSystemId(id), volume, anchor_inode: None, is_stored: false };
    let seal = seal_file_system(&known, sealer).cast_signed();
    let volume = known.volume;
    vec![
        i64::from(id).into(),
        volume.kind.into(),
        Value::Null,
        Value::Null,
        volume.mtime_granularity_ns.into(),
        i64::from(volume.has_stable_inodes).into(),
        seal.into(),
    ]
}

/// Stores one file system.
pub(super) fn store_new_file_system(
    connection: &Connection,
    id: FileSystemId,
    volume: Volume,
    anchor_inode: u64,
    sealer: &mut RowChecksum,
) -> rusqlite::Result<()> {
    let anchor_inode = volume.has_stable_inodes.then_some(anchor_inode);
    let mut one = [FileSystem { id, volume, anchor_inode, is_stored: false }];
    store_file_systems(connection, &mut one, sealer)
}

pub(super) fn store_file_systems(
    connection: &Connection,
    all: &mut [FileSystem],
    sealer: &mut RowChecksum,
) -> rusqlite::Result<()> {
    for known in all.iter_mut().filter(|known| !known.is_stored) {
        let seal = seal_file_system(known, sealer);
        connection.execute(
            "INSERT INTO file_system VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                known.id.0,
                known.volume.kind,
                known.volume.uuid,
                known.anchor_inode.map(u64::cast_signed),
                known.volume.mtime_granularity_ns,
                known.volume.has_stable_inodes,
                seal.cast_signed(),
            ],
        )?;
        known.is_stored = true;
    }
    Ok(())
}
