//! One row of `record`: from columns to a record and back, with its seal.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Row as SqlRow, ToSql, params_from_iter};

use super::row_checksum::RowChecksum;
use crate::model::{Entry, EntryKind, FileSystemId, KnownDamage, Metadata, Record};
use fsure_core::{Algorithm, Digests, RelPath};

/// The columns in their stored order, as a literal for statements.
macro_rules! columns {
    () => {
        "path, kind, size, mtime_ns, ctime_ns, birth_ns, inode, file_system, target, blake3, \
         sha256, sha512, sha1, md5, xxh128, hashed_ns, verified_s, gone_s, blocks, seal"
    };
}
pub(super) use columns;

/// Rows fetched at once: enough to make the call cheap, few enough to stay in
/// the processor's cache until they are looked at. 2048 rows took memory from
/// the system and gave it back for every page.
pub const PAGE_ROWS: usize = 256;

/// Puts a row where there is none of its path.
pub(super) const INSERT: &str = concat!(
    "INSERT INTO record (",
    columns!(),
    ") VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20)"
);

/// Puts a row in the place of the one of its path.
pub(super) const REPLACE: &str = concat!(
    "INSERT OR REPLACE INTO record (",
    columns!(),
    ") VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20)"
);

/// Notes that a row's content was seen again, unchanged. Half the work of
/// [`REPLACE`], and what a run over an unchanged tree writes for every file.
pub(super) const SEE_AGAIN: &str =
    "UPDATE record SET hashed_ns = ?2, verified_s = ?3, seal = ?4 WHERE path = ?1";

const FIRST_DIGEST: usize = 9;
const SEAL: usize = 19;
const COLUMNS: usize = 20;

/// A stored record whose seal fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The record.
    pub record: Record,
    pub(super) blocks: Option<i64>,
    pub(super) seal: u64,
    /// The recorded metadata, fetched together with the row, so that files are judged by
    /// the same metadata that is compared with a signature.
    pub(super) metadata: Option<Box<StoredMetadata>>,
    /// Damage that an earlier run found, fetched with it.
    known_damage: Option<KnownDamage>,
}

/// Recorded metadata of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredMetadata {
    /// A row whose seal fits.
    Sound(Metadata),
    /// A row that cannot be believed.
    Bad,
}

/// Result of reading a row of the catalog.
// Bad rows are rare: boxing the sound ones would cost all the others.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredRow {
    /// A row whose seal fits.
    Sound(Row),
    /// A row that cannot be believed, and the path it claims to be of.
    Bad(RelPath),
}

impl StoredRow {
    /// The row's path.
    pub fn path(&self) -> &RelPath {
        match self {
            Self::Sound(row) => &row.record.path,
            Self::Bad(path) => path,
        }
    }

    /// Returns the row if its seal fits.
    pub(super) fn sound(&self) -> Option<&Row> {
        match self {
            Self::Sound(row) => Some(row),
            Self::Bad(_) => None,
        }
    }

    /// Gives a sound row what is known of its file.
    pub(super) fn set_known_damage(&mut self, damage: KnownDamage) {
        if let Self::Sound(row) = self {
            row.known_damage = Some(damage);
        }
    }
}

impl Row {
    pub(super) fn new(record: Record, blocks: Option<i64>, sealer: &mut RowChecksum) -> Self {
        let seal = seal_of(&record, blocks, sealer);
        Self { record, blocks, seal, metadata: None, known_damage: None }
    }

    /// Creates the row of a record, for tests of what is above the catalog.
    #[cfg(test)]
    pub(crate) fn of_record(record: Record) -> Self {
        Self::new(record, None, &mut RowChecksum::new())
    }

    /// Damage of the file that an earlier run found and nothing has settled.
    pub fn known_damage(&self) -> Option<KnownDamage> {
        self.known_damage
    }

    /// Its metadata, if any is recorded.
    pub fn metadata(&self) -> Option<&StoredMetadata> {
        self.metadata.as_deref()
    }

    /// Returns true if the record is a tombstone.
    pub fn is_gone(&self) -> bool {
        self.record.gone_s.is_some()
    }

    /// Returns true if the row has a list of block values.
    pub fn has_blocks(&self) -> bool {
        self.blocks.is_some()
    }

    /// Returns true if this row counts as a file of the root: a file that is not a tombstone.
    pub fn is_live_file(&self) -> bool {
        self.record.entry.kind == EntryKind::File && !self.is_gone()
    }

    /// Returns true if a record differs from this row in nothing but dates of reading: the same
    /// content was seen again.
    pub fn is_seen_again(&self, record: &Record) -> bool {
        let was = &self.record;
        (&was.entry, &was.digests, was.gone_s) == (&record.entry, &record.digests, record.gone_s)
    }

    /// Returns true if another row of the same path makes the same claim.
    pub(super) fn claims_same_as(&self, other: &Self) -> bool {
        let claim = |row: &Self| {
            let entry = &row.record.entry;
            (entry.kind, entry.size, entry.mtime_ns, row.record.gone_s)
        };
        claim(self) == claim(other)
            && self.record.entry.target == other.record.entry.target
            && self.record.digests == other.record.digests
    }
}

/// Reads a row, with the seal that is stored for it (0 if that is not a
/// number), which counts for the root digest whether it fits or not.
pub(super) fn read(
    row: &SqlRow<'_>,
    sealer: &mut RowChecksum,
) -> rusqlite::Result<(StoredRow, u64)> {
    let seal = required(row, SEAL).map_or(0, i64::cast_unsigned);
    let mut path = match row.get_ref(0)? {
        ValueRef::Blob(path) => RelPath::from_bytes(path),
        // SQLite sorts text before bytes, so that no look-up by path finds this
        // row: it is one flipped bit away from a sound one, and its seal fits.
        ValueRef::Text(path) => return Ok((StoredRow::Bad(RelPath::from_bytes(path)), seal)),
        _ => return Ok((StoredRow::Bad(RelPath::root()), seal)),
    };
    let read = record(row, &mut path).map(|(record, blocks)| Row::new(record, blocks, sealer));
    let stored = match read {
        Some(read) if read.seal == seal => StoredRow::Sound(read),
        Some(read) => StoredRow::Bad(read.record.path),
        None => StoredRow::Bad(path),
    };
    Ok((stored, seal))
}

fn required(row: &SqlRow<'_>, column: usize) -> Option<i64> {
    match row.get_ref(column).ok()? {
        ValueRef::Integer(value) => Some(value),
        _ => None,
    }
}

/// The outer `None` is for a column that is not of its type.
#[allow(clippy::option_option)]
fn optional(row: &SqlRow<'_>, column: usize) -> Option<Option<i64>> {
    match row.get_ref(column).ok()? {
        ValueRef::Integer(value) => Some(Some(value)),
        ValueRef::Null => Some(None),
        _ => None,
    }
}

/// The record in a row, which takes the path, or `None` where a column is not
/// of its type.
fn record(row: &SqlRow<'_>, path: &mut RelPath) -> Option<(Record, Option<i64>)> {
    let required = |column| required(row, column);
    let optional = |column| optional(row, column);
    let mut digests = Digests::default();
    for (place, algorithm) in Algorithm::RECORDED.into_iter().enumerate() {
        match row.get_ref(FIRST_DIGEST + place).ok()? {
            ValueRef::Null => {}
            ValueRef::Blob(value) if value.len() == algorithm.length() => {
                digests.insert(algorithm, value);
            }
            _ => return None,
        }
    }
    let entry = Entry {
        kind: match required(1)? {
            0 => EntryKind::File,
            1 => EntryKind::Folder,
            2 => EntryKind::Link,
            _ => return None,
        },
        size: required(2)?.cast_unsigned(),
        mtime_ns: required(3)?,
        ctime_ns: optional(4)?,
        birth_ns: optional(5)?,
        inode: optional(6)?.map(i64::cast_unsigned),
        file_system: FileSystemId(required(7)?.try_into().ok()?),
        target: match row.get_ref(8).ok()? {
            ValueRef::Null => None,
            ValueRef::Blob(target) => Some(target.into()),
            _ => return None,
        },
    };
    let (hashed_ns, verified_s) = (required(15)?, required(16)?);
    let (gone_s, blocks) = (optional(17)?, optional(18)?);
    let path = std::mem::take(path);
    Some((Record { path, entry, digests, hashed_ns, verified_s, gone_s }, blocks))
}

pub(super) fn kind_code(kind: EntryKind) -> i64 {
    match kind {
        EntryKind::File => 0,
        EntryKind::Folder => 1,
        EntryKind::Link => 2,
        EntryKind::Special => unreachable!("special files are never recorded"),
    }
}

fn seal_of(record: &Record, blocks: Option<i64>, sealer: &mut RowChecksum) -> u64 {
    let entry = &record.entry;
    sealer
        .bytes(Some(record.path.as_bytes()))
        .integer(Some(kind_code(entry.kind)))
        .integer(Some(entry.size.cast_signed()))
        .integer(Some(entry.mtime_ns))
        .integer(entry.ctime_ns)
        .integer(entry.birth_ns)
        .integer(entry.inode.map(u64::cast_signed))
        .integer(Some(entry.file_system.0.into()))
        .bytes(entry.target.as_deref());
    for algorithm in Algorithm::RECORDED {
        sealer.bytes(record.digests.get(algorithm));
    }
    sealer
        .integer(Some(record.hashed_ns))
        .integer(Some(record.verified_s))
        .integer(record.gone_s)
        .integer(blocks)
        .seal()
}

/// A row's columns in their order.
pub(super) fn values(row: &Row) -> [ValueRef<'_>; COLUMNS] {
    let (record, entry) = (&row.record, &row.record.entry);
    let integer = ValueRef::Integer;
    let optional = |value: Option<i64>| value.map_or(ValueRef::Null, ValueRef::Integer);
    let blob = |value| Option::map_or(value, ValueRef::Null, ValueRef::Blob);
    let digest = |algorithm| blob(record.digests.get(algorithm));
    [
        ValueRef::Blob(record.path.as_bytes()),
        integer(kind_code(entry.kind)),
        integer(entry.size.cast_signed()),
        integer(entry.mtime_ns),
        optional(entry.ctime_ns),
        optional(entry.birth_ns),
        optional(entry.inode.map(u64::cast_signed)),
        integer(entry.file_system.0.into()),
        blob(entry.target.as_deref()),
        digest(Algorithm::Blake3),
        digest(Algorithm::Sha256),
        digest(Algorithm::Sha512),
        digest(Algorithm::Sha1),
        digest(Algorithm::Md5),
        digest(Algorithm::Xxh128),
        integer(record.hashed_ns),
        integer(record.verified_s),
        optional(record.gone_s),
        optional(row.blocks),
        integer(row.seal.cast_signed()),
    ]
}

/// Binds a row's columns in their order and runs the statement.
pub(super) fn write(
    statement: &mut CachedStatement<'_>,
    values: &[ValueRef<'_>; COLUMNS],
) -> rusqlite::Result<()> {
    statement.execute(params_from_iter(values.iter().map(|value| Borrowed(*value)))).map(drop)
}

/// Binds what [`SEE_AGAIN`] writes and runs it. How many rows there were.
pub(super) fn write_seen_again(
    statement: &mut CachedStatement<'_>,
    row: &Row,
) -> rusqlite::Result<usize> {
    let record = &row.record;
    statement.execute(rusqlite::params![
        record.path.as_bytes(),
        record.hashed_ns,
        record.verified_s,
        row.seal.cast_signed(),
    ])
}

/// A value that is bound without being copied first.
pub(super) struct Borrowed<'a>(pub(super) ValueRef<'a>);

impl ToSql for Borrowed<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(self.0))
    }
}
