//! `update`: records what is new or has changed. An existing record of a file is
//! overwritten only if the file's date explains the change.

use std::time::Duration;

use fsure_os::file_attributes::{HAS_ACCESS_LISTS, HAS_ATTRIBUTES, HAS_OWNERS};
use fsure_os::path as os_path;

use super::heal::refresh;
use super::open_root::{
    OpenRoot, detect_offline, is_empty, is_recorded_root, keep_backup, lock, make_own_folder,
    offline_outcome, open_root, plan, reject_interrupted_heal, require_parts, require_record,
    root_identity, warn_interrupted_heal, warn_of_other_root, warn_of_unknown,
};
use super::sync_sidecars::{self, SidecarRules};
use super::{Options, dry_run, verify_sidecars};
use crate::catalog::{Catalog, RootLocation, RootOptions, RootSettings, refuse_irregular_parity};
use crate::model::{
    MetadataField, MetadataFields, Outcome, ParityUpdate, ScanMonitor, SidecarKind,
};
use crate::scan::{Accept, Forget, Purpose, TOMBSTONE_AGE, UpdateRules, scan};
use fsure_core::{Algorithm, AlgorithmSet, Error, Result};

/// Options of [`update`].
#[derive(Clone, Debug, Default)]
pub struct UpdateOptions {
    /// Options that all commands have in common.
    pub common: Options,
    /// Read files whose size, dates and inode are as recorded, too.
    pub full: bool,
    /// Digests to compute from now on; `None` for those of the record. A new record has
    /// `first_digests`, by default BLAKE3.
    pub digests: Option<AlgorithmSet>,
    /// Digests to compute for a new record, unless `digests` is set.
    pub first_digests: Option<AlgorithmSet>,
    /// Do nothing but give `digests` to files that lack them and are as
    /// recorded, this time only.
    pub only_completes: bool,
    /// Metadata to record from now on; `None` for the choice of the last run, at first no
    /// metadata.
    pub meta: Option<MetadataFields>,
    /// Layout, which determines the carriers of the record beside the data from now on;
    /// `None` for the choice of the last run.
    pub layout: Option<SidecarKind>,
    /// Findings to record although they bury evidence.
    pub accept: Accept,
    /// Drop the tombstones of at least this age; `None` for those of a year, with
    /// the next change.
    pub forget: Option<Duration>,
}

/// Brings the record up to date with the tree.
pub fn update(
    place: &RootLocation,
    options: &UpdateOptions,
    monitor: &dyn ScanMonitor,
) -> Result<Outcome> {
    reject_unsupported_options(options)?;
    if options.only_completes {
        require_record(place)?;
    }
    let open = open_root(place)?;
    refuse_irregular_parity(&place.catalog)?;
    let is_made = !place.is_recorded();
    let mut catalog = open_or_create(place, &open, options, monitor)?;
    reject_interrupted_heal(place)?;
    warn_interrupted_heal(place, &catalog, monitor)?;
    if catalog.is_read_only() {
        return Err(Error::record_not_writable(&place.catalog, &"it is read-only"));
    }
    let common = &options.common;
    if let Some(offline) = detect_offline(place, &open, &catalog, common.allowed)? {
        return Ok(offline_outcome(offline, common, "update"));
    }
    let (place, mut unknown_paths) = require_parts(place, &open, &mut catalog, monitor)?;
    let place = &place;
    if let Accept::Within(accepted) = &options.accept {
        unknown_paths += warn_of_unknown(accepted, place, &open, &mut catalog, monitor)?;
    }
    let settings = apply_choices(place, &open, &mut catalog, options, monitor)?;
    let rules = UpdateRules {
        full: options.full,
        digests: settings.digests,
        only_completes: options.only_completes,
        accept: options.accept.clone(),
        forget: match options.forget {
            _ if options.only_completes => Forget::Nothing,
            Some(age) => Forget::Now(age),
            None => Forget::WithChanges(TOMBSTONE_AGE),
        },
        only_sizes: None,
    };
    let plan = plan(place, &open, &catalog, common, Purpose::Update(rules), true)?;
    if catalog.is_empty() {
        let adopted = verify_sidecars::adopt(place, &open, &plan.walk, &mut catalog, monitor);
        if let Err(error) = adopted {
            drop(catalog);
            if is_made && !common.access.is_dry_run {
                remove_new_catalog(place);
            }
            return Err(error);
        }
    }
    let started_ns = common.clock.now_ns();
    let mut outcome = scan(&plan, &mut catalog, monitor)?;
    outcome.unknown_paths = unknown_paths;
    if !common.exclude.is_empty() && outcome.left_out_once == 0 && outcome.is_whole() {
        monitor.warn(
            "no name fits the patterns of the command line: nothing was left out. If the shell put a \
             name in place of a pattern, put the pattern in quotes, as in --exclude '*.tmp'",
        );
    }
    outcome.is_first = is_made && !options.only_completes;
    if outcome.is_whole() && !common.access.is_dry_run {
        outcome.parity = keep_parity(place, &open, &mut catalog, monitor)?;
    }
    if outcome.is_whole() && !options.only_completes {
        let rules = SidecarRules {
            accept: &options.accept,
            started_ns,
            is_dry_run: common.access.is_dry_run,
        };
        sync_sidecars::bring_in_line(&open.root, &mut catalog, rules, monitor, &mut outcome)?;
    }
    keep_backup(place, &mut catalog, &common.backup_folders, monitor)?;
    Ok(outcome)
}

/// Records which root this is and what it keeps to from now on. Returns its settings.
fn apply_choices(
    place: &RootLocation,
    open: &OpenRoot,
    catalog: &mut Catalog,
    options: &UpdateOptions,
    monitor: &dyn ScanMonitor,
) -> Result<RootSettings> {
    if !is_recorded_root(open, catalog) && !options.only_completes {
        let consequence = "it is treated as a copy, and every file is read";
        warn_of_other_root(open, catalog, consequence, monitor);
        let (volume, inode) = root_identity(place, open, options.common.access.is_dry_run);
        catalog.bind_root(volume, inode)?;
    }
    let settings = settings(Some(catalog.settings()), options);
    if !options.only_completes {
        catalog.set_settings(settings)?;
        let before = catalog.options();
        catalog.set_options(choices(before, options))?;
    }
    Ok(settings)
}

/// Removes a new catalog after a failed run.
fn remove_new_catalog(place: &RootLocation) {
    os_path::remove(&place.catalog, false);
    os_path::remove(&Catalog::lock_file(&place.catalog), place.is_inside());
}

/// Returns the choices that apply from now on. A layout that is given up is remembered
/// until its last carrier is removed.
fn choices(before: RootOptions, options: &UpdateOptions) -> RootOptions {
    let layout = options.layout.unwrap_or(before.layout);
    let leaving = before.leaving.with(before.layout).without(layout);
    RootOptions { meta: options.meta.unwrap_or(before.meta), layout, leaving }
}

/// Refuses options that this system does not support.
fn reject_unsupported_options(options: &UpdateOptions) -> Result<()> {
    let message = if let Some(aspect) = options.meta.and_then(first_unsupported) {
        format!("this system does not report '{}'", aspect.name())
    } else if options.layout.is_some_and(|layout| layout != SidecarKind::Tree) && !HAS_ATTRIBUTES {
        "fsure writes no sidecars on this system".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::Usage { message, hint: None })
}

/// Returns the first of the aspects that this system does not support, if there is one.
fn first_unsupported(aspects: MetadataFields) -> Option<MetadataField> {
    aspects.iter().find(|aspect| match aspect {
        MetadataField::Mode | MetadataField::Owner => !HAS_OWNERS,
        MetadataField::Acl => !HAS_ACCESS_LISTS,
        MetadataField::Xattr => !HAS_ATTRIBUTES,
    })
}

/// Brings recovery data up to date. The record is safe by then: a failure here is
/// reported, and is not a reason to call the record lost.
fn keep_parity(
    place: &RootLocation,
    open: &OpenRoot,
    catalog: &mut Catalog,
    monitor: &dyn ScanMonitor,
) -> Result<Option<ParityUpdate>> {
    match refresh(place, &open.root, catalog, monitor) {
        Ok(kept) => Ok(kept.map(ParityUpdate::Kept)),
        Err(error @ (Error::Io { .. } | Error::Interrupted(_))) => {
            let advice = error.hint().map_or(String::new(), |hint| format!(" ({hint})"));
            Ok(Some(ParityUpdate::Stale(format!("{error}{advice}"))))
        }
        Err(error) => Err(error),
    }
}

fn settings(recorded: Option<RootSettings>, options: &UpdateOptions) -> RootSettings {
    let digests = options.first_digests.unwrap_or(AlgorithmSet::of(&[Algorithm::Blake3]));
    let first = RootSettings { digests, cross_file_systems: false };
    let recorded = recorded.unwrap_or(first);
    RootSettings {
        digests: options.digests.unwrap_or(recorded.digests),
        cross_file_systems: options
            .common
            .cross_file_systems
            .unwrap_or(recorded.cross_file_systems),
    }
}

fn open_or_create(
    place: &RootLocation,
    open: &OpenRoot,
    options: &UpdateOptions,
    monitor: &dyn ScanMonitor,
) -> Result<Catalog> {
    if !place.is_recorded() && !options.common.allowed.empty && is_empty(place, open)? {
        let (path, update) = (place.root.clone(), place.command("update"));
        return Err(Error::EmptyRoot { path, update });
    }
    let access = options.common.access;
    if place.is_recorded() {
        return dry_run::open_to_write(place, access, monitor);
    }
    if access.is_dry_run {
        return dry_run::new_record(place, open, settings(None, options), access, monitor);
    }
    let makes_folder = make_own_folder(place)?;
    let lock = lock(&place.catalog, access, monitor).inspect_err(|_| {
        if makes_folder {
            os_path::remove(&place.catalog, true);
        }
    })?;
    // Another process may have made it meanwhile.
    if !place.is_recorded() {
        create(place, open, options).inspect_err(|_| {
            // The lock is still held: no other process is left with a file that
            // has no name.
            os_path::remove(&Catalog::lock_file(&place.catalog), makes_folder);
        })?;
    }
    Catalog::open(&place.catalog, Some(lock))
}

fn create(place: &RootLocation, open: &OpenRoot, options: &UpdateOptions) -> Result<()> {
    let root = root_identity(place, open, false);
    let now_s = options.common.clock.now_s();
    Catalog::create(&place.catalog, settings(None, options), root, now_s)
}
