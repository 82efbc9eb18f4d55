//! `update`: record what is new or has changed. What the record already says
//! of a file is overwritten only where the file's date explains the change.

use std::time::{SystemTime, UNIX_EPOCH};

use fsure_os::path as os_path;

use super::Options;
use super::heal::refresh;
use super::opening::{
    OpenRoot, is_empty, is_recorded_root, lock, offline, offline_outcome, open_root, plan,
    refuse_half_healed, require_record, require_scope, tell_cut_off,
};
use crate::catalog::{Catalog, OWN_FOLDER, Place, Settings};
use crate::scan::{Accept, Purpose, UpdateRules, scan};
use crate::words::{Algorithm, AlgorithmSet, Error, Monitor, Outcome, Parity, Result};

/// What `update` is told.
#[derive(Clone, Debug, Default)]
pub struct UpdateOptions {
    /// What all jobs have in common.
    pub common: Options,
    /// Read files whose size, dates and inode are as recorded, too.
    pub full: bool,
    /// What to compute from now on; `None` for what the record was made with,
    /// at first BLAKE3.
    pub digests: Option<AlgorithmSet>,
    /// Do nothing but give `digests` to files that lack them and are as
    /// recorded, this time only.
    pub only_completes: bool,
    /// Findings to record although they bury evidence.
    pub accept: Accept,
}

/// Brings the record up to date with the tree.
pub fn update(place: &Place, options: &UpdateOptions, monitor: &dyn Monitor) -> Result<Outcome> {
    if options.only_completes {
        require_record(place)?;
    }
    let open = open_root(place)?;
    let mut catalog = open_or_create(place, &open, options, monitor)?;
    refuse_half_healed(place)?;
    tell_cut_off(place, &catalog, monitor)?;
    if catalog.is_read_only() {
        return Err(Error::RecordNotWritten {
            catalog: place.catalog.clone(),
            why: "it is read-only".to_owned(),
            hint: "'--catalog FILE' keeps the record in another place",
        });
    }
    let common = &options.common;
    if let Some(offline) = offline(place, &open, &catalog)?.filter(|_| !common.force) {
        return Ok(offline_outcome(offline, true));
    }
    require_scope(place, &open, &mut catalog)?;
    if !is_recorded_root(&open, &catalog) && !options.only_completes {
        monitor.warn(
            "this is not the file system that was recorded: it is taken for a copy, and \
             every file is read",
        );
        catalog.bind_root(open.volume.clone(), open.inode)?;
    }
    let settings = settings(Some(catalog.settings()), options);
    if !options.only_completes {
        catalog.set_settings(settings)?;
    }
    let rules = UpdateRules {
        full: options.full,
        digests: settings.digests,
        only_completes: options.only_completes,
        accept: options.accept.clone(),
    };
    let plan = plan(place, &open, &catalog, common, Purpose::Update(rules), true)?;
    let mut outcome = scan(&plan, &mut catalog, monitor)?;
    let is_recorded = outcome.stopped.is_none() && outcome.offline.is_none();
    if is_recorded && outcome.record_untrusted.is_none() {
        outcome.parity = keep_parity(place, &open, &mut catalog, monitor)?;
    }
    Ok(outcome)
}

/// Brings recovery data up to date. The record is safe by then: what fails here
/// is told, and is no reason to call it lost.
fn keep_parity(
    place: &Place,
    open: &OpenRoot,
    catalog: &mut Catalog,
    monitor: &dyn Monitor,
) -> Result<Option<Parity>> {
    match refresh(place, &open.root, catalog, monitor) {
        Ok(kept) => Ok(kept.map(Parity::Kept)),
        Err(error @ (Error::Io { .. } | Error::Interrupted(_))) => {
            Ok(Some(Parity::Stale(error.to_string())))
        }
        Err(error) => Err(error),
    }
}

fn settings(recorded: Option<Settings>, options: &UpdateOptions) -> Settings {
    let first =
        Settings { digests: AlgorithmSet::of(&[Algorithm::Blake3]), cross_file_systems: false };
    let recorded = recorded.unwrap_or(first);
    Settings {
        digests: options.digests.unwrap_or(recorded.digests),
        cross_file_systems: options
            .common
            .cross_file_systems
            .unwrap_or(recorded.cross_file_systems),
    }
}

fn open_or_create(
    place: &Place,
    open: &OpenRoot,
    options: &UpdateOptions,
    monitor: &dyn Monitor,
) -> Result<Catalog> {
    if !place.is_recorded() && !options.common.force && is_empty(place, open)? {
        return Err(Error::EmptyRoot { path: place.root.clone() });
    }
    let own_folder = place.root.join(OWN_FOLDER);
    let makes_folder = place.is_inside() && !os_path::exists(&own_folder);
    if makes_folder {
        os_path::make_folder(&own_folder).map_err(|error| Error::RecordNotWritten {
            catalog: place.catalog.clone(),
            why: error.to_string(),
            hint: "'--catalog FILE' keeps the record in another place",
        })?;
    }
    let lock = lock(&place.catalog, monitor).inspect_err(|_| {
        if makes_folder {
            os_path::remove(&place.catalog, true);
        }
    })?;
    if !place.is_recorded() {
        create(place, open, options).inspect_err(|_| {
            // The lock is still held: nobody else is left with a file that
            // has no name.
            os_path::remove(&Catalog::lock_file(&place.catalog), makes_folder);
        })?;
    }
    Catalog::open(&place.catalog, Some(lock))
}

fn create(place: &Place, open: &OpenRoot, options: &UpdateOptions) -> Result<()> {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let root = (open.volume.clone(), open.inode);
    Catalog::create(&place.catalog, settings(None, options), root, now_s.cast_signed())
}
