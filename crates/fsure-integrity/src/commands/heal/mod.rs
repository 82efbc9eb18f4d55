//! `heal`: put back what is damaged or missing from copies that the record
//! proves. A run judges as `verify` does, and what it finds is then healed as a
//! whole, or left as it was. `docs/heal.md` says by which rules.

mod entry_restorer;
mod finding_filter;
mod heal_recorder;
mod heal_task;
mod healer;
mod journal;
mod objection;
mod parity_pools;
mod parity_rebuild;
mod parity_writer;
mod patcher;
mod plan;
mod progress;
mod proof;
mod protect;
mod replaced_folder;
mod replacement;
mod replica;
mod resume;
mod source_reader;

use std::path::PathBuf;

use super::Options;
use super::dry_run::open_to_write;
use super::open_root::{
    OpenRoot, check_signature, detect_offline, is_surely_the_root, keep_backup, offline_outcome,
    open_root, plan, require_parts, require_trusted_record, require_unlocked, warn_of_other_root,
};
use crate::catalog::{Catalog, RootLocation, StoredRow, open_unchanged, refuse_irregular_parity};
use crate::model::{
    Allowed, EntryKind, Finding, HealSummary, Outcome, ScanMonitor, StopReason, Verification,
};
use crate::scan::{Purpose, scan, survive_write_error};
use finding_filter::FindingFilter;
use fsure_core::{Clock, Error, IoContext as _, RelPath, Result};
use healer::Healer;
use parity_rebuild::Parity;
pub(crate) use protect::refresh;
pub use protect::{ProtectOptions, protect};
pub(crate) use replacement::is_draft_name;
use replica::Replica;
use source_reader::HealFailure;

/// Name of a heal in the history of a record.
const HEAL: &str = "heal";

/// Options of `heal`.
#[derive(Clone, Debug, Default)]
pub struct HealOptions {
    /// Options that all commands share.
    pub common: Options,
    /// Copies to heal from, each corresponding to the path that is healed.
    pub replicas: Vec<PathBuf>,
    /// Heal; otherwise only report what would be done.
    pub does: bool,
    /// Write into the damaged files rather than put whole ones in their place.
    pub in_place: bool,
    /// Do not keep what is replaced. What may be an edit is left alone then.
    pub discards_replaced: bool,
}

/// Judges every recorded file below a place, and heals what can be healed.
pub fn heal(
    place: &RootLocation,
    options: &HealOptions,
    monitor: &dyn ScanMonitor,
) -> Result<Outcome> {
    require_trusted_record(place, &options.common)?;
    let open = open_root(place)?;
    let mut catalog = open_catalog(place, options, monitor)?;
    // The share that is gone means nothing if the root cannot be another one: what is
    // gone is what a heal is for.
    let allowed = match is_surely_the_root(place, &open, &mut catalog)? {
        true => Allowed::ALL,
        false => options.common.allowed,
    };
    if let Some(offline) = detect_offline(place, &open, &catalog, allowed)? {
        let replicas = options.replicas.clone();
        let is_dry_run = !options.does;
        return Ok(Outcome {
            replicas,
            is_dry_run,
            ..offline_outcome(offline, &options.common, HEAL)
        });
    }
    let (place, unknown_paths) = &require_parts(place, &open, &mut catalog, monitor)?;
    // Before anything is written by what it says.
    let trusted = check_signature(place, &open, &mut catalog, &options.common)?;
    let parity = open_parity(place, &open, monitor)?;
    let replicas = open_replicas(place, &open, &mut catalog, options, parity.is_some(), monitor)?;
    warn_of_other_root(&open, &catalog, "it is judged and healed as a copy", monitor);
    let mut healer = Healer::new(place, &open.root, options, (replicas, parity), monitor)?;
    healer.clear_up(&mut catalog)?;
    let purpose = Purpose::Verify;
    let common = Options { allowed, ..options.common.clone() };
    let mut plan = plan(place, &open, &catalog, &common, purpose, options.does)?;
    plan.command = HEAL;
    plan.must_write = options.does;
    let ward = FindingFilter::new(monitor);
    let noted = catalog.history().last_verification()?;
    let mut outcome = scan(&plan, &mut catalog, &ward)?;
    // What the user has allowed: a command that is advised must not allow more.
    outcome.allowed = options.common.allowed;
    outcome.unknown_paths = *unknown_paths;
    let may_go_on = outcome.offline.is_none()
        && outcome.stopped.is_none()
        && outcome.record_untrusted.is_none();
    let findings = if may_go_on { ward.findings() } else { Vec::new() };
    outcome.stopped = heal_all(&mut healer, &mut catalog, &findings, outcome.stopped.take())?;
    let (mut summary, healed_paths) = healer.finish();
    summary.is_unfinished = fsure_os::path::exists(&Catalog::journal_file(&place.catalog));
    outcome.replicas.clone_from(&options.replicas);
    let HealSummary { healed, .. } = *outcome.healing.insert(summary);
    if healed.total() > 0 {
        let is_healed = |finding: &Finding| healed_paths.contains(&finding.path);
        outcome.grave.retain(|finding| !is_healed(finding));
        outcome.to_accept.verdicts.retain(|_, path| !healed_paths.contains(path));
        outcome.to_accept.known_damage.take_if(|path| healed_paths.contains(path));
        for finding in findings.iter().filter(|finding| is_healed(finding)) {
            outcome.forget_known_damage(finding);
        }
        outcome.grave.iter().for_each(|finding| outcome.to_accept.add(finding));
    }
    if options.does && healed.total() > 0 {
        let noted = note_healed(&mut catalog, noted, &outcome);
        outcome.stopped = survive_write_error(noted, &mut catalog)?.or(outcome.stopped.take());
    }
    if let Some(trusted) = trusted.filter(|_| !catalog.has_changed_claims()) {
        trusted.conclude_again(&mut outcome, &mut catalog)?;
    }
    keep_backup(place, &mut catalog, &options.common.backup_folders, monitor)?;
    Ok(outcome)
}

/// Notes in the history the outcome of the heal, and not only what it found. A heal
/// that is killed has left only the latter.
fn note_healed(catalog: &mut Catalog, noted: i64, outcome: &Outcome) -> Result<()> {
    if outcome.stopped.is_some() {
        return Ok(());
    }
    let ended = Verification {
        at_s: Clock::default().now_s(),
        command: HEAL.to_owned(),
        generation: catalog.history().last_generation()?,
        files: outcome.hashed,
        bytes: outcome.bytes_judged,
        exit_code: outcome.exit_code().number(),
    };
    catalog.history_mut().end_verification(noted, &ended)?;
    catalog.commit()
}

/// Heals one after the other. Returns the reason if the run ends early.
fn heal_all(
    healer: &mut Healer<'_>,
    catalog: &mut Catalog,
    findings: &[Finding],
    mut stopped: Option<StopReason>,
) -> Result<Option<StopReason>> {
    healer.expect(findings);
    for finding in findings {
        match healer.heal_finding(catalog, finding) {
            Ok(()) => {}
            Err(HealFailure::Stopped(code)) => stopped = Some(StopReason::Interrupted(code)),
            Err(HealFailure::Fatal(error)) => {
                stopped = survive_write_error(Err(error), catalog)?;
            }
            Err(HealFailure::Unhealed(why)) => return Err(Error::Internal(why)),
        }
        if stopped.is_some() {
            break;
        }
    }
    Ok(stopped)
}

/// Opens the catalog, for writing only if something is to be done.
fn open_catalog(
    place: &RootLocation,
    options: &HealOptions,
    monitor: &dyn ScanMonitor,
) -> Result<Catalog> {
    if !options.does {
        return match is_free(place, monitor) {
            true => open_unchanged(&place.catalog),
            // The journal is that of the process at work, and SQLite leaves it alone.
            false => Catalog::open(&place.catalog, None),
        };
    }
    let catalog = open_to_write(place, options.common.access, monitor)?;
    if catalog.is_read_only() {
        return Err(Error::RecordNotWritten {
            catalog: place.catalog.clone(),
            why: "it is read-only".to_owned(),
            hint: "what is healed has to be recorded".to_owned(),
        });
    }
    Ok(catalog)
}

/// Returns true if a run that heals could begin now, and warns if it could not.
fn is_free(place: &RootLocation, monitor: &dyn ScanMonitor) -> bool {
    let free = require_unlocked(&place.catalog, monitor);
    if let Err(error) = &free {
        monitor.warn(&format!("with '--yes' nothing could be healed now: {error}"));
    }
    free.is_ok()
}

fn open_parity(
    place: &RootLocation,
    open: &OpenRoot,
    monitor: &dyn ScanMonitor,
) -> Result<Option<Parity>> {
    refuse_irregular_parity(&place.catalog)?;
    let bad = |what: &str| monitor.warn(&format!("recovery data: {what}"));
    let folder = crate::parity::folder(&place.catalog);
    Parity::open(&place.catalog, &open.root, &bad).context("list the recovery data in", &folder)
}

fn open_replicas(
    place: &RootLocation,
    open: &OpenRoot,
    catalog: &mut Catalog,
    options: &HealOptions,
    has_parity: bool,
    monitor: &dyn ScanMonitor,
) -> Result<Vec<Replica>> {
    let is_cut_off = resume::is_any(place, catalog)?;
    if options.replicas.is_empty() && !has_parity && !is_cut_off {
        return Err(Error::FailedPrecondition {
            message: "there is nothing to heal from: no '--from' and no recovery data".to_owned(),
            hint: Some(format!(
                "name a copy of the folder: {} --from COPY. To need none the next time, make \
                 recovery data before anything is damaged: {}",
                place.command("heal"),
                RootLocation { scope: RelPath::root(), ..place.clone() }.command("protect")
            )),
        });
    }
    let scope = &place.scope;
    let is_file = match catalog.get(scope)? {
        _ if scope.is_root() => false,
        Some(StoredRow::Sound(row)) => row.record.entry.kind == EntryKind::File,
        _ => open.root.stat(scope.as_bytes()).is_ok_and(|s| s.kind == fsure_os::Kind::File),
    };
    let replica = |path: &PathBuf| {
        let replica = Replica::open(path, &open.root, scope, is_file)?;
        if !replica.root().has_names_besides(&|_| false).context("list", path)? {
            monitor.warn(&format!(
                "the replica {} is empty: if a disk should be mounted there, mount it",
                path.display()
            ));
        }
        Ok(replica)
    };
    options.replicas.iter().map(replica).collect()
}
