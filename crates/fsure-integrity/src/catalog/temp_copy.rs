//! A copy of a catalog that is gone with its process: what a tree would be
//! recorded as, without a change to its record. SQLite keeps it in a file without a name, so that
//! nothing is left behind by a kill and nothing is written into the tree.

use std::path::Path;

use rusqlite::OpenFlags;

use super::schema;
use super::sqlite_error::{connect, map_sqlite_error};
use super::store::Catalog;
use super::table_total::TableTotals;
use fsure_core::Result;

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
