//! The end of a run whose record cannot be written, on a full disk for one: its report is given.

use crate::catalog::Catalog;
use crate::model::StopReason;
use fsure_core::{Error, Result};

/// Takes back what cannot be written, and returns it as the reason why the run ends: its report
/// is not lost by it. Passes any other error on.
pub(crate) fn survive_write_error(
    written: Result<()>,
    catalog: &mut Catalog,
) -> Result<Option<StopReason>> {
    match written {
        Ok(()) => Ok(None),
        Err(Error::RecordNotWritten { catalog: file, why, hint }) => {
            catalog.rollback();
            Ok(Some(StopReason::RecordFailed(format!("{}: {why}; {hint}", file.display()))))
        }
        Err(error) => Err(error),
    }
}
