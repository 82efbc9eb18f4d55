//! The generations of a record and what was verified of it. Generations are
//! bound by the next signature; see `docs/trust.md`.

use std::ops::{Deref, DerefMut};

use rusqlite::{Connection, OptionalExtension as _, Row as SqlRow, params};

use super::database::Database;
use super::root_row::MADE_BY;
use super::row_checksum::RowChecksum;
use super::table_total::CountedTable;
use crate::model::{Changes, Generation, SignedStatement, Verification};
use fsure_core::Result;

/// Maximum number of kept generations that no signature binds: without a limit, a record
/// that is updated every minute would grow for ever.
const UNSIGNED_MAX: i64 = 10_000;

/// Maximum number of kept verifications.
const VERIFICATIONS_MAX: i64 = 1_000;

const GENERATION: &str = "SELECT number, at_s, command, made_by, new, modified, touched, missing, \
                          moved, accepted, bytes, statement, signature FROM generation";

/// The generations and the verifications of a record.
pub struct RecordHistory<D> {
    database: D,
}

impl<D: Deref<Target = Database>> RecordHistory<D> {
    pub(super) fn new(database: D) -> Self {
        Self { database }
    }

    /// All generations that are kept, in order; an error if any was lost, or if any
    /// row of what was accepted was.
    pub fn generations(&self) -> Result<Vec<Generation>> {
        self.database.require_total(CountedTable::Generation)?;
        self.database.require_total(CountedTable::Accepted)?;
        self.database.run(|connection| {
            let mut statement = connection.prepare(&format!("{GENERATION} ORDER BY number"))?;
            statement.query_map([], generation)?.collect()
        })
    }

    /// The number of the newest generation, 0 where there is none.
    pub fn last_generation(&self) -> Result<u64> {
        let sql = "SELECT number FROM generation ORDER BY number DESC LIMIT 1";
        let last =
            |connection: &Connection| connection.query_row(sql, [], |row| row.get(0)).optional();
        Ok(self.database.run(last)?.map_or(0, i64::cast_unsigned))
    }

    /// The number of the generation that comes next.
    pub fn next_generation(&self) -> Result<u64> {
        Ok(self.last_generation()?.saturating_add(1))
    }

    /// All verifications that are kept, in order; an error if any was lost.
    pub fn verifications(&self) -> Result<Vec<Verification>> {
        self.database.require_total(CountedTable::Verification)?;
        let sql = "SELECT at_s, command, generation, files, bytes, exit_code \
                   FROM verification ORDER BY number";
        self.database.run(|connection| {
            let mut statement = connection.prepare(sql)?;
            statement.query_map([], verification)?.collect()
        })
    }

    /// The number of the newest verification, 0 where there is none.
    pub fn last_verification(&self) -> Result<i64> {
        let sql = "SELECT ifnull(max(number), 0) FROM verification";
        self.database.run(|connection| connection.query_row(sql, [], |row| row.get(0)))
    }
}

impl<D: DerefMut<Target = Database>> RecordHistory<D> {
    /// Notes what a run has changed, if it has changed a claim: under the number
    /// that it has got before, else under the next one.
    pub fn note_changes(
        &mut self,
        number: &mut Option<u64>,
        at_s: i64,
        command: &str,
        changes: Changes,
    ) -> Result<()> {
        if !self.database.has_changed_claims() {
            return Ok(());
        }
        let of_this_run = match *number {
            Some(number) => number,
            None => self.next_generation()?,
        };
        *number = Some(of_this_run);
        self.put_generation(&Generation {
            number: of_this_run,
            at_s,
            command: command.to_owned(),
            made_by: MADE_BY.to_owned(),
            changes,
            seal: None,
        })
    }

    /// Writes a generation, in the place of the one of its number.
    pub fn put_generation(&mut self, generation: &Generation) -> Result<()> {
        self.database.begin()?;
        let Generation { changes, seal, .. } = generation;
        let number = generation.number.cast_signed();
        let values = params![
            number,
            generation.at_s,
            generation.command,
            generation.made_by,
            changes.new.cast_signed(),
            changes.modified.cast_signed(),
            changes.touched.cast_signed(),
            changes.missing.cast_signed(),
            changes.moved.cast_signed(),
            changes.accepted.cast_signed(),
            changes.bytes.cast_signed(),
            seal.as_ref().map(|seal| &seal.statement),
            seal.as_ref().map(|seal| &seal.signature),
        ];
        let insert = "INSERT INTO generation VALUES \
                      (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
        let forget = "DELETE FROM generation WHERE number <= ?1 AND number > \
                      (SELECT coalesce(max(number), 0) FROM generation \
                       WHERE statement IS NOT NULL)";
        let oldest = number.saturating_sub(UNSIGNED_MAX);
        self.database.delete_counted(
            CountedTable::Generation,
            "DELETE FROM generation WHERE number = ?1",
            [number],
        )?;
        self.database.insert_counted(CountedTable::Generation, insert, values)?;
        self.database.delete_counted(CountedTable::Generation, forget, [oldest])
    }

    /// Notes how much was verified.
    pub fn note_verification(&mut self, one: &Verification) -> Result<()> {
        self.database.begin()?;
        let insert = "INSERT INTO verification \
                      (at_s, command, generation, files, bytes, exit_code) \
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let forget = "DELETE FROM verification WHERE number <= \
                      (SELECT max(number) FROM verification) - ?1";
        let values = params![
            one.at_s,
            one.command,
            one.generation.cast_signed(),
            one.files.cast_signed(),
            one.bytes.cast_signed(),
            one.exit_code,
        ];
        self.database.insert_counted(CountedTable::Verification, insert, values)?;
        self.database.delete_counted(CountedTable::Verification, forget, [VERIFICATIONS_MAX])
    }

    /// Notes a verification in the place of all after that number.
    pub fn end_verification(&mut self, after: i64, one: &Verification) -> Result<()> {
        self.database.begin()?;
        let sql = "DELETE FROM verification WHERE number > ?1";
        self.database.delete_counted(CountedTable::Verification, sql, [after])?;
        self.note_verification(one)
    }
}

fn unsigned(row: &SqlRow<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(i64::cast_unsigned)
}

fn generation(row: &SqlRow<'_>) -> rusqlite::Result<Generation> {
    let seal = match (row.get(11)?, row.get(12)?) {
        (Some(statement), Some(signature)) => Some(SignedStatement { statement, signature }),
        _ => None,
    };
    Ok(Generation {
        number: unsigned(row, 0)?,
        at_s: row.get(1)?,
        command: row.get(2)?,
        made_by: row.get(3)?,
        changes: Changes {
            new: unsigned(row, 4)?,
            modified: unsigned(row, 5)?,
            touched: unsigned(row, 6)?,
            missing: unsigned(row, 7)?,
            moved: unsigned(row, 8)?,
            accepted: unsigned(row, 9)?,
            bytes: unsigned(row, 10)?,
        },
        seal,
    })
}

fn verification(row: &SqlRow<'_>) -> rusqlite::Result<Verification> {
    Ok(Verification {
        at_s: row.get(0)?,
        command: row.get(1)?,
        generation: unsigned(row, 2)?,
        files: unsigned(row, 3)?,
        bytes: unsigned(row, 4)?,
        exit_code: row.get(5)?,
    })
}

/// BLAKE3 over generations in order, encoded as for seals.
pub fn digest_of(generations: &[Generation]) -> [u8; 32] {
    let (mut hasher, mut encoder) = (blake3::Hasher::new(), RowChecksum::new());
    for one in generations {
        let Generation { changes, seal, .. } = one;
        let counts = [
            changes.new,
            changes.modified,
            changes.touched,
            changes.missing,
            changes.moved,
            changes.accepted,
            changes.bytes,
        ];
        encoder
            .integer(Some(one.number.cast_signed()))
            .integer(Some(one.at_s))
            .bytes(Some(one.command.as_bytes()))
            .bytes(Some(one.made_by.as_bytes()));
        for count in counts {
            encoder.integer(Some(count.cast_signed()));
        }
        encoder
            .bytes(seal.as_ref().map(|seal| seal.statement.as_bytes()))
            .bytes(seal.as_ref().map(|seal| seal.signature.as_bytes()))
            .pass_on(&mut hasher);
    }
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use fsure_os::filesystem_id::Volume;

    use super::*;
    use crate::catalog::{Catalog, RootSettings};
    use fsure_core::AlgorithmSet;

    fn empty() -> Catalog {
        let settings = RootSettings { digests: AlgorithmSet::default(), cross_file_systems: false };
        let root = (Volume::unknown(), 1);
        Catalog::temporary(std::path::Path::new("none"), settings, root).unwrap()
    }

    #[test]
    fn what_is_signed_stays_and_the_rest_is_bounded() {
        const SIGNED: u64 = 3;
        let mut catalog = empty();
        let last = SIGNED + UNSIGNED_MAX as u64 + 5;
        for number in 1..=last {
            let seal = SignedStatement { statement: String::new(), signature: String::new() };
            let generation = Generation {
                number,
                at_s: 0,
                command: "update".to_owned(),
                made_by: String::new(),
                changes: Changes { new: number, ..Changes::default() },
                seal: (number == SIGNED).then_some(seal),
            };
            catalog.history_mut().put_generation(&generation).unwrap();
        }
        let kept = catalog.history().generations().unwrap();
        let numbers: Vec<_> = kept.iter().map(|one| one.number).collect();
        let expected: Vec<_> = (1..=SIGNED).chain(SIGNED + 6..=last).collect();
        assert_eq!(numbers, expected);
        assert!(kept.iter().all(|one| one.changes.new == one.number), "as they were written");
        assert_eq!(catalog.history().next_generation().unwrap(), last + 1);
    }

    #[test]
    fn the_last_verifications_are_kept() {
        let mut catalog = empty();
        let one = |at_s| Verification {
            at_s,
            command: "verify".to_owned(),
            generation: 1,
            files: 2,
            bytes: 3,
            exit_code: 4,
        };
        for at_s in 0..VERIFICATIONS_MAX + 7 {
            catalog.history_mut().note_verification(&one(at_s)).unwrap();
        }
        let kept = catalog.history().verifications().unwrap();
        assert_eq!(kept, (7..VERIFICATIONS_MAX + 7).map(one).collect::<Vec<_>>());
    }
}
