//! Reading a backup: its entries are carried out in an empty catalog, up to the
//! last commit that is there.

use std::io::Read;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::BackupEntry;
use super::frame::{Frame, Frames, HEAD, HEAD_BYTES};
use crate::catalog::tables::{Table, decode, take};

/// The state that a backup holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Replayed {
    /// Names the catalog it is of.
    pub(in super::super) catalog: [u8; 16],
    /// Number of the last commit that is in it.
    pub(in super::super) sequence: u64,
    /// Length of the backup up to the end of that commit, bytes.
    pub(in super::super) length: u64,
    /// Checksum of the frame that ends it.
    pub(in super::super) checksum: u64,
    /// Frames that are damaged: what they held is not known.
    pub(in super::super) damaged_frames: u64,
}

/// Carries out a backup in a database with the tables of a catalog. `None` if it
/// is not a backup, or has no commit.
pub(in super::super) fn replay(
    connection: &Connection,
    mut from: impl Read,
) -> rusqlite::Result<std::io::Result<Option<Replayed>>> {
    let mut head = [0; 32];
    if from.read_exact(&mut head).is_err() || head[..16] != *HEAD {
        return Ok(Ok(None));
    }
    let mut replayed = Replayed::default();
    replayed.catalog.copy_from_slice(&head[16..]);
    let mut frames = Frames::new(from);
    connection.execute_batch("SAVEPOINT backup")?;
    let mut has_commit = false;
    loop {
        match frames.next() {
            Err(error) => return Ok(Err(error)),
            Ok(None) => break,
            Ok(Some(Frame::Damaged)) => replayed.damaged_frames += 1,
            Ok(Some(Frame::Sound(frame))) => {
                if carry_out(connection, &frame.content, &mut replayed)? {
                    has_commit = true;
                    (replayed.length, replayed.checksum) = (HEAD_BYTES + frame.end, frame.checksum);
                }
            }
        }
    }
    // What follows the last commit was never the catalog's state.
    connection.execute_batch("ROLLBACK TO backup; RELEASE backup")?;
    Ok(Ok(has_commit.then_some(replayed)))
}

/// Carries out the entries of a frame. Returns true if there was a commit.
fn carry_out(
    connection: &Connection,
    mut entries: &[u8],
    replayed: &mut Replayed,
) -> rusqlite::Result<bool> {
    let mut has_commit = false;
    while let Some(entry) = entries.split_off_first().copied().and_then(BackupEntry::from_number) {
        match entry {
            BackupEntry::Clear => clear(connection)?,
            BackupEntry::Commit => {
                let Some(sequence) = take(&mut entries) else { break };
                replayed.sequence = u64::from_le_bytes(sequence);
                connection.execute_batch("RELEASE backup; SAVEPOINT backup")?;
                has_commit = true;
            }
            BackupEntry::Put | BackupEntry::Delete => {
                let Some((table, values)) = row(&mut entries) else { break };
                let (columns, key) = table.columns();
                match entry {
                    BackupEntry::Put if values.len() == columns => {
                        table.put(connection, &values)?;
                    }
                    BackupEntry::Delete if values.len() == key => {
                        delete(connection, table, &values)?;
                    }
                    _ => {}
                }
            }
        }
    }
    Ok(has_commit)
}

fn row(entries: &mut &[u8]) -> Option<(Table, Vec<Value>)> {
    let table = Table::from_number(*entries.split_off_first()?)?;
    let columns = *entries.split_off_first()?;
    let values = (0..columns).map(|_| decode(entries)).collect::<Option<_>>()?;
    Some((table, values))
}

fn clear(connection: &Connection) -> rusqlite::Result<()> {
    Table::ALL.into_iter().try_for_each(|table| {
        connection.execute(&format!("DELETE FROM {}", table.name()), []).map(drop)
    })
}

fn delete(connection: &Connection, table: Table, key: &[Value]) -> rusqlite::Result<()> {
    let columns = match table {
        Table::Block => "list = ?1 AND part = ?2",
        Table::Choice => "name = ?1",
        Table::Redated => "scope = ?1",
        Table::Generation | Table::Verification => "number = ?1",
        _ => "path = ?1",
    };
    let sql = format!("DELETE FROM {} WHERE {columns}", table.name());
    connection.prepare_cached(&sql)?.execute(params_from_iter(key)).map(drop)
}
