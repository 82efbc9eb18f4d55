//! `scrub`: verifies the files whose last verification is the oldest, as far as a
//! budget goes. It judges recorded files and does not search for others.

use std::time::Duration;

use super::open_root::{
    OpenRoot, check_signature, detect_offline, keep_backup, offline_outcome, open_root, plan,
    require_scope, require_trusted_record, warn_of_other_root,
};
use super::verify::open_catalog;
use super::{Options, nested_place};
use crate::catalog::{Catalog, RootLocation};
use crate::model::{Outcome, ScanMonitor};
use crate::scan::{Budget, Purpose, ScrubRules, scan};
use fsure_core::{RelPath, Result};

/// Options of [`scrub`].
#[derive(Clone, Debug)]
pub struct ScrubOptions {
    /// Options that all commands have in common.
    pub common: Options,
    /// Limit on the work; bytes and percentages apply to each root.
    pub budget: Budget,
    /// Number of roots that share the time, including this one.
    pub roots: u32,
    /// Files that were verified more recently than this are not due.
    pub max_age: Option<Duration>,
    /// True if no file that is due must be left unread.
    pub must_be_complete: bool,
}

/// Verifies what is due, the longest unverified first.
pub fn scrub(
    place: &RootLocation,
    options: &ScrubOptions,
    monitor: &dyn ScanMonitor,
) -> Result<Outcome> {
    let common = &options.common;
    require_trusted_record(place, common)?;
    let open = open_root(place)?;
    let (mut catalog, may_write) = open_catalog(place, common.access, monitor)?;
    if let Some(offline) = detect_offline(place, &open, &catalog, common.allowed)? {
        return Ok(offline_outcome(offline, common, "scrub"));
    }
    let consequence = "it is judged as a copy, by content, size and date";
    warn_of_other_root(&open, &catalog, consequence, monitor);
    if !may_write && options.budget != Budget::All {
        monitor.warn(
            "the dates of verification cannot be saved: the next run with a budget begins with the \
             same files again",
        );
    }
    require_scope(place, &open, &mut catalog)?;
    let mut plan = plan(place, &open, &catalog, common, Purpose::Verify, may_write)?;
    plan.command = "scrub";
    plan.scrub = Some(rules(place, &open, options, &mut catalog)?);
    let trusted = check_signature(place, &open, &mut catalog, common)?;
    let mut outcome = scan(&plan, &mut catalog, monitor)?;
    outcome.is_record_read_only = !may_write;
    if let Some(trusted) = trusted {
        trusted.conclude_again(&mut outcome, &mut catalog)?;
    }
    keep_backup(place, &mut catalog, &common.backup_folders, monitor)?;
    Ok(outcome)
}

/// The rules for this root. Roots below it have their own turns, and time is
/// left for those.
fn rules(
    place: &RootLocation,
    open: &OpenRoot,
    options: &ScrubOptions,
    catalog: &mut Catalog,
) -> Result<ScrubRules> {
    let is_there = |path: &RelPath| {
        path.is_within(&place.scope)
            && nested_place(place, path).is_recorded()
            && open.root.stat(path.as_bytes()).is_ok()
    };
    let nested_roots: Vec<_> = catalog.nested_roots().all()?.into_iter().filter(is_there).collect();
    let below = u32::try_from(nested_roots.len()).unwrap_or(u32::MAX);
    let roots = options.roots.max(1).saturating_add(below);
    let budget = match options.budget {
        Budget::Time(time) => Budget::Time(time / roots),
        other => other,
    };
    let (max_age, must_be_complete) = (options.max_age, options.must_be_complete);
    Ok(ScrubRules { budget, max_age, must_be_complete, nested_roots })
}
