//! The files that a scrub has to read, in the order in which they are due. SQLite sorts
//! them into a table of this connection, which holds in memory what fits into its cache
//! and the rest in an unnamed file: memory does not grow with the number of files, and
//! writes during a run do not change its list.

use rusqlite::params;

use super::database::Database;
use super::findings::{CUT_OFF, Findings, RecheckPriority};
use super::metadata::MetadataTable;
use super::row::{self, PAGE_ROWS, StoredRow};
use super::row_checksum::RowChecksum;
use super::verified_paths::{VerifiedPaths, verified_sql};
use crate::model::Verdict;
use fsure_core::{RelPath, Result};

/// A recorded file that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueFile {
    /// Its place in the order.
    pub number: i64,
    /// True if the file comes first because its last check found a problem.
    pub is_again: bool,
    /// True if the last check could not read the file: it was missing, denied or of
    /// another type.
    pub was_unreachable: bool,
    /// The most that may be read of it.
    pub bytes_max: u64,
    /// Its row.
    pub stored: StoredRow,
}

/// Totals of all files that are due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DueTotals {
    /// Files.
    pub files: u64,
    /// Their bytes, as recorded.
    pub bytes: u64,
    /// Bytes of all recorded files of that scope, due or not.
    pub recorded_bytes: u64,
}

/// The recorded files that are due, in their order.
pub struct ScrubQueue<'a> {
    database: &'a Database,
    verified_paths: &'a VerifiedPaths,
    /// True if the root's options ask for metadata.
    has_metadata: bool,
}

impl<'a> ScrubQueue<'a> {
    pub(super) fn new(
        database: &'a Database,
        verified_paths: &'a VerifiedPaths,
        has_metadata: bool,
    ) -> Self {
        Self { database, verified_paths, has_metadata }
    }

    /// Lists the recorded files of `scope` that are due at `now_s`: first those whose
    /// last check found a problem, then those that were last verified at `until_s` or
    /// before, the oldest first. A date in the future counts as no date.
    pub fn fill(&self, scope: &RelPath, until_s: i64, now_s: i64) -> Result<DueTotals> {
        let by_age =
            |verdict: &Verdict| RecheckPriority::of(*verdict) == Some(RecheckPriority::ByAge);
        let by_age: Vec<_> = Verdict::ALL.into_iter().filter(by_age).map(Verdict::name).collect();
        let by_age = by_age.join("', '");
        let unreachable = [Verdict::Missing, Verdict::Denied, Verdict::TypeChanged];
        let unreachable = unreachable.map(Verdict::name).join("', '");
        let files = "record.kind = 0 AND record.gone_s IS NULL AND (record.path = ?1 \
                     OR (record.path >= ?2 AND (?3 IS NULL OR record.path < ?3)))";
        let verified = verified_sql("?5");
        let fill = format!(
            "INSERT INTO temp.due (due_path, due_size, is_again, was_unreachable)
             SELECT path, size, turn = 0, unreachable FROM (
                 SELECT record.path AS path, record.size AS size,
                     ifnull(verdict IN ('{unreachable}'), 0) AS unreachable,
                     CASE WHEN verdict IS NULL OR verdict IN ('{by_age}') THEN 1
                          WHEN verdict = '{CUT_OFF}' THEN 2 ELSE 0 END AS turn,
                     {verified} AS verified,
                     iif(seen_s > ?5, 0, ifnull(seen_s, 0)) AS seen
                 FROM record LEFT JOIN finding ON finding.path = record.path
                 WHERE {files})
             WHERE CASE turn WHEN 0 THEN 1 WHEN 1 THEN max(verified, seen) <= ?4
                             ELSE verified <= ?4 END
             ORDER BY turn, max(verified, seen), path"
        );
        let (start, end) = scope.below();
        self.database.run(|connection| {
            connection.execute_batch(
                "DROP TABLE IF EXISTS temp.due;
                 CREATE TEMP TABLE due (number INTEGER PRIMARY KEY, due_path BLOB NOT NULL,
                     due_size INTEGER NOT NULL, is_again INTEGER NOT NULL,
                     was_unreachable INTEGER NOT NULL);",
            )?;
            let values = params![scope.as_bytes(), start, end, until_s, now_s];
            connection.execute(&fill, values)?;
            // A sum as a floating number cannot overflow; a size may be anything
            // in a row that fails its seal.
            let due = "SELECT count(*), total(due_size) FROM temp.due";
            let (files_due, bytes) = connection
                .query_row(due, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, f64>(1)?)))?;
            let recorded = format!("SELECT total(size) FROM record WHERE {files}");
            let values = params![scope.as_bytes(), start, end];
            let recorded: f64 = connection.query_row(&recorded, values, |row| row.get(0))?;
            Ok(DueTotals {
                files: files_due.cast_unsigned(),
                bytes: bytes as u64,
                recorded_bytes: recorded as u64,
            })
        })
    }

    /// Returns the next files that are due, at most [`PAGE_ROWS`].
    pub fn page(&self, after: i64) -> Result<Vec<DueFile>> {
        let sql = format!(
            "SELECT {}, number, is_again, was_unreachable
             FROM temp.due CROSS JOIN record ON path = due_path
             WHERE number > ?1 ORDER BY number LIMIT {PAGE_ROWS}",
            row::columns!()
        );
        let mut sealer = RowChecksum::new();
        let mut page = self.database.run(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let (mut rows, mut page) = (statement.query([after])?, Vec::new());
            while let Some(sql_row) = rows.next()? {
                page.push(DueFile {
                    number: sql_row.get("number")?,
                    is_again: sql_row.get("is_again")?,
                    was_unreachable: sql_row.get("was_unreachable")?,
                    bytes_max: u64::MAX,
                    stored: row::read(sql_row, &mut sealer)?.0,
                });
            }
            Ok(page)
        })?;
        for due in &mut page {
            self.verified_paths.add_to(&mut due.stored);
            MetadataTable::new(self.database, self.has_metadata).add_to(&mut due.stored)?;
            Findings::new(self.database).add_to(std::slice::from_mut(&mut due.stored))?;
        }
        Ok(page)
    }
}
