//! The record of a dry run: a copy that is gone with the process. The run works on it as it
//! would on the record, so that it does the same and says the same; what refuses the run
//! refuses the dry run.

use super::open_root::{OpenRoot, lock, root_identity, wait};
use super::options::RecordAccess;
use crate::catalog::{Catalog, RootLocation, RootSettings, rehearsal};
use crate::model::ScanMonitor;
use fsure_core::{Error, Result};

/// Opens the record of a place to write it: for a dry run, a copy of it.
pub(super) fn open_to_write(
    place: &RootLocation,
    access: RecordAccess,
    monitor: &dyn ScanMonitor,
) -> Result<Catalog> {
    if !access.is_dry_run {
        let lock = lock(&place.catalog, access, monitor)?;
        return Catalog::open(&place.catalog, Some(lock));
    }
    open_copy(place, access, monitor).map_err(of_dry_run)
}

/// Opens a copy of the record of a place. Fails as the run would that locks the record.
pub(super) fn open_copy(
    place: &RootLocation,
    access: RecordAccess,
    monitor: &dyn ScanMonitor,
) -> Result<Catalog> {
    await_unlocked(place, access, monitor)?;
    rehearsal(&place.catalog)
}

/// The new record of a dry run over a place that has none.
pub(super) fn new_record(
    place: &RootLocation,
    open: &OpenRoot,
    settings: RootSettings,
    access: RecordAccess,
    monitor: &dyn ScanMonitor,
) -> Result<Catalog> {
    await_unlocked(place, access, monitor).map_err(of_dry_run)?;
    Catalog::temporary(&place.catalog, settings, root_identity(place, open, true))
}

/// Waits as a run that locks the record would, and fails as it would.
fn await_unlocked(
    place: &RootLocation,
    access: RecordAccess,
    monitor: &dyn ScanMonitor,
) -> Result<()> {
    let file = &place.catalog;
    Catalog::refuse_foreign(file)?;
    Catalog::await_unlocked(file, wait(file, access, monitor))
}

/// Returns the error of a run that could not write the record as that of its dry run, which writes
/// none.
fn of_dry_run(error: Error) -> Error {
    let Error::RecordNotWritten { ref catalog, ref why, ref hint } = error else { return error };
    Error::Reported {
        message: format!(
            "this is a dry run, and without -n the run could not write the record {}: {why}",
            catalog.display()
        ),
        hint: Some(hint.clone()),
        code: error.exit_code(),
    }
}
