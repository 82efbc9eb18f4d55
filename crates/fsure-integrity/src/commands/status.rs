//! `status`: names, sizes and dates beside the record. No data is read and
//! nothing is written.

use super::Options;
use super::open_root::{
    check_signature, detect_offline, offline_outcome, open_root, plan, require_scope,
    require_trusted_record,
};
use crate::catalog::{Catalog, RootLocation};
use crate::model::{Outcome, ScanMonitor};
use crate::scan::{Purpose, scan};
use fsure_core::Result;

/// Compares the tree with its record by stat alone.
pub fn status(
    place: &RootLocation,
    options: &Options,
    monitor: &dyn ScanMonitor,
) -> Result<Outcome> {
    require_trusted_record(place, options)?;
    let open = open_root(place)?;
    let mut catalog = Catalog::open(&place.catalog, None)?;
    if let Some(offline) = detect_offline(place, &open, &catalog)?.filter(|_| !options.force) {
        return Ok(offline_outcome(offline, false));
    }
    require_scope(place, &open, &mut catalog)?;
    let mut plan = plan(place, &open, &catalog, options, Purpose::Status, false)?;
    let trusted = check_signature(place, &open, &mut catalog, options)?;
    plan.binds_claims = trusted.is_some();
    let mut outcome = scan(&plan, &mut catalog, monitor)?;
    if let Some(trusted) = trusted {
        trusted.conclude(&mut outcome)?;
    }
    Ok(outcome)
}
