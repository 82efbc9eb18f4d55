//! Findings of runs about recorded files, until a run sees the file as
//! recorded, the user accepts it, or the record goes. Known damage is reported
//! from here by every later command, and `scrub` takes its order from here.

use std::ops::{Deref, DerefMut};

use rusqlite::{Connection, OptionalExtension as _, Params, params};

use super::database::Database;
use super::row::{PAGE_ROWS, StoredRow};
use super::row_checksum::RowChecksum;
use super::table_total::CountedTable;
use crate::model::{KnownDamage, Verdict};
use fsure_core::{RelPath, Result};

/// The turn of a file that was not well when last looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecheckPriority {
    /// Before all others, every time.
    First,
    /// By its age, as if it had been verified then: what is edited, or being
    /// written, is read again no oftener than what is not.
    ByAge,
}

impl RecheckPriority {
    /// Gives the turn of a file with that verdict; `None` for one that is well.
    pub fn of(verdict: Verdict) -> Option<Self> {
        match verdict {
            Verdict::Ok | Verdict::Touched | Verdict::Moved => None,
            // The run did not look at the file, or there is no record to come back to.
            Verdict::Ignored | Verdict::New => None,
            Verdict::Modified | Verdict::Reverted | Verdict::Busy => Some(Self::ByAge),
            _ => Some(Self::First),
        }
    }
}

/// Stands in the place of a verdict where the end of the time cut off the
/// reading of a file that can only be read as a whole.
pub(super) const CUT_OFF: &str = "cut-off";
/// Stands in the place of a verdict where the end of the time left no second
/// look at a content that differed.
const UNDECIDED: &str = "undecided";

/// A row of `finding`.
struct FindingRow {
    verdict: String,
    found_s: i64,
    seen_s: i64,
}

impl FindingRow {
    fn seal(&self, path: &[u8], sealer: &mut RowChecksum) -> i64 {
        sealer
            .bytes(Some(path))
            .bytes(Some(self.verdict.as_bytes()))
            .integer(Some(self.found_s))
            .integer(Some(self.seen_s))
            .seal()
            .cast_signed()
    }

    fn damage(&self) -> Option<KnownDamage> {
        let verdict = Verdict::from_name(&self.verdict).filter(|verdict| verdict.is_damage())?;
        Some(KnownDamage { verdict, found_s: self.found_s, seen_s: self.seen_s })
    }
}

/// Takes over the table that version 2 had for this. It knew one date.
pub(super) fn adopt_looked(connection: &Connection) -> rusqlite::Result<()> {
    let mut looked = connection.prepare("SELECT path, at_s, verdict FROM looked")?;
    let mut insert = connection.prepare("INSERT INTO finding VALUES (?1, ?2, ?3, ?4, ?5)")?;
    let (mut rows, mut sealer) = (looked.query([])?, RowChecksum::new());
    while let Some(row) = rows.next()? {
        let (path, at_s): (Vec<u8>, i64) = (row.get(0)?, row.get(1)?);
        let found = FindingRow { verdict: row.get(2)?, found_s: at_s, seen_s: at_s };
        let seal = found.seal(&path, &mut sealer);
        insert.execute(params![path, found.verdict, at_s, at_s, seal])?;
    }
    Ok(())
}

/// The findings of runs about recorded files.
pub struct Findings<D> {
    database: D,
}

impl<D: Deref<Target = Database>> Findings<D> {
    pub(super) fn new(database: D) -> Self {
        Self { database }
    }

    fn row(&self, path: &RelPath) -> Result<Option<FindingRow>> {
        let sql = "SELECT verdict, found_s, seen_s FROM finding WHERE path = ?1";
        self.database.run(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let found = statement.query_row([path.as_bytes()], |row| {
                Ok(FindingRow { verdict: row.get(0)?, found_s: row.get(1)?, seen_s: row.get(2)? })
            });
            found.optional()
        })
    }

    /// Gives the rows of a page, in the order of paths, what is known of them.
    pub(super) fn add_to(&self, page: &mut [StoredRow]) -> Result<()> {
        let (Some(first), Some(last)) = (page.first(), page.last()) else { return Ok(()) };
        if !self.are_any() {
            return Ok(());
        }
        let (first, last) = (first.path().as_bytes().to_vec(), last.path().as_bytes().to_vec());
        let known = self.damage_between(&first, &last)?;
        let mut known = known.into_iter().peekable();
        for stored in page {
            while known.next_if(|(path, _)| path < stored.path()).is_some() {}
            if let Some((_, damage)) = known.next_if(|(path, _)| path == stored.path()) {
                stored.set_known_damage(damage);
            }
        }
        Ok(())
    }

    fn damage_between(&self, first: &[u8], last: &[u8]) -> Result<Vec<(RelPath, KnownDamage)>> {
        let sql = "SELECT path, verdict, found_s, seen_s FROM finding \
                   WHERE path >= ?1 AND path <= ?2 ORDER BY path";
        self.damage(sql, [first, last])
    }

    /// Runs a query for path, verdict and both dates, and returns the damage in it.
    fn damage(&self, sql: &str, values: impl Params) -> Result<Vec<(RelPath, KnownDamage)>> {
        self.database.run(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map(values, |row| {
                let path = RelPath::from_bytes(row.get::<_, Vec<u8>>(0)?);
                let (verdict, found_s, seen_s) = (row.get(1)?, row.get(2)?, row.get(3)?);
                Ok(FindingRow { verdict, found_s, seen_s }.damage().map(|damage| (path, damage)))
            });
            rows?.filter_map(rusqlite::Result::transpose).collect()
        })
    }

    /// The next files below `scope` that are known to be damaged, in the order of
    /// paths, at most [`PAGE_ROWS`].
    pub fn damage_page(
        &self,
        scope: &RelPath,
        after: Option<&RelPath>,
    ) -> Result<Vec<(RelPath, KnownDamage)>> {
        let damage = Verdict::ALL.into_iter().filter(|verdict| verdict.is_damage());
        let damage: Vec<_> = damage.map(Verdict::name).collect();
        let sql = format!(
            "SELECT path, verdict, found_s, seen_s FROM finding
             WHERE (path = ?1 OR (path >= ?2 AND (?3 IS NULL OR path < ?3)))
                 AND (?4 IS NULL OR path > ?4) AND verdict IN ('{}')
             ORDER BY path LIMIT {PAGE_ROWS}",
            damage.join("', '")
        );
        let (start, end) = scope.below();
        let after = after.map(RelPath::as_bytes);
        self.damage(&sql, params![scope.as_bytes(), start, end, after])
    }

    /// Hands over each file below `scope` that is known to be damaged, in the order of
    /// paths.
    pub fn each_damage(
        &self,
        scope: &RelPath,
        each: &mut dyn FnMut(RelPath, KnownDamage),
    ) -> Result<()> {
        let mut after: Option<RelPath> = None;
        loop {
            let page = self.damage_page(scope, after.as_ref())?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after = Some(last.clone());
            page.into_iter().for_each(|(path, known)| each(path, known));
        }
    }

    /// Returns true if anything was found of any file that is not as recorded.
    pub fn are_any(&self) -> bool {
        self.database.total(CountedTable::Finding).rows() > 0
    }

    /// Returns the files of `scope` that took so long the last time that the time was over
    /// before their end.
    pub fn cut_off(&self, scope: &RelPath) -> Result<Vec<RelPath>> {
        let sql = "SELECT path FROM finding WHERE verdict = ?1 ORDER BY path";
        let mut paths: Vec<_> = self.database.run(|connection| {
            let mut statement = connection.prepare(sql)?;
            let paths = statement.query_map([CUT_OFF], |row| row.get::<_, Vec<u8>>(0))?;
            paths.map(|path| path.map(RelPath::from_bytes)).collect()
        })?;
        paths.retain(|path| path.is_within(scope));
        Ok(paths)
    }
}

impl<D: DerefMut<Target = Database>> Findings<D> {
    /// Notes that a file was looked at, and how it differs from its record. Known
    /// damage keeps its date, and neither an edit nor a lack of permission ends it.
    pub fn note(&mut self, path: &RelPath, at_s: i64, verdict: Verdict) -> Result<()> {
        let before = self.row(path)?.and_then(|before| before.damage());
        let found_s = match before {
            Some(_) if !verdict.is_damage() => return Ok(()),
            Some(known) => known.found_s,
            None => at_s,
        };
        let verdict = verdict.name().to_owned();
        self.insert(path, &FindingRow { verdict, found_s, seen_s: at_s })
    }

    /// Notes that a file took so long that the time was over before its end.
    pub fn note_cut_off(&mut self, path: &RelPath, at_s: i64) -> Result<()> {
        self.put_marker(path, at_s, CUT_OFF)
    }

    /// Notes that a file differed at a first look, and that no time was left for
    /// a second one.
    pub fn note_undecided(&mut self, path: &RelPath, at_s: i64) -> Result<()> {
        self.put_marker(path, at_s, UNDECIDED)
    }

    /// Writes a marker, which is not a verdict, unless a verdict of damage says more.
    fn put_marker(&mut self, path: &RelPath, at_s: i64, marker: &str) -> Result<()> {
        if self.row(path)?.is_some_and(|row| row.damage().is_some()) {
            return Ok(());
        }
        let row = FindingRow { verdict: marker.to_owned(), found_s: at_s, seen_s: at_s };
        self.insert(path, &row)
    }

    fn insert(&mut self, path: &RelPath, row: &FindingRow) -> Result<()> {
        self.forget(path)?;
        let path = path.as_bytes();
        let seal = row.seal(path, &mut RowChecksum::new());
        let sql = "INSERT INTO finding VALUES (?1, ?2, ?3, ?4, ?5)";
        let values = params![path, row.verdict, row.found_s, row.seen_s, seal];
        self.database.insert_counted(CountedTable::Finding, sql, values)
    }

    /// Forgets what was found of a file: it is as recorded, or the user accepts
    /// what it is.
    pub fn forget(&mut self, path: &RelPath) -> Result<()> {
        self.database.begin()?;
        if self.database.total(CountedTable::Finding).rows() == 0 {
            return Ok(());
        }
        let sql = "DELETE FROM finding WHERE path = ?1";
        self.database.delete_counted(CountedTable::Finding, sql, [path.as_bytes()])
    }

    /// Takes what was found of a file to its new name.
    pub(super) fn rename(&mut self, from: &RelPath, to: &RelPath) -> Result<()> {
        let Some(row) = self.row(from)? else { return Ok(()) };
        self.forget(from)?;
        self.insert(to, &row)
    }

    /// Forgets files that are not recorded under that name any more.
    pub fn prune(&mut self) -> Result<()> {
        self.database.begin()?;
        let is_stranger = "NOT EXISTS (SELECT 1 FROM record WHERE gone_s IS NULL AND record.path =";
        let findings = format!("DELETE FROM finding WHERE {is_stranger} finding.path)");
        self.database.delete_counted(CountedTable::Finding, &findings, [])?;
        let parts = format!("DELETE FROM part WHERE {is_stranger} part.path)");
        self.database.execute(&parts, []).map(drop)
    }
}
