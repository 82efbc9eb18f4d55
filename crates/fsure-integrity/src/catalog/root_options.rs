//! Recording options of a root beyond the default, kept from one `update` to the next: a
//! few rows, read when the catalog is opened.

use rusqlite::{Connection, params};

use super::database::Database;
use super::row_checksum::RowChecksum;
use super::table_total::CountedTable;
use crate::model::{MetadataFields, SidecarKind, SidecarKinds};
use fsure_core::Result;

const META: &str = "meta";
const LAYOUT: &str = "layout";
const LEAVING: &str = "leaving";

/// Recording options of a root beyond the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RootOptions {
    /// Metadata that is recorded.
    pub meta: MetadataFields,
    /// Layout, which determines the carriers of the copies of the records.
    pub layout: SidecarKind,
    /// Layouts before, as long as not all of their carriers are taken away.
    pub leaving: SidecarKinds,
}

impl RootOptions {
    /// Returns the options that the record claims to keep. A layout that is being left is
    /// not among them: it ends when its last carrier is removed.
    pub(super) fn claims(self) -> (MetadataFields, SidecarKind) {
        (self.meta, self.layout)
    }

    /// Each as it is stored; `None` for what needs no row.
    fn rows(self) -> [(&'static str, Option<String>); 3] {
        let layout = (self.layout != SidecarKind::Tree).then(|| self.layout.name().to_owned());
        let leaving: Vec<_> = self.leaving.iter().map(SidecarKind::name).collect();
        [
            (META, (!self.meta.is_empty()).then(|| self.meta.to_string())),
            (LAYOUT, layout),
            (LEAVING, (!leaving.is_empty()).then(|| leaving.join(","))),
        ]
    }

    /// Applies a stored option. Returns false if its name or its value makes no sense.
    fn take(&mut self, name: &str, value: &str) -> bool {
        let taken = match name {
            META => MetadataFields::from_names(value).map(|aspects| self.meta = aspects),
            LAYOUT => SidecarKind::from_name(value).map(|layout| self.layout = layout),
            LEAVING => SidecarKinds::from_names(value).map(|layouts| self.leaving = layouts),
            _ => None,
        };
        taken.is_some()
    }
}

/// Reads the options; `None` if a row fails its seal or makes no sense.
pub(super) fn read(
    connection: &Connection,
    sealer: &mut RowChecksum,
) -> rusqlite::Result<Option<RootOptions>> {
    let mut statement = connection.prepare("SELECT name, value, seal FROM choice")?;
    let mut rows = statement.query([])?;
    let mut options = RootOptions::default();
    while let Some(row) = rows.next()? {
        let (name, value): (String, String) = (row.get(0)?, row.get(1)?);
        let is_sound = row.get::<_, i64>(2)?.cast_unsigned() == seal(&name, &value, sealer);
        if !is_sound || !options.take(&name, &value) {
            return Ok(None);
        }
    }
    Ok(Some(options))
}

fn seal(name: &str, value: &str, sealer: &mut RowChecksum) -> u64 {
    sealer.bytes(Some(name.as_bytes())).bytes(Some(value.as_bytes())).seal()
}

/// Stores the options in the place of those there are, in the open transaction. Metadata
/// that is no longer requested is deleted: it would become outdated unnoticed.
pub(super) fn store(database: &mut Database, options: RootOptions) -> Result<()> {
    let mut sealer = RowChecksum::new();
    database.delete_counted(CountedTable::Choice, "DELETE FROM choice", [])?;
    for (name, value) in options.rows() {
        let Some(value) = value else { continue };
        let seal = seal(name, &value, &mut sealer).cast_signed();
        let sql = "INSERT INTO choice VALUES (?1, ?2, ?3)";
        database.insert_counted(CountedTable::Choice, sql, params![name, value, seal])?;
    }
    if options.meta.is_empty() {
        database.delete_counted(CountedTable::Metadata, "DELETE FROM metadata", [])?;
    }
    Ok(())
}
