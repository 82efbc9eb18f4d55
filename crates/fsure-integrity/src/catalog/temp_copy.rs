//! A copy of a catalog that is gone with its process: what a tree would be
//! recorded as, without a change to its record. SQLite keeps it in a file without a name, so that
//! nothing is left behind by a kill and nothing is written into the tree.

use std::io;
use std::path::Path;

use fsure_os::path::{exists, with_suffix};
use fsure_os::scratch_dir::Scratch;
use fsure_os::unnamed_file;
use fsure_os::user_file::{create_new, open_own};
use rusqlite::OpenFlags;
use rusqlite::backup::Backup;

use super::schema;
use super::sqlite_error::{connect, map_sqlite_error, not_written};
use super::store::{Catalog, LOCK_POLL_INTERVAL};
use super::table_total::TableTotals;
use fsure_core::{IoContext as _, Result};

/// SQLite's name for a database without a name.
const NAMELESS: &str = "";

/// Makes a catalog of which nothing stays, with the rows of another but for the
/// block values.
pub fn temporary_copy(of: &Path) -> Result<Catalog> {
    // Refuses what is not a catalog, and a catalog of another version.
    drop(Catalog::open(of, None)?);
    let connection = connect(Path::new(NAMELESS), OpenFlags::SQLITE_OPEN_CREATE)?;
    let name = fsure_os::path::bytes(of);
    let copy = || {
        schema::create(&connection)?;
        connection.execute("ATTACH CAST(?1 AS TEXT) AS whole", [&*name])?;
        for table in ["own_change", "finding"] {
            // An older catalog has no such table.
            if schema::has_table(&connection, "whole", table)? {
                let sql = format!("INSERT INTO {table} SELECT * FROM whole.{table}");
                connection.execute_batch(&sql)?;
            }
        }
        TableTotals::count(&connection)?.store(&connection)?;
        connection.execute_batch(
            "BEGIN;
             INSERT INTO root SELECT * FROM whole.root;
             INSERT INTO file_system SELECT * FROM whole.file_system;
             INSERT INTO record SELECT * FROM whole.record;
             COMMIT;
             DETACH whole;",
        )
    };
    copy().map_err(|error| map_sqlite_error(of, &error))?;
    Catalog::on(connection, Path::new(NAMELESS), None)
}

/// Opens a catalog to read it, for a run that must not change it: to open one itself would take
/// back what a run that was cut off has left half written.
pub fn open_unchanged(of: &Path) -> Result<Catalog> {
    match exists(&with_suffix(of, JOURNAL)) {
        true => rehearsal(of),
        false => Catalog::open(of, None),
    }
}

/// Makes a copy of a whole catalog of which nothing stays, to be written in its place: what
/// refuses to open the catalog for writing refuses this.
pub fn rehearsal(of: &Path) -> Result<Catalog> {
    if !exists(&with_suffix(of, JOURNAL)) {
        return copy_of(of, of);
    }
    let folder = unnamed_file::folder();
    let scratch =
        Scratch::create(&folder, None).context("make a copy of the record in", &folder)?;
    let copied = scratch.path().join("catalog.db");
    for end in ["", JOURNAL] {
        copy_file(&with_suffix(of, end), &with_suffix(&copied, end))?;
    }
    copy_of(&copied, of)
}

/// The end of the name of the file with which SQLite takes back half a transaction.
const JOURNAL: &str = "-journal";

fn copy_file(from: &Path, to: &Path) -> Result<()> {
    let copy = || io::copy(&mut open_own(from)?, &mut create_new(to)?);
    copy().map(drop).context("make a copy of", from)
}

/// Copies the pages of `file`; errors name the catalog that it is for.
fn copy_of(file: &Path, catalog: &Path) -> Result<Catalog> {
    let mut source = Catalog::open(file, None)?;
    source.name_in_errors(catalog);
    if source.is_read_only() {
        return Err(not_written(catalog, &"it is read-only"));
    }
    let mut connection = connect(Path::new(NAMELESS), OpenFlags::SQLITE_OPEN_CREATE)?;
    source.database().run(|pages| {
        let copying = Backup::new(pages, &mut connection)?;
        copying.run_to_completion(i32::MAX, LOCK_POLL_INTERVAL, None)?;
        drop(copying);
        schema::complete(&connection, true)
    })?;
    let mut copy = Catalog::on(connection, Path::new(NAMELESS), None)?;
    copy.name_in_errors(catalog);
    Ok(copy)
}
