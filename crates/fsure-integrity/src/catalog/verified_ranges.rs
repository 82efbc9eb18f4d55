//! Records which parts of a large file were verified and when, until the whole file is
//! verified: a scrub with a budget continues inside the file. A part counts only for the
//! recorded content and for the stat under which it was read; its seal covers both.

use std::ops::{Deref, DerefMut};

use rusqlite::params;

use super::database::Database;
use super::row_checksum::RowChecksum;
use crate::model::Entry;
use fsure_core::{RelPath, Result};

/// Consecutive blocks of a file that were seen to be as recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifiedRange {
    /// Number of the first block.
    pub first_block: u64,
    /// Number of blocks.
    pub blocks: u64,
    /// Time at which the first block was read, in seconds since 1970.
    pub verified_s: i64,
}

/// Adds a part to parts in order. Where it touches another they become one, as
/// old as the older of them.
pub fn add_part(parts: &mut Vec<VerifiedRange>, part: VerifiedRange) {
    parts.push(part);
    parts.sort_unstable_by_key(|part| part.first_block);
    parts.dedup_by(|next, last| {
        let end = last.first_block + last.blocks;
        let touches = next.first_block <= end;
        if touches {
            last.blocks = end.max(next.first_block + next.blocks) - last.first_block;
            last.verified_s = last.verified_s.min(next.verified_s);
        }
        touches
    });
}

/// The parts of files that were verified.
pub struct VerifiedRanges<D> {
    database: D,
}

impl<D: Deref<Target = Database>> VerifiedRanges<D> {
    pub(super) fn new(database: D) -> Self {
        Self { database }
    }

    /// The parts of a file that were verified, if the file is still as it was
    /// and its record says the same.
    pub fn of(&self, path: &RelPath, entry: &Entry, blake3: &[u8]) -> Result<Vec<VerifiedRange>> {
        let sql = "SELECT first_block, blocks, verified_s, seal FROM part \
                   WHERE path = ?1 ORDER BY first_block";
        let (mut parts, mut sealer) = (Vec::new(), RowChecksum::new());
        self.database.run(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let mut rows = statement.query([path.as_bytes()])?;
            while let Some(row) = rows.next()? {
                let number = |column| row.get::<_, i64>(column);
                let (first_block, blocks) =
                    (number(0)?.cast_unsigned(), number(1)?.cast_unsigned());
                let part = VerifiedRange { first_block, blocks, verified_s: number(2)? };
                let stored = number(3)?.cast_unsigned();
                if seal(path, entry, blake3, part, &mut sealer) == stored {
                    add_part(&mut parts, part);
                }
            }
            Ok(parts)
        })
    }

    /// Returns true if any file is verified in part.
    pub fn are_any(&self) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM part)";
        self.database.run(|connection| connection.query_row(sql, [], |row| row.get(0)))
    }
}

impl<D: DerefMut<Target = Database>> VerifiedRanges<D> {
    /// Puts these parts of a file in the place of those there are.
    pub fn set(
        &mut self,
        path: &RelPath,
        entry: &Entry,
        blake3: &[u8],
        parts: &[VerifiedRange],
    ) -> Result<()> {
        self.database.begin()?;
        let delete = "DELETE FROM part WHERE path = ?1";
        let insert = "INSERT INTO part VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        let mut sealer = RowChecksum::new();
        self.database.run(|connection| {
            connection.prepare_cached(delete)?.execute([path.as_bytes()])?;
            let mut insert = connection.prepare_cached(insert)?;
            for part in parts {
                insert.execute(params![
                    path.as_bytes(),
                    entry.size.cast_signed(),
                    entry.mtime_ns,
                    entry.ctime_ns,
                    entry.inode.map(u64::cast_signed),
                    part.first_block.cast_signed(),
                    part.blocks.cast_signed(),
                    part.verified_s,
                    seal(path, entry, blake3, *part, &mut sealer).cast_signed(),
                ])?;
            }
            Ok(())
        })
    }
}

/// The seal covers the stat and the recorded digest, so that a part of another
/// state or of another record never fits.
fn seal(
    path: &RelPath,
    entry: &Entry,
    blake3: &[u8],
    part: VerifiedRange,
    sealer: &mut RowChecksum,
) -> u64 {
    sealer
        .bytes(Some(path.as_bytes()))
        .integer(Some(entry.size.cast_signed()))
        .integer(Some(entry.mtime_ns))
        .integer(entry.ctime_ns)
        .integer(entry.inode.map(u64::cast_signed))
        .integer(Some(part.first_block.cast_signed()))
        .integer(Some(part.blocks.cast_signed()))
        .integer(Some(part.verified_s))
        .bytes(Some(blake3))
        .seal()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(first_block: u64, blocks: u64, verified_s: i64) -> VerifiedRange {
        VerifiedRange { first_block, blocks, verified_s }
    }

    #[test]
    fn parts_that_touch_are_as_old_as_the_older() {
        let mut parts = Vec::new();
        for (added, all) in [
            (part(8, 8, 50), vec![part(8, 8, 50)]),
            (part(0, 4, 70), vec![part(0, 4, 70), part(8, 8, 50)]),
            (part(4, 4, 90), vec![part(0, 16, 50)]),
            (part(2, 3, 40), vec![part(0, 16, 40)]),
            (part(17, 1, 10), vec![part(0, 16, 40), part(17, 1, 10)]),
        ] {
            add_part(&mut parts, added);
            assert_eq!(parts, all);
        }
    }
}
