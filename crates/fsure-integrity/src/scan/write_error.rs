//! Writes behind a scan that may fail, on a full disk for one, while its report is to be given.

use crate::catalog::Catalog;
use crate::model::StopReason;
use fsure_core::{Error, Result};

/// Takes back what cannot be written, and returns it as the reason why the run ends: its report
/// is not lost by it. Passes any other error on.
pub(super) fn survive_write_error(
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
