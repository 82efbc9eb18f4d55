//! The check of a whole catalog: before the first write to it, and at the end of what only reads.

use super::location::RootLocation;
use super::root_row::RecordTotals;
use super::row::StoredRow;
use super::store::Catalog;
use crate::model::Entry;
use fsure_core::{Error, RelPath, Result};

/// Number of paths that an audit samples; they are used to check that the root is present.
const SAMPLES: u64 = 1_000;

/// A file that stands for others of its tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledFile {
    /// Its path below the root.
    pub path: RelPath,
    /// Its stat, as recorded.
    pub entry: Entry,
}

/// Result of an audit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Rows that fail their seal.
    pub bad_rows: Vec<RelPath>,
    /// Fault of the rows taken together, in words; `None` if there is none.
    pub objection: Option<String>,
    /// True if rows are missing, or if there are more rows than were written.
    pub rows_are_lost: bool,
    /// Up to about a thousand live files, evenly spread.
    pub sample: Vec<SampledFile>,
}

impl Audit {
    /// The fault of rows that fail their seal.
    pub const BAD_ROWS: &'static str = "rows of it fail their own seal";

    /// Checks the catalog as [`Audit::of`] does, but only its pages if the rows that were fetched
    /// page by page were all of it. A look-up by path does not meet a row whose path has lost its
    /// type or its place in the tree of pages; every reader has to end with this check, or it takes
    /// such a row for absent.
    pub fn unless_shown(catalog: &mut Catalog) -> Result<Self> {
        if !catalog.has_shown_all() {
            return Self::of(catalog);
        }
        require_sound_pages(catalog)?;
        Ok(Self::default())
    }

    /// Checks every seal, the number of rows and the root digest. It is an error if pages of the
    /// database are damaged.
    pub fn of(catalog: &mut Catalog) -> Result<Self> {
        require_sound_pages(catalog)?;
        Self::of_rows(catalog)
    }

    /// Checks every seal, the number of rows and the root digest.
    pub fn of_rows(catalog: &mut Catalog) -> Result<Self> {
        if catalog.is_writing() {
            return audit_rows(catalog);
        }
        // Totals and rows of one moment: another process may be recording.
        catalog.pin_snapshot()?;
        let root = catalog.read_root_again();
        let audit = root.and_then(|()| audit_rows(catalog));
        catalog.release();
        audit
    }

    /// Returns true if the audit found no fault.
    pub fn is_clean(&self) -> bool {
        self.bad_rows.is_empty() && self.objection.is_none()
    }

    /// Returns the fault in words; `None` if there is none.
    pub fn fault(&self) -> Option<String> {
        let bad_rows = || Self::BAD_ROWS.to_owned();
        (!self.is_clean()).then(|| self.objection.clone().unwrap_or_else(bad_rows))
    }

    /// Number of faults for a count of bad records: the rows that fail their
    /// seal, or one for rows that are lost or fit no total.
    pub fn faults(&self) -> u64 {
        (self.bad_rows.len() as u64).max(u64::from(self.objection.is_some()))
    }

    /// Returns an error if the audit found a fault: nothing is then to be built on the record of
    /// this place. `undone` says what was left undone.
    pub fn require_clean(&self, place: &RootLocation, undone: &str) -> Result<()> {
        let Some(why) = self.fault() else { return Ok(()) };
        Err(Error::RecordUntrusted {
            catalog: place.catalog.clone(),
            why,
            hint: format!("{undone}; to see what is wrong with it: {}", place.command("verify")),
            is_recoverable: false,
        })
    }
}

/// Checks the database's pages, and returns their fault in words. A damaged list of free pages, or
/// of free space within a page, has a write overwrite rows that are sound; and a damaged page on
/// which no row lies is met by no reader of rows. 0.1 s for 154,000 rows.
pub fn check_pages(catalog: &Catalog) -> Result<Option<String>> {
    let sql = "PRAGMA quick_check(1)";
    let found: String =
        catalog.database().run(|connection| connection.query_row(sql, [], |row| row.get(0)))?;
    // SQLite names the database in a line of its own; the last line has the fault.
    let fault = found.lines().last().unwrap_or(&found);
    Ok((found != "ok").then(|| format!("its pages are damaged ({fault})")))
}

fn require_sound_pages(catalog: &Catalog) -> Result<()> {
    check_pages(catalog)?.map_or(Ok(()), |why| Err(catalog.database().untrusted(why)))
}

fn audit_rows(catalog: &mut Catalog) -> Result<Audit> {
    let step = (catalog.files() / SAMPLES).max(1);
    let mut audit = Audit::default();
    let counted =
        RecordTotals::count(catalog.database(), &mut |stored, files_before| match stored {
            StoredRow::Sound(row) if !catalog.knows_file_system(row.record.entry.file_system) => {
                audit.rows_are_lost = true;
                audit.objection = Some("rows refer to a file system that it has lost".to_owned());
            }
            StoredRow::Sound(row) if row.is_live_file() && files_before % step == 0 => {
                let (path, entry) = (row.record.path.clone(), row.record.entry.clone());
                audit.sample.push(SampledFile { path, entry });
            }
            StoredRow::Sound(_) => {}
            StoredRow::Bad(path) => audit.bad_rows.push(path.clone()),
        })?;
    let recorded = catalog.totals();
    if counted.rows != recorded.rows {
        audit.rows_are_lost = true;
        audit.objection =
            Some(format!("it has {} rows where {} were written", counted.rows, recorded.rows));
    } else if counted.root_digest != recorded.root_digest {
        audit.objection = Some("its rows do not match its root digest".to_owned());
    }
    if audit.objection.is_none()
        && let Some((why, mut bad)) = catalog.metadata().audit()?
    {
        audit.rows_are_lost |= bad.is_empty();
        audit.bad_rows.append(&mut bad);
        audit.objection = Some(why);
    }
    Ok(audit)
}
