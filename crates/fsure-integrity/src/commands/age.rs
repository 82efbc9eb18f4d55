//! Sorts the recorded files of a root by the time since they were verified. Only
//! the record is read and not the tree, so that it works while the medium is elsewhere.

use super::open_root::require_record;
use crate::catalog::{Audit, Catalog, PageStart, RootLocation, StoredRow};
use crate::model::{AgeBucket, AgeHistogram, FolderAges, ScanMonitor};
use fsure_core::{Clock, Error, RelPath, Result};

/// Sorts the recorded files of a place by when they were verified.
pub fn age(place: &RootLocation, clock: &Clock, monitor: &dyn ScanMonitor) -> Result<AgeHistogram> {
    ages(place, clock, monitor, &mut |_, _, _| {})
}

/// The same, and the ages in each folder.
pub fn age_by_folder(
    place: &RootLocation,
    clock: &Clock,
    monitor: &dyn ScanMonitor,
) -> Result<(AgeHistogram, FolderAges)> {
    let mut folders = FolderAges::below(&place.scope);
    let all = ages(place, clock, monitor, &mut |path, when, bytes| folders.add(path, when, bytes))?;
    Ok((all, folders))
}

fn ages(
    place: &RootLocation,
    clock: &Clock,
    monitor: &dyn ScanMonitor,
    each: &mut dyn FnMut(&RelPath, AgeBucket, u64),
) -> Result<AgeHistogram> {
    require_record(place)?;
    let mut catalog = Catalog::open(&place.catalog, None)?;
    let now_s = clock.now_s();
    let (first, end) = place.scope.below();
    let mut ages =
        AgeHistogram { nested_roots: catalog.nested_roots().all()?, ..AgeHistogram::default() };
    ages.nested_roots.retain(|path| path.is_within(&place.scope));
    let mut add = |stored: &StoredRow| match stored {
        StoredRow::Sound(row) if row.is_live_file() => {
            let record = &row.record;
            let when = ages.add(&record.path, record.entry.size, record.verified_s, now_s);
            each(&record.path, when, record.entry.size);
            row.known_damage().into_iter().for_each(|known| ages.add_damage(known));
        }
        StoredRow::Sound(_) => {}
        StoredRow::Bad(_) => ages.bad_records += 1,
    };
    if !place.scope.is_root() {
        catalog.get(&place.scope)?.iter().for_each(&mut add);
    }
    let mut page = catalog.page(&PageStart::From(&first), end.as_deref())?;
    while let Some(last) = page.last() {
        let after = last.path().as_bytes().to_vec();
        page.iter().for_each(&mut add);
        if let Some(code) = monitor.stop_requested() {
            return Err(Error::Interrupted(code));
        }
        page = catalog.page(&PageStart::After(&after), end.as_deref())?;
    }
    ages.bad_records = ages.bad_records.max(Audit::unless_shown(&mut catalog)?.faults());
    Ok(ages)
}
