//! `verify`: read everything recorded again, from the medium, and judge it.
//! The record itself is not changed, but for the date at which a content was
//! last seen to be as recorded; where even that cannot be written, as on a
//! read-only medium, it is said and left.

use super::dry_run::open_copy;
use super::open_root::{
    check_signature, detect_offline, keep_backup, lock, offline_outcome, open_root, plan,
    require_parts, require_trusted_record, warn_interrupted_heal, warn_of_other_root,
};
use super::{Options, RecordAccess, sync_sidecars, verify_sidecars};
use crate::catalog::{Catalog, RootLocation, open_unchanged};
use crate::model::{Outcome, ScanMonitor};
use crate::scan::{Purpose, scan};
use fsure_core::{Error, Result, own_record_command};

/// Reads and judges every recorded file.
pub fn verify(
    place: &RootLocation,
    options: &Options,
    monitor: &dyn ScanMonitor,
) -> Result<Outcome> {
    // Sidecars are not signed.
    if !place.is_recorded()
        && options.signed_by.is_none()
        && let Some(outcome) = verify_sidecars::verify(place, options, monitor)?
    {
        return Ok(outcome);
    }
    require_trusted_record(place, options)?;
    let open = open_root(place)?;
    let (mut catalog, may_write) = open_catalog(place, options.access, monitor)?;
    if let Some(offline) = detect_offline(place, &open, &catalog, options.allowed)? {
        return Ok(offline_outcome(offline, options, "verify"));
    }
    let consequence = "it is judged as a copy, by content, size and date";
    warn_of_other_root(&open, &catalog, consequence, monitor);
    let (place, unknown_paths) = &require_parts(place, &open, &mut catalog, monitor)?;
    warn_interrupted_heal(place, &catalog, monitor)?;
    let mut plan = plan(place, &open, &catalog, options, Purpose::Verify, may_write)?;
    let trusted = check_signature(place, &open, &mut catalog, options)?;
    plan.binds_claims = trusted.is_some();
    let mut outcome = scan(&plan, &mut catalog, monitor)?;
    outcome.is_record_read_only = !may_write;
    outcome.unknown_paths = *unknown_paths;
    if let Some(trusted) = trusted {
        trusted.conclude_over(&plan.scopes, &mut outcome, &mut catalog)?;
    }
    if outcome.is_whole() && plan.scopes.is_root() {
        sync_sidecars::look(&open.root, &mut catalog, monitor, &mut outcome)?;
    }
    keep_backup(place, &mut catalog, &options.backup_folders, monitor)?;
    Ok(outcome)
}

pub(super) fn open_catalog(
    place: &RootLocation,
    access: RecordAccess,
    monitor: &dyn ScanMonitor,
) -> Result<(Catalog, bool)> {
    let cannot_write = |why: &str| {
        let own = own_record_command(&place.catalog);
        let own = own.map_or(String::new(), |command| format!("; to make it yours: {command}"));
        let are_not =
            if access.is_dry_run { "would not be saved without -n" } else { "are not saved" };
        monitor.warn(&format!(
            "{} cannot be written ({why}): the dates of verification {are_not}{own}",
            place.catalog.display()
        ));
    };
    if access.is_dry_run {
        return match open_copy(place, access, monitor) {
            Ok(copy) => Ok((copy, true)),
            Err(Error::RecordNotWritten { why, .. }) => {
                cannot_write(&why);
                Ok((open_unchanged(&place.catalog)?, false))
            }
            Err(error) => Err(error),
        };
    }
    let (lock, why) = match lock(&place.catalog, access, monitor) {
        Ok(lock) => (Some(lock), String::new()),
        Err(Error::RecordNotWritten { why, .. }) => (None, why),
        Err(error) => return Err(error),
    };
    let has_lock = lock.is_some();
    let (catalog, why) = match Catalog::open(&place.catalog, lock) {
        // One of an older version is completed where it can be written.
        Err(Error::RecordNotWritten { why, .. }) if has_lock => {
            (Catalog::open(&place.catalog, None)?, Some(why))
        }
        opened => (opened?, (!has_lock).then_some(why)),
    };
    let is_read_only = || catalog.is_read_only().then(|| "it is read-only".to_owned());
    let why = why.or_else(is_read_only);
    let may_write = why.is_none();
    if let Some(why) = why {
        cannot_write(&why);
    }
    Ok((catalog, may_write))
}
