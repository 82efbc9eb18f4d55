//! `status`: names, sizes and dates beside the record. No data is read and
//! nothing is written.

use super::Options;
use super::open_root::{
    check_signature, detect_offline, offline_outcome, open_root, plan, require_parts,
    require_trusted_record, require_unlocked,
};
use crate::catalog::{Catalog, RootLocation};
use crate::model::{Outcome, ScanMonitor};
use crate::scan::{Purpose, scan};
use fsure_core::{Error, Result};

/// Compares the tree with its record by stat alone.
pub fn status(
    place: &RootLocation,
    options: &Options,
    monitor: &dyn ScanMonitor,
) -> Result<Outcome> {
    require_trusted_record(place, options)?;
    let open = open_root(place)?;
    warn_if_in_use(place, monitor);
    let mut catalog = Catalog::open(&place.catalog, None)?;
    if let Some(offline) = detect_offline(place, &open, &catalog, options.allowed)? {
        return Ok(offline_outcome(offline, options, "status"));
    }
    let (place, unknown_paths) = &require_parts(place, &open, &mut catalog, monitor)?;
    let mut plan = plan(place, &open, &catalog, options, Purpose::Status, false)?;
    let trusted = check_signature(place, &open, &mut catalog, options)?;
    plan.binds_claims = trusted.is_some();
    let mut outcome = scan(&plan, &mut catalog, monitor)?;
    outcome.unknown_paths = *unknown_paths;
    if let Some(trusted) = trusted {
        trusted.conclude_over(&plan.scopes, &mut outcome, &mut catalog)?;
    }
    Ok(outcome)
}

/// Warns if another process is writing the record: what it has not recorded yet counts as new or
/// changed.
fn warn_if_in_use(place: &RootLocation, monitor: &dyn ScanMonitor) {
    if let Err(error @ Error::RecordInUse { .. }) = require_unlocked(&place.catalog, monitor) {
        monitor.warn(&format!("{error}: this is how it stands so far"));
    }
}
