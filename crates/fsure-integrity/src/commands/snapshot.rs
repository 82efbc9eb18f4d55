//! Reads a tree as it is now into a temporary catalog, for `compare` and `dupes`.
//! This is an `update` that accepts everything, of a copy of the record or of none,
//! so that there is one way of reading and of believing a record. None of it is
//! written to the record.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use super::Options;
use super::open_root::{OpenRoot, plan};
use crate::catalog::{Audit, Catalog, RootLocation, RootSettings, temporary_copy};
use crate::model::{
    Allowed, CurrentFile, Finding, Progress, ScanMonitor, StopReason, Verdict, VerdictCounts,
};
use crate::scan::{Accept, Purpose, SizeFilter, UpdateRules, scan};
use fsure_core::{AlgorithmSet, Error, ExitCode, Monitor, RelPath, Result, timeout_error};

/// A tree that was scanned.
pub(super) struct TreeSnapshot {
    /// Its current state.
    pub(super) catalog: Catalog,
    /// Paths below the root that could not be read. Their records, if there are any, are
    /// not those of the current state.
    pub(super) unread: BTreeSet<RelPath>,
    /// Records that fail their seal.
    pub(super) bad_records: u64,
    /// Files that were read.
    pub(super) files_read: u64,
    /// Their bytes.
    pub(super) bytes_read: u64,
    /// Files that an earlier run found to be damaged, and this one not to be as recorded.
    pub(super) known_damage: VerdictCounts,
    /// Sizes that several files have; `None` unless only files of such sizes were read.
    pub(super) sizes: Option<Arc<SizeFilter>>,
}

/// Scans a tree for the digests of its record or, if there is none, for `digests`.
/// With `only_equal_sizes` a file is read only if another one has its size.
pub(super) fn look(
    place: &RootLocation,
    open: &OpenRoot,
    digests: AlgorithmSet,
    only_equal_sizes: bool,
    options: &Options,
    monitor: &dyn ScanMonitor,
) -> Result<TreeSnapshot> {
    // The share of missing files does not matter if nothing is written.
    let options = &Options { allowed: Allowed::ALL, ..options.clone() };
    let mut faults = 0;
    let mut catalog = if place.is_recorded() {
        faults = Audit::of(&mut Catalog::open(&place.catalog, None)?)?.faults();
        temporary_copy(&place.catalog)?
    } else {
        let settings = RootSettings { digests, cross_file_systems: false };
        Catalog::temporary(&place.root, settings, (open.volume.clone(), open.inode))?
    };
    let rules = UpdateRules { accept: Accept::All, ..UpdateRules::new(digests) };
    let mut plan = plan(place, open, &catalog, options, Purpose::Update(rules.clone()), true)?;
    let mut sizes = None;
    if only_equal_sizes {
        sizes = Some(Arc::new(SizeFilter::of(&open.root, &plan.walk, monitor)?));
        plan.purpose = Purpose::Update(UpdateRules { only_sizes: sizes.clone(), ..rules });
    }
    let listener = SnapshotMonitor { inner: monitor, errors: Mutex::default() };
    let outcome = scan(&plan, &mut catalog, &listener)?;
    if let Some(why) = outcome.record_untrusted {
        let hint = format!("'{}' shows more", place.command("verify"));
        let (catalog, is_recoverable) = (place.catalog.clone(), false);
        return Err(Error::RecordUntrusted { catalog, why, hint, is_recoverable });
    }
    if let Some(stop) = outcome.stopped {
        return Err(unfinished(place, stop));
    }
    let errors = listener.errors.into_inner().unwrap_or_else(PoisonError::into_inner);
    warn_of_known_damage(place, &errors.known_damage, monitor);
    Ok(TreeSnapshot {
        catalog,
        known_damage: errors.known_damage,
        unread: errors.unread,
        bad_records: errors.bad_records.max(faults),
        files_read: outcome.hashed,
        bytes_read: outcome.bytes.total(),
        sizes,
    })
}

/// Warns that files are known to be damaged, and names the command that lists them.
pub(super) fn warn_of_known_damage(
    place: &RootLocation,
    files: &VerdictCounts,
    monitor: &dyn ScanMonitor,
) {
    let are = match files.total() {
        0 => return,
        1 => "1 file is".to_owned(),
        many => format!("{many} files are"),
    };
    monitor.warn(&format!(
        "{are} known to be DAMAGED and not put right: '{}' names each",
        place.command("log")
    ));
}

/// Returns the error of a scan that did not reach its end: nothing can be concluded
/// from it.
fn unfinished(place: &RootLocation, stop: StopReason) -> Error {
    let source = match stop {
        StopReason::Interrupted(code) => return Error::Interrupted(code),
        StopReason::StorageSilent(timeout) => timeout_error(timeout),
        StopReason::RecordFailed(why) => io::Error::other(why),
    };
    Error::Io { doing: "list all of", path: place.root.clone(), source }
}

#[derive(Default)]
struct SnapshotErrors {
    unread: BTreeSet<RelPath>,
    bad_records: u64,
    known_damage: VerdictCounts,
}

/// Collects the paths that could not be read, and does not pass findings on.
struct SnapshotMonitor<'a> {
    inner: &'a dyn ScanMonitor,
    errors: Mutex<SnapshotErrors>,
}

impl Monitor for SnapshotMonitor<'_> {
    fn warn(&self, message: &str) {
        self.inner.warn(message);
    }

    fn stop_requested(&self) -> Option<ExitCode> {
        self.inner.stop_requested()
    }
}

impl ScanMonitor for SnapshotMonitor<'_> {
    fn progress(&self, progress: &Progress, current: Option<CurrentFile<'_>>) {
        self.inner.progress(progress, current);
    }

    fn finding(&self, finding: &Finding) {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        if finding.verdict.is_unread() {
            errors.unread.insert(finding.path.clone());
        }
        errors.bad_records += u64::from(finding.verdict == Verdict::RecordBad);
        if let Some(known) = finding.known_damage {
            errors.known_damage.add(known.verdict);
        }
    }
}
